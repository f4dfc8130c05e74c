/* An optimiser step over a whole network: decay on weights alone, each state by its own momentum,
 * and the same bits on any number of threads. */
#include "base/memory.h"
#include "base/hash/rng.h"
#include "models/known_network.h"
#include "train/step/update.h"
#include "unit.h"

#include <math.h>

struct values {
    float *params, *states, *slot, *sums;
};

static float *numbers(int64_t n, uint64_t stream)
{
    float *values = tdmi_alloc((size_t)n, sizeof *values);
    tdmi_rng rng = tdmi_rng_at(2, TDMI_RNG_TEST, 0, stream);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(&rng, -1.0f, 1.0f);
    return values;
}

static struct values make(const tdmi_graph *graph)
{
    return (struct values){numbers(graph->param_values, 1), numbers(graph->state_values, 2),
                           numbers(graph->param_values, 3),
                           numbers(tdmi_graph_sums_values(graph), 4)};
}

static void release(struct values *it)
{
    tdmi_free(it->params);
    tdmi_free(it->states);
    tdmi_free(it->slot);
    tdmi_free(it->sums);
}

static void run_from(const tdmi_graph *graph, int first_node, struct values *it, int threads,
                     float n, struct tdmi_update_rates rates)
{
    const struct tdmi_optimizer *sgd;
    tdmi_pool *pool;
    tdmi_update *update;
    float *slots[TDMI_OPTIMIZER_SLOTS] = {it->slot};
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_update_open(graph, first_node, &tdmi_backend_ref, NULL, sgd, pool,
                                      it->params, it->states, slots, &update, NULL),
                     TDM_OK);
    assert_int_equal(tdmi_update_run(update, it->sums, n, rates, NULL), TDM_OK);
    tdmi_update_close(update);
    tdmi_pool_free(pool);
}

static void run(const tdmi_graph *graph, struct values *it, int threads, float n,
                struct tdmi_update_rates rates)
{
    run_from(graph, 0, it, threads, n, rates);
}

static void near(const char *name, float got, double wanted)
{
    if (!(fabs((double)got - wanted) < 1e-5))
        fail_msg("%s: %.9g, wanted %.9g", name, (double)got, wanted);
}

TEST(every_tensor_follows_its_own_rule)
{
    const struct tdmi_update_rates rates = {
        .learning_rate = 0.1f, .momentum = 0.5f, .weight_decay = 0.3f};
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    struct values before = make(graph), after = make(graph);
    run(graph, &after, 2, 8.0f, rates);
    for (int t = 0; t < graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &graph->params[t];
        bool is_weight = tensor->spec.n_dims > 1;
        for (int64_t i = tensor->offset; i < tensor->offset + tensor->n; i++) {
            double w = (double)before.params[i];
            double g = (double)before.sums[i] / 8.0 + (is_weight ? 0.3 * w : 0.0);
            double v = 0.5 * (double)before.slot[i] + g;
            near(tensor->name, after.slot[i], v);
            near(tensor->name, after.params[i], w - 0.1 * (g + 0.5 * v));
        }
    }
    for (int t = 0; t < graph->n_states; t++) {
        const struct tdmi_tensor *tensor = &graph->states[t];
        for (int64_t i = tensor->offset; i < tensor->offset + tensor->n; i++)
            near(tensor->name, after.states[i],
                 0.9 * (double)before.states[i] +
                     0.1 * (double)before.sums[graph->param_values + i] / 8.0);
    }
    release(&before);
    release(&after);
    tdmi_graph_free(graph);
}

/* Three steps of any optimiser, with decay; parts of the rate by tensor or NULL. */
static float *stepped(const tdmi_graph *graph, const struct tdmi_optimizer *optimizer, float rate,
                      const float *parts)
{
    struct values it = make(graph);
    float *slots[TDMI_OPTIMIZER_SLOTS] = {NULL};
    tdmi_pool *pool;
    tdmi_update *update;
    for (int i = 0; i < optimizer->n_slots; i++)
        slots[i] = tdmi_alloc((size_t)graph->param_values, sizeof(float));
    assert_int_equal(tdmi_pool_new(2, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_update_open(graph, 0, &tdmi_backend_ref, NULL, optimizer, pool, it.params,
                                      it.states, slots, &update, NULL),
                     TDM_OK);
    tdmi_update_scale(update, parts);
    for (int step = 1; step <= 3; step++)
        assert_int_equal(tdmi_update_run(update, it.sums, 8.0f,
                                         (struct tdmi_update_rates){.learning_rate = rate,
                                                                    .momentum = 0.5f,
                                                                    .weight_decay = 0.01f,
                                                                    .step = step},
                                         NULL),
                         TDM_OK);
    tdmi_update_close(update);
    tdmi_pool_free(pool);
    for (int i = 0; i < optimizer->n_slots; i++)
        tdmi_free(slots[i]);
    float *params = it.params;
    it.params = NULL;
    release(&it);
    return params;
}

/* A tensor that is due half of the rate is stepped as all are with half of it. */
TEST(a_part_of_the_rate_is_that_rate)
{
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    const struct tdmi_optimizer *optimizer;
    float parts[100];
    assert_true(graph->n_params <= 100);
    for (int t = 0; t < graph->n_params; t++)
        parts[t] = t % 2 ? 0.5f : 1.0f;
    for (int i = 0; (optimizer = tdmi_optimizer_at(i)) != NULL; i++) {
        float *whole = stepped(graph, optimizer, 0.02f, NULL);
        float *half = stepped(graph, optimizer, 0.01f, NULL);
        float *mixed = stepped(graph, optimizer, 0.02f, parts);
        for (int t = 0; t < graph->n_params; t++) {
            const struct tdmi_tensor *tensor = &graph->params[t];
            const size_t bytes = sizeof(float) * (size_t)tensor->n;
            assert_memory_equal(mixed + tensor->offset, (t % 2 ? half : whole) + tensor->offset,
                                bytes);
            assert_true(memcmp(half + tensor->offset, whole + tensor->offset, bytes) != 0);
        }
        tdmi_free(whole);
        tdmi_free(half);
        tdmi_free(mixed);
    }
    tdmi_graph_free(graph);
}

TEST(what_is_frozen_keeps_every_bit)
{
    const struct tdmi_update_rates rates = {
        .learning_rate = 0.1f, .momentum = 0.5f, .weight_decay = 0.3f};
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    struct values before = make(graph), all = make(graph), some = make(graph);
    const struct tdmi_node *first = &graph->nodes[graph->head];
    const size_t frozen = (size_t)graph->params[first->first_param].offset;
    const size_t n = (size_t)graph->param_values;
    assert_true(frozen > 0 && frozen < n);
    run(graph, &all, 2, 8.0f, rates);
    run_from(graph, graph->head, &some, 2, 8.0f, rates);
    assert_memory_equal(some.params, before.params, sizeof(float) * frozen);
    assert_memory_equal(some.slot, before.slot, sizeof(float) * frozen);
    assert_memory_equal(some.states, before.states, sizeof(float) * (size_t)graph->state_values);
    assert_memory_equal(some.params + frozen, all.params + frozen, sizeof(float) * (n - frozen));
    assert_memory_equal(some.slot + frozen, all.slot + frozen, sizeof(float) * (n - frozen));
    release(&before);
    release(&all);
    release(&some);
    tdmi_graph_free(graph);
}

TEST(threads_change_no_bit)
{
    const struct tdmi_update_rates rates = {
        .learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 1e-3f};
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    struct values one = make(graph), four = make(graph);
    run(graph, &one, 1, 7.0f, rates);
    run(graph, &four, 4, 7.0f, rates);
    assert_memory_equal(one.params, four.params, sizeof(float) * (size_t)graph->param_values);
    assert_memory_equal(one.states, four.states, sizeof(float) * (size_t)graph->state_values);
    assert_memory_equal(one.slot, four.slot, sizeof(float) * (size_t)graph->param_values);
    release(&one);
    release(&four);
    tdmi_graph_free(graph);
}

TEST(running_out_of_memory_is_an_ordinary_error)
{
    const struct tdmi_optimizer *sgd;
    tdmi_graph *graph = network_new("lenet5", 28, 5);
    struct values values = make(graph);
    float *slots[TDMI_OPTIMIZER_SLOTS] = {values.slot};
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    for (int n = 1; n <= 2; n++) {
        tdmi_update *update = NULL;
        tdmi_memory_fail_from(n);
        tdm_status status = tdmi_update_open(graph, 0, &tdmi_backend_ref, NULL, sgd, NULL,
                                             values.params, values.states, slots, &update, NULL);
        tdmi_memory_fail_from(0);
        assert_int_equal(status, TDM_E_MEMORY);
        assert_null(update);
    }
    release(&values);
    tdmi_graph_free(graph);
}

/* Behind every step the averages move by what is not kept; frozen values are their own. */
TEST(averages_follow_weights_and_statistics)
{
    const struct tdmi_update_rates rates = {.learning_rate = 0.1f, .average = 0.75};
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    struct values it = make(graph), before = make(graph), mean = make(graph);
    const struct tdmi_optimizer *sgd;
    tdmi_pool *pool;
    tdmi_update *update;
    float *slots[TDMI_OPTIMIZER_SLOTS] = {it.slot};
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(2, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_update_open(graph, graph->head, &tdmi_backend_ref, NULL, sgd, pool,
                                      it.params, it.states, slots, &update, NULL),
                     TDM_OK);
    tdmi_update_average(update, mean.params, mean.states);
    assert_int_equal(tdmi_update_run(update, it.sums, 8.0f, rates, NULL), TDM_OK);
    tdmi_update_close(update);
    const int64_t head = graph->params[graph->nodes[graph->head].first_param].offset;
    for (int64_t i = 0; i < graph->param_values; i++)
        near("an average", mean.params[i],
             i < head ? (double)before.params[i]
                      : 0.75 * (double)before.params[i] + 0.25 * (double)it.params[i]);
    assert_true(memcmp(it.params + head, before.params + head,
                       sizeof(float) * (size_t)(graph->param_values - head)) != 0);
    assert_memory_equal(mean.states, before.states, sizeof(float) * (size_t)graph->state_values);

    assert_int_equal(tdmi_update_open(graph, 0, &tdmi_backend_ref, NULL, sgd, pool, it.params,
                                      it.states, slots, &update, NULL),
                     TDM_OK);
    tdmi_update_average(update, mean.params, mean.states);
    assert_int_equal(tdmi_update_run(update, it.sums, 8.0f, rates, NULL), TDM_OK);
    tdmi_update_close(update);
    for (int64_t i = 0; i < graph->state_values; i++)
        near("an average", mean.states[i],
             0.75 * (double)before.states[i] + 0.25 * (double)it.states[i]);
    tdmi_pool_free(pool);
    release(&it);
    release(&before);
    release(&mean);
    tdmi_graph_free(graph);
}

/* A mean gradient that is short enough keeps its bits; a longer one becomes as long as is said. */
TEST(a_gradient_is_made_as_long_as_is_said)
{
    struct tdmi_update_rates rates = {.learning_rate = 1.0f};
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    struct values before = make(graph), free_one = make(graph), long_one = make(graph),
                  short_one = make(graph);
    double squares = 0.0;
    run(graph, &free_one, 1, 8.0f, rates);
    rates.clip_norm = 1e6;
    run(graph, &long_one, 3, 8.0f, rates);
    assert_memory_equal(free_one.params, long_one.params,
                        sizeof(float) * (size_t)graph->param_values);
    rates.clip_norm = 0.5;
    run(graph, &short_one, 3, 8.0f, rates);
    for (int64_t i = 0; i < graph->param_values; i++) {
        const double by = (double)short_one.params[i] - (double)before.params[i];
        squares += by * by;
    }
    near("the length of a step", (float)sqrt(squares), 0.5);
    release(&before);
    release(&free_one);
    release(&long_one);
    release(&short_one);
    tdmi_graph_free(graph);
}

TEST_MAIN(NULL, NULL)
