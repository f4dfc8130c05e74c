/*
 * Batch norms that were folded get statistics back: the network gives what it gave, and statistics
 * of the pictures that were measured are then the running ones.
 */
#include "graph/norms.h"
#include "graph/fusing.h"
#include "unit.h"

/* A network whose norms have no statistics, but for the one at `kept`; as Keras counts variances,
 * so that the variances of a group can equal the running ones up to rounding. */
static tdmi_graph *folded(struct values *values, int kept)
{
    tdmi_graph *graph = branches();
    *values = values_of(graph);
    for (int i = 0; i < graph->n_nodes; i++) {
        struct tdmi_node *node = &graph->nodes[i];
        if (node->kind != TDMI_OP_BATCH_NORM)
            continue;
        node->attrs.is_biased = true;
        for (int c = 0; c < node->out.c && i != kept; c++) {
            values->states[graph->states[node->first_state].offset + c] = 0.0f;
            values->states[graph->states[node->first_state + 1].offset + c] = 1.0f;
        }
    }
    return graph;
}

static int last_norm(const tdmi_graph *graph)
{
    int node = graph->n_nodes - 1;
    while (graph->nodes[node].kind != TDMI_OP_BATCH_NORM)
        node--;
    return node;
}

static tdmi_plan *plan_of(const tdmi_graph *graph, const struct tdmi_backend *backend,
                          bool is_training, bool is_apart)
{
    const struct tdmi_plan_options request = {
        .max_images = most_images, .is_training = is_training, .is_apart = is_apart};
    tdmi_plan *plan;
    assert_int_equal(tdmi_plan_make(graph, backend, &request, &plan, NULL), TDM_OK);
    return plan;
}

/* Measure and restore statistics with the images of run()'s second group. */
static void give_back(const tdmi_graph *graph, const struct tdmi_backend *backend, int first,
                      struct values values)
{
    tdmi_plan *plan = plan_of(graph, backend, false, true);
    struct tdmi_values lent = {values.params, values.states};
    double *sums = calloc((size_t)tdmi_norms_sums(graph, first), sizeof *sums);
    struct pictures pictures;
    tdmi_executor *lane;
    tdmi_packed *packed;
    tdmi_pool *pool;
    draw(&pictures);
    assert_non_null(sums);
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_open(plan, NULL, &packed, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_fill(packed, lent, 0, pool, NULL), TDM_OK);
    assert_int_equal(tdmi_executor_open(plan, NULL, &lane, NULL), TDM_OK);
    tdmi_executor_use(lane, tdmi_packed_memory(packed));
    const struct tdmi_group group = {.n = most_images - 1, .pixels = pictures.at};
    tdmi_executor_measure(lane, lent, &group, first, sums);
    tdmi_norms_restore(graph, first, sums, group.n, values.params, values.states);
    tdmi_executor_close(lane);
    tdmi_packed_close(packed);
    tdmi_pool_free(pool);
    tdmi_plan_free(plan);
    free(sums);
}

static void check_backend(const struct tdmi_backend *backend)
{
    TDMI_AT_END(values_release) struct values values = {0};
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = folded(&values, -1);
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *evaluator = plan_of(graph, backend, false, false);
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *train = plan_of(graph, backend, true, false);
    const int n_norms = tdmi_norms_count(graph, 0);
    assert_int_equal(tdmi_norms_count_folded(graph, 0, values.states), n_norms);
    struct outcome before = run(evaluator, values), batch = run(train, values);
    const int n = (most_images - 1) * n_classes;
    double moved = 0.0;
    for (int i = 0; i < n; i++)
        moved = fmax(moved, fabs((double)(before.probabilities[i] - batch.probabilities[i])));
    assert_true(moved > 1e-3); /* what measuring is for */
    free(batch.sums);
    give_back(graph, backend, 0, values);
    assert_int_equal(tdmi_norms_count_folded(graph, 0, values.states), 0);
    struct outcome after = run(evaluator, values);
    batch = run(train, values);
    compare(after.probabilities, before.probabilities, n, "running statistics");
    compare(batch.probabilities, before.probabilities, n, "statistics of the group");
    free(before.sums);
    free(after.sums);
    free(batch.sums);
}

TEST(a_network_gives_the_same_with_measured_statistics)
{
    for (int i = 0; tdmi_backend_at(i); i++)
        if (tdmi_backend_at(i)->device.is_host) {
            const struct tdmi_backend backend = poisoned_backend(tdmi_backend_at(i));
            check_backend(&backend);
        }
}

/* Training with measured statistics gives the reference's results, whichever fusions are refused.
 */
TEST(training_with_measured_statistics_is_the_same_however_it_is_fused)
{
    TDMI_AT_END(values_release) struct values values = {0};
    struct fusing fusing;
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = folded(&values, -1);
    give_back(graph, &tdmi_backend_ref, 0, values);
    tdmi_plan *plan = plan_of(graph, &tdmi_backend_ref, true, true);
    TDMI_AT_END(outcome_release) struct outcome wanted = run(plan, values);
    tdmi_plan_free(plan);
    fusing_init(&fusing);
    for (size_t r = 0; r < sizeof refusals / sizeof refusals[0]; r++) {
        refuse(r);
        plan = plan_of(graph, &fusing.backend, true, false);
        struct outcome got = run(plan, values);
        same_outcome(graph, &got, &wanted);
        free(got.sums);
        tdmi_plan_free(plan);
    }
}

/* Norms before the border, and one that has statistics, keep every byte. */
TEST(norms_that_need_none_are_left_alone)
{
    struct values values;
    tdmi_graph *graph = branches();
    const int kept = last_norm(graph);
    const struct tdmi_node *node = &graph->nodes[kept];
    const size_t bytes = sizeof(float) * (size_t)node->out.c;
    tdmi_graph_free(graph);
    graph = folded(&values, kept);
    node = &graph->nodes[kept];
    int first = 0;
    while (graph->nodes[first].kind != TDMI_OP_BATCH_NORM)
        first++;
    const int freeze_point = first + 1, n_norms = tdmi_norms_count(graph, 0);
    assert_int_equal(tdmi_norms_count_folded(graph, freeze_point, values.states), n_norms - 2);
    const struct tdmi_tensor *scale = &graph->params[node->first_param];
    const struct tdmi_tensor *mean = &graph->states[node->first_state];
    float old_scale[8], old_mean[8];
    assert_true(bytes <= sizeof old_scale);
    memcpy(old_scale, values.params + scale->offset, bytes);
    memcpy(old_mean, values.states + mean->offset, bytes);
    give_back(graph, &tdmi_backend_ref, freeze_point, values);
    assert_memory_equal(old_scale, values.params + scale->offset, bytes);
    assert_memory_equal(old_mean, values.states + mean->offset, bytes);
    assert_int_equal(tdmi_norms_count_folded(graph, freeze_point, values.states), 0);
    assert_int_equal(tdmi_norms_count_folded(graph, 0, values.states), 1);
    free(values.params);
    free(values.states);
    tdmi_graph_free(graph);
}

TEST(slow_statistics_are_quickened_behind_the_border)
{
    TDMI_AT_END(values_release) struct values values = {0};
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = folded(&values, -1);
    const int last = last_norm(graph), all = tdmi_norms_count(graph, 0);
    for (int i = 0; i < graph->n_nodes; i++)
        graph->nodes[i].attrs.momentum = i == last ? 0.5 : 0.001;
    assert_int_equal(tdmi_norms_quicken(graph, last, 0.01), 0);
    assert_int_equal(tdmi_norms_quicken(graph, 0, 0.01), all - 1);
    assert_int_equal(tdmi_norms_quicken(graph, 0, 0.01), 0);
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].kind == TDMI_OP_BATCH_NORM)
            assert_true(graph->nodes[i].attrs.momentum == (i == last ? 0.5 : 0.01));
}

TEST_MAIN(NULL, NULL)
