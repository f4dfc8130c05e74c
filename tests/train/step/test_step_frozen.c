/*
 * Steps of a training whose first nodes are frozen: what a step keeps of those from one batch to
 * the next is what the first step of another would make anew, and no bit of theirs changes.
 */
#include "models/known_network.h"
#include "graph/poison.h"
#include "train/step/step.h"
#include "train/step/steps.h"
#include "train/step/update.h"
#include "unit.h"

enum { frozen_steps = 3 };

/* Training of the nodes from first on. */
struct frozen {
    const tdmi_plan *plan;
    float *params, *states, *sums[frozen_steps];
};

static const struct tdmi_tensor *first_trained(const tdmi_plan *plan)
{
    const tdmi_graph *graph = plan->graph;
    int node = plan->first_trained;
    while (graph->nodes[node].n_params == 0)
        node++;
    return &graph->params[graph->nodes[node].first_param];
}

/* Where the first state lies that is not frozen. */
static int64_t first_trained_state(const tdmi_plan *plan)
{
    const tdmi_graph *graph = plan->graph;
    for (int i = plan->first_trained; i < graph->n_nodes; i++)
        if (graph->nodes[i].n_states)
            return graph->states[graph->nodes[i].first_state].offset;
    return graph->state_values;
}

/* Compares the sums of trained nodes; those of frozen nodes are undefined. */
static void same_trained_sums(const tdmi_plan *plan, const float *a, const float *b)
{
    const tdmi_graph *graph = plan->graph;
    const int64_t tail = tdmi_graph_tail_at(graph);
    for (const struct tdmi_tensor *t = first_trained(plan); t < graph->params + graph->n_params;
         t++) {
        assert_memory_equal(a + t->offset, b + t->offset, sizeof *a * (size_t)t->n);
        for (int64_t i = 0; i < t->n; i++) /* nor was memory read that nobody wrote */
            assert_true(isfinite(a[t->offset + i]));
    }
    assert_memory_equal(a + tail, b + tail, sizeof *a * TDMI_TAIL_VALUES);
    assert_true(a[tail + TDMI_TAIL_LOSS] > 0.0f);
}

static tdmi_step *step_of(const tdmi_plan *plan, tdmi_pool *pool)
{
    const struct tdmi_step_options options = {.max_batch = most_batch};
    tdmi_step *step;
    assert_int_equal(tdmi_step_open(plan, NULL, pool, &options, &step, NULL), TDM_OK);
    return step;
}

static const float *run_step(tdmi_step *step, const struct frozen *it,
                             const struct tdmi_batch *batch)
{
    tdmi_step_begin(step, (struct tdmi_values){it->params, it->states}, batch, NULL);
    assert_int_equal(tdmi_step_run(step, 0, it->plan->n_segments - 1, NULL), TDM_OK);
    return tdmi_step_sums(step);
}

/* Steps with updates between them, each beside the first step of another that has kept nothing. */
static struct frozen train_rest(const struct bench *of, const tdmi_plan *plan, int threads)
{
    const struct tdmi_update_rates rates = {
        .learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 1e-3f};
    const tdmi_graph *graph = of->graph;
    struct frozen it = {plan,
                        copied(of->params, graph->param_values),
                        copied(of->states, graph->state_values),
                        {NULL}};
    float *slots[TDMI_OPTIMIZER_SLOTS] = {room(graph->param_values)};
    const struct tdmi_optimizer *sgd;
    tdmi_pool *pool;
    tdmi_update *update;
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_update_open(graph, plan->first_trained, plan->backend, NULL, sgd, pool,
                                      it.params, it.states, slots, &update, NULL),
                     TDM_OK);
    tdmi_step *step = step_of(plan, pool);
    for (int s = 0; s < frozen_steps; s++) {
        struct tdmi_batch batch = first_of(of, most_batch / 2 - s);
        const float *sums = run_step(step, &it, &batch);
        tdmi_step *fresh = step_of(plan, pool);
        same_trained_sums(plan, sums, run_step(fresh, &it, &batch));
        tdmi_step_close(fresh);
        it.sums[s] = copied(sums, tdmi_graph_sums_values(graph));
        assert_int_equal(tdmi_update_run(update, sums, (float)batch.n, rates, NULL), TDM_OK);
    }
    tdmi_step_close(step);
    tdmi_update_close(update);
    tdmi_pool_free(pool);
    free(slots[0]);
    return it;
}

static void frozen_release(struct frozen *it)
{
    for (int s = 0; s < frozen_steps; s++)
        free(it->sums[s]);
    free(it->params);
    free(it->states);
}

/* Returns how many bytes are packed anew for each step. */
static size_t check_frozen_steps(const struct bench *of, const struct tdmi_backend *backend,
                                 int first_node)
{
    const struct tdmi_plan_options request = {
        .max_images = 3, .is_training = true, .first_trained = first_node};
    const size_t n = (size_t)of->graph->param_values;
    size_t packed = 0;
    tdmi_plan *plan;
    assert_int_equal(tdmi_plan_make(of->graph, backend, &request, &plan, NULL), TDM_OK);
    const size_t freeze_point = (size_t)first_trained(plan)->offset;
    const size_t states = (size_t)first_trained_state(plan);
    struct frozen one = train_rest(of, plan, 1), more = train_rest(of, plan, 3);
    assert_true(freeze_point > 0 && states > 0);
    for (int s = 0; s < frozen_steps; s++)
        same_trained_sums(plan, one.sums[s], more.sums[s]);
    assert_memory_equal(one.params, more.params, sizeof(float) * n);
    assert_memory_equal(one.params, of->params, sizeof(float) * freeze_point);
    assert_memory_equal(one.states, of->states, sizeof(float) * states);
    assert_true(memcmp(one.params + freeze_point, of->params + freeze_point,
                       sizeof(float) * (n - freeze_point)));
    for (int i = first_node; i < of->graph->n_nodes; i++)
        packed += plan->nodes[i].packed_bytes;
    frozen_release(&one);
    frozen_release(&more);
    tdmi_plan_free(plan);
    return packed;
}

TEST(steps_over_frozen_nodes_keep_what_does_not_change)
{
    struct bench it;
    open_bench_of(&it, network_new("convnet7", 16, classes));
    int last_conv = it.graph->head;
    while (it.graph->nodes[last_conv].kind != TDMI_OP_CONV)
        last_conv--;
    for (int i = 0; tdmi_backend_at(i); i++) {
        if (!tdmi_backend_at(i)->device.is_host)
            continue;
        const struct tdmi_backend backend = poisoned_backend(tdmi_backend_at(i));
        check_frozen_steps(&it, &backend, it.graph->head);
        size_t packed = check_frozen_steps(&it, &backend, last_conv);
        assert_true(packed > 0 || strcmp(backend.name, "cpu") != 0);
    }
    close_bench(&it);
}

TEST_MAIN(NULL, NULL)
