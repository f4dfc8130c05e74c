/*
 * A network in two halves: the backbone computes feature rows, and the rest starts from them.
 * Together they equal the whole, in evaluation and in training, at every possible cut and on every
 * backend.
 */
#include "graph/fusing.h"
#include "unit.h"

/* Every node from `first` on reads it, or the node before it. */
static bool can_cut(const tdmi_graph *graph, int first)
{
    for (int i = first; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] < first - 1)
                return false;
    return true;
}

struct rows {
    float *values;
    const uint8_t *at[most_images];
};

static struct rows rows_of(const tdmi_graph *graph, const struct tdmi_backend *backend, int first,
                           struct values values)
{
    struct tdmi_values lent = {values.params, values.states};
    struct pictures pictures;
    tdmi_graph *base;
    tdmi_plan *plan;
    tdmi_packed *packed;
    tdmi_pool *pool;
    tdmi_executor *lane;
    draw(&pictures);
    assert_int_equal(tdmi_graph_base(graph, first, &base, NULL), TDM_OK);
    for (int i = 0; i < base->n_params; i++)
        assert_int_equal(base->params[i].offset, graph->params[i].offset);
    assert_int_equal(tdmi_plan_new(base, backend, most_images, false, &plan, NULL), TDM_OK);
    const size_t n = (size_t)tdmi_shape_values(base->nodes[first - 1].out);
    struct rows rows = {.values = room((int64_t)(n * most_images))};
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_open(plan, NULL, &packed, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_fill(packed, lent, 0, pool, NULL), TDM_OK);
    assert_int_equal(tdmi_executor_open(plan, NULL, &lane, NULL), TDM_OK);
    tdmi_executor_use(lane, tdmi_packed_memory(packed));
    tdmi_executor_forward(lane, lent, &(struct tdmi_group){.n = most_images, .pixels = pictures.at},
                          NULL);
    assert_int_equal(tdmi_executor_fetch_output(lane, most_images, rows.values, NULL), TDM_OK);
    for (size_t i = 0; i < most_images; i++)
        rows.at[i] = (const uint8_t *)(rows.values + i * n);
    tdmi_executor_close(lane);
    tdmi_packed_close(packed);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
    tdmi_graph_free(base);
    return rows;
}

static struct outcome outcome_of(const tdmi_graph *graph, const struct tdmi_backend *backend,
                                 struct tdmi_plan_options request, struct values values,
                                 const struct rows *rows)
{
    tdmi_plan *plan;
    request.max_images = most_images;
    assert_int_equal(tdmi_plan_make(graph, backend, &request, &plan, NULL), TDM_OK);
    struct outcome outcome = rows ? run_on(plan, values, rows->at) : run(plan, values);
    memset(outcome.sums + tdmi_graph_state_sums_at(graph), 0, /* of what is frozen: no meaning */
           sizeof(float) * (size_t)graph->state_values);
    tdmi_plan_free(plan);
    return outcome;
}

static void halves_are_the_whole(const tdmi_graph *graph, const struct tdmi_backend *backend,
                                 int first, bool is_training, struct values values)
{
    const int freeze_point = is_training ? first : 0;
    const struct rows rows = rows_of(graph, backend, first, values);
    struct outcome whole = outcome_of(
        graph, backend,
        (struct tdmi_plan_options){.is_training = is_training, .first_trained = freeze_point},
        values, NULL);
    struct outcome half = outcome_of(graph, backend,
                                     (struct tdmi_plan_options){.is_training = is_training,
                                                                .first_trained = freeze_point,
                                                                .first_node = first},
                                     values, &rows);
    same_outcome(graph, &half, &whole);
    free(whole.sums);
    free(half.sums);
    free(rows.values);
}

TEST(a_network_can_begin_with_the_rows_of_its_base)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = branches();
    TDMI_AT_END(values_release) struct values values = values_of(graph);
    struct fusing fusing;
    int n_cuts = 0;
    fusing_init(&fusing);
    for (int first = 1; first + 1 < graph->n_nodes; first++) {
        if (!can_cut(graph, first))
            continue;
        n_cuts++;
        for (size_t r = 0; r < sizeof refusals / sizeof refusals[0]; r++) {
            refuse(r);
            halves_are_the_whole(graph, &fusing.backend, first, false, values);
            halves_are_the_whole(graph, &fusing.backend, first, true, values);
        }
        for (int i = 0; tdmi_backend_at(i); i++) {
            if (!tdmi_backend_at(i)->device.is_host)
                continue;
            const struct tdmi_backend backend = poisoned_backend(tdmi_backend_at(i));
            halves_are_the_whole(graph, &backend, first, false, values);
            halves_are_the_whole(graph, &backend, first, true, values);
        }
    }
    assert_true(n_cuts > 5);
}

TEST(where_more_than_one_tensor_crosses_nothing_is_cut)
{
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = branches(), *base = NULL;
    tdmi_plan *plan = NULL;
    tdm_error err;
    int first = 1;
    while (can_cut(graph, first))
        first++;
    const struct tdmi_plan_options request = {.max_images = 1, .first_node = first};
    assert_int_equal(tdmi_graph_base(graph, first, &base, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "has more than one output"));
    assert_int_equal(tdmi_plan_make(graph, &tdmi_backend_ref, &request, &plan, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "is not the node before the freeze point"));
    assert_int_equal(tdmi_graph_base(graph, graph->n_nodes, &base, &err), TDM_E_USAGE);
    assert_null(base);
    assert_null(plan);
}

TEST_MAIN(NULL, NULL)
