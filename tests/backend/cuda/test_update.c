/* Steps of a whole network on backend cuda, all tensors at once, end where those of ref end: every
 * optimizer, clipped and not, with averages, parts of the rate, and frozen nodes. */
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/shim/shim_run.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "models/known_network.h"
#include "train/step/update.h"
#include "unit.h"

#include <math.h>

enum { n_arrays = 7, samples = 8, n_steps = 3 };
enum array { PARAMS, STATES, FIRST, SECOND, MEAN_PARAMS, MEAN_STATES, SUMS };

struct world {
    const tdmi_graph *graph;
    float *arrays[n_arrays];
};

static int64_t values_of(const tdmi_graph *graph, int array)
{
    if (array == SUMS)
        return tdmi_graph_sums_values(graph);
    return array == STATES || array == MEAN_STATES ? graph->state_values : graph->param_values;
}

static void fill(float *values, int64_t n, uint32_t stream)
{
    tdmi_rng rng = tdmi_rng_at(5, TDMI_RNG_TEST, stream, 0);
    for (int64_t i = 0; i < n; i++)
        values[i] = tdmi_rng_uniform(&rng, -1.0f, 1.0f);
}

static void open_world(struct world *it, const tdmi_graph *graph)
{
    it->graph = graph;
    for (int a = 0; a < n_arrays; a++) {
        const int64_t n = values_of(graph, a);
        it->arrays[a] = tdmi_alloc_aligned((size_t)n * sizeof(float));
        assert_non_null(it->arrays[a]);
        if (a != FIRST && a != SECOND)
            fill(it->arrays[a], n, (uint32_t)a);
    }
}

static void close_world(struct world *it)
{
    for (int a = 0; a < n_arrays; a++)
        tdmi_free(it->arrays[a]);
}

struct how {
    const struct tdmi_optimizer *optimizer;
    double clip_norm;
    bool has_averages, has_parts, keeps_statistics;
    int first_node;
};

static void train(struct world *it, const struct tdmi_backend *backend, struct how how)
{
    float *const slots[TDMI_OPTIMIZER_SLOTS] = {it->arrays[FIRST], it->arrays[SECOND]};
    float parts[64];
    tdmi_device *device;
    tdmi_pool *pool;
    tdmi_update *update;
    tdm_error err = {0};
    assert_true(it->graph->n_params <= 64);
    for (int i = 0; i < 64; i++)
        parts[i] = i % 2 ? 0.7f : 1.0f;
    assert_int_equal(backend->device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_update_open(it->graph, how.first_node, backend, device, how.optimizer,
                                      pool, it->arrays[PARAMS], it->arrays[STATES], slots, &update,
                                      NULL),
                     TDM_OK);
    for (int step = 1; step <= n_steps; step++) {
        /* after the first step: what changes is listed again */
        if (step == 2 && how.has_averages)
            tdmi_update_average(update, it->arrays[MEAN_PARAMS], it->arrays[MEAN_STATES]);
        if (step == 2 && how.has_parts)
            tdmi_update_scale(update, parts);
        if (step == 3 && how.keeps_statistics)
            tdmi_update_keep_statistics(update);
        const struct tdmi_update_rates rates = {.learning_rate = 0.02f / (float)step,
                                                .momentum = 0.9f,
                                                .weight_decay = 0.1f,
                                                .step = step,
                                                .clip_norm = how.clip_norm,
                                                .average = 0.75};
        fill(it->arrays[SUMS], values_of(it->graph, SUMS), 20 + (uint32_t)step);
        assert_ok(tdmi_update_run(update, it->arrays[SUMS], samples, rates, &err), &err);
    }
    tdmi_update_close(update);
    tdmi_pool_free(pool);
    backend->device.close(device);
}

static bool has_same_arithmetic(void)
{
#if defined(__x86_64__) && !defined(__FMA__)
    return true; /* no compiler makes one operation of two */
#else
    return false;
#endif
}

/* exact: lengths, added up in double in another order, come to the same float. */
static void compare(const tdmi_graph *graph, struct how how, bool is_exact)
{
    struct world law, gpu;
    open_world(&law, graph);
    open_world(&gpu, graph);
    train(&law, &tdmi_backend_ref, how);
    tdmi_shim_use((struct tdmi_shim_order){.is_reversed = how.clip_norm > 0.0});
    train(&gpu, &tdmi_backend_shim, how);
    for (int a = 0; a < n_arrays; a++) {
        const int64_t n = values_of(graph, a);
        for (int64_t i = 0; i < n; i++) {
            const double wanted = (double)law.arrays[a][i], got = (double)gpu.arrays[a][i];
            if (!(fabs(got - wanted) <= (is_exact ? 0.0 : 4e-6 * (0.1 + fabs(wanted)))))
                fail_msg("%s, clipped to %g, array %d: value %lld is %.9g, wanted %.9g",
                         how.optimizer->name, how.clip_norm, a, (long long)i, got, wanted);
        }
    }
    close_world(&law);
    close_world(&gpu);
}

TEST(every_optimizer_ends_where_it_ends_on_ref)
{
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    const struct tdmi_optimizer *it;
    for (int i = 0; (it = tdmi_optimizer_at(i)) != NULL; i++) {
        const bool adapts = it->measure != NULL;
        compare(graph, (struct how){.optimizer = it}, !adapts && has_same_arithmetic());
        compare(graph, (struct how){.optimizer = it, .clip_norm = 0.5}, false);
        compare(graph, (struct how){.optimizer = it, .clip_norm = 1e6},
                !adapts && has_same_arithmetic());
        compare(
            graph,
            (struct how){
                .optimizer = it, .has_averages = true, .has_parts = true, .keeps_statistics = true},
            !adapts && has_same_arithmetic());
        compare(graph, (struct how){.optimizer = it, .first_node = graph->head},
                !adapts && has_same_arithmetic());
    }
    tdmi_graph_free(graph);
}

/* A launch or two a step, not one a tensor. */
TEST(a_step_is_one_launch)
{
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    struct how how = {0};
    struct world it;
    open_world(&it, graph);
    assert_int_equal(tdmi_optimizer_find("adamw", &how.optimizer, NULL), TDM_OK);
    tdmi_shim_use((struct tdmi_shim_order){0});
    train(&it, &tdmi_backend_shim, how);
    assert_int_equal(tdmi_shim_facts().launches, n_steps);
    assert_int_equal(tdmi_optimizer_find("lamb", &how.optimizer, NULL), TDM_OK);
    how.clip_norm = 1.0;
    tdmi_shim_use((struct tdmi_shim_order){0});
    train(&it, &tdmi_backend_shim, how);
    assert_int_equal(tdmi_shim_facts().launches, 5 * n_steps);
    close_world(&it);
    tdmi_graph_free(graph);
}

TEST(too_little_memory_is_an_error)
{
    tdmi_graph *graph = network_new("convnet7", 16, 5);
    const struct tdmi_optimizer *sgd;
    struct world it;
    tdmi_device *device;
    tdmi_pool *pool;
    int n_refused = 0;
    open_world(&it, graph);
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    assert_int_equal(tdmi_backend_shim.device.open(0, &device, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(1, NULL, &pool, NULL), TDM_OK);
    float *const slots[TDMI_OPTIMIZER_SLOTS] = {it.arrays[FIRST]};
    tdm_status status = TDM_E_MEMORY;
    for (int n = 0; status != TDM_OK; n++) { /* first the GPU's memory, then the host's */
        tdmi_update *update = NULL;
        fake_runtime_limit(n == 0);
        tdmi_memory_fail_from(n);
        status = tdmi_update_open(graph, 0, &tdmi_backend_shim, device, sgd, pool,
                                  it.arrays[PARAMS], it.arrays[STATES], slots, &update, NULL);
        if (status == TDM_OK)
            status = tdmi_update_run(update, it.arrays[SUMS], 1.0f,
                                     (struct tdmi_update_rates){.learning_rate = 0.1f}, NULL);
        tdmi_memory_fail_from(0);
        fake_runtime_limit(0);
        assert_true(status == TDM_OK || status == TDM_E_MEMORY);
        n_refused += status != TDM_OK;
        tdmi_update_close(update);
    }
    assert_true(n_refused >= 9);
    tdmi_pool_free(pool);
    tdmi_backend_shim.device.close(device);
    close_world(&it);
    tdmi_graph_free(graph);
}

TEST_MAIN(NULL, NULL)
