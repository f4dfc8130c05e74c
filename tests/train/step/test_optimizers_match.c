/*
 * Every optimiser over the tensors of a network, as other programs define it: five steps from equal
 * weights on equal gradients end where PyTorch, or the paper's formula in double, ends
 * (tests/fixtures/optim/optimizers.txt, made by bench/peers/fixtures/make_optimizer_fixtures.py).
 */
#include "base/memory.h"
#include "base/hash/rng.h"
#include "graph/fixture.h"
#include "models/known_network.h"
#include "train/step/update.h"
#include "unit.h"

#include <math.h>

enum { seed = 2024, samples = 8 };

struct world {
    tdmi_graph *graph;
    float *params, *sums, *slots[TDMI_OPTIMIZER_SLOTS];
};

static void fill(float *values, const struct tdmi_tensor *tensor, uint32_t epoch, int index,
                 float bound)
{
    tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_TEST, epoch, (uint64_t)index);
    for (int64_t i = 0; i < tensor->n; i++)
        values[tensor->offset + i] = tdmi_rng_uniform(&rng, -bound, bound);
}

static void start(struct world *it)
{
    for (int t = 0; t < it->graph->n_params; t++)
        fill(it->params, &it->graph->params[t], 20, t, 0.5f);
    for (int k = 0; k < TDMI_OPTIMIZER_SLOTS; k++)
        memset(it->slots[k], 0, sizeof(float) * (size_t)it->graph->param_values);
}

/* Powers of two: sums of samples are exact. */
static void take_gradients(struct world *it, int step)
{
    static const float lengths[] = {1.0f, 0.25f, 0x1p-6f};
    for (int t = 0; t < it->graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &it->graph->params[t];
        fill(it->sums, tensor, (uint32_t)(21 + step), t, 1.0f);
        for (int64_t i = 0; i < tensor->n; i++)
            it->sums[tensor->offset + i] *= (float)samples * lengths[t % 3];
    }
}

static void open_world(struct world *it)
{
    it->graph = network_new("lenet5", 28, 10);
    const size_t n = (size_t)it->graph->param_values;
    it->params = tdmi_alloc(n, sizeof(float));
    it->sums = tdmi_alloc((size_t)tdmi_graph_sums_values(it->graph), sizeof(float));
    assert_true(it->params && it->sums);
    for (int k = 0; k < TDMI_OPTIMIZER_SLOTS; k++) {
        it->slots[k] = tdmi_alloc(n, sizeof(float));
        assert_non_null(it->slots[k]);
    }
}

static void close_world(struct world *it)
{
    tdmi_free(it->params);
    tdmi_free(it->sums);
    for (int k = 0; k < TDMI_OPTIMIZER_SLOTS; k++)
        tdmi_free(it->slots[k]);
    tdmi_graph_free(it->graph);
}

static void run(struct world *it, const struct tdmi_backend *backend, int threads,
                const struct tdmi_optimizer_choice *choice, const double *rates, int steps)
{
    tdmi_pool *pool;
    tdmi_update *update;
    assert_int_equal(tdmi_pool_new(threads, NULL, &pool, NULL), TDM_OK);
    assert_int_equal(tdmi_update_open(it->graph, 0, backend, NULL, choice->optimizer, pool,
                                      it->params, NULL, it->slots, &update, NULL),
                     TDM_OK);
    start(it);
    for (int step = 0; step < steps; step++) {
        take_gradients(it, step);
        const struct tdmi_update_rates now = {.learning_rate = (float)rates[0],
                                              .momentum = (float)rates[1],
                                              .weight_decay = (float)rates[2],
                                              .clip_norm = rates[3],
                                              .step = step + 1,
                                              .values = choice->values};
        assert_int_equal(tdmi_update_run(update, it->sums, (float)samples, now, NULL), TDM_OK);
    }
    tdmi_update_close(update);
    tdmi_pool_free(pool);
}

/* Length, product with signs, first, middle and last of how far a tensor went. */
static void measure(const struct world *it, int t, double moved[5], float *scratch)
{
    const struct tdmi_tensor *tensor = &it->graph->params[t];
    const float *after = it->params + tensor->offset;
    tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_TEST, 19, (uint64_t)t);
    double squares = 0.0, product = 0.0;
    fill(scratch, tensor, 20, t, 0.5f);
    const float *before = scratch + tensor->offset;
    for (int64_t i = 0; i < tensor->n; i++) {
        const double by = (double)after[i] - (double)before[i];
        squares += by * by;
        product += tdmi_rng_u32(&rng) & 1 ? by : -by;
    }
    moved[0] = sqrt(squares);
    moved[1] = product;
    moved[2] = (double)after[0] - (double)before[0];
    moved[3] = (double)after[tensor->n / 2] - (double)before[tensor->n / 2];
    moved[4] = (double)after[tensor->n - 1] - (double)before[tensor->n - 1];
}

static void check(const struct world *it, const char *option, const char *where,
                  double (*wanted)[5], float *scratch)
{
    for (int t = 0; t < it->graph->n_params; t++) {
        double moved[5];
        measure(it, t, moved, scratch);
        for (int k = 0; k < 5; k++) {
            /* Weights of f32 hold what a step adds to 3e-8; a product adds those of all values. */
            const double n = k < 2 ? sqrt((double)it->graph->params[t].n) : 1.0;
            const double off = 1e-5 * (k == 1 ? wanted[t][0] : fabs(wanted[t][k])) + 2e-7 * n;
            if (!(fabs(moved[k] - wanted[t][k]) <= off))
                fail_msg("%s on %s, %s: number %d is %.9g, wanted %.9g", option, where,
                         it->graph->params[t].name, k, moved[k], wanted[t][k]);
        }
    }
}

TEST(steps_end_where_other_programs_end)
{
    struct fixture *fixture = fixture_open("optim/optimizers.txt");
    const int n_cases = (int)fixture_number(fixture, "cases");
    const int steps = (int)fixture_number(fixture, "steps");
    const int tensors = (int)fixture_number(fixture, "tensors");
    struct world it;
    open_world(&it);
    assert_int_equal(tensors, it.graph->n_params);
    double(*wanted)[5] = calloc((size_t)tensors, sizeof *wanted);
    float *scratch = calloc((size_t)it.graph->param_values, sizeof *scratch);
    float *first = calloc((size_t)it.graph->param_values, sizeof *first);
    assert_true(wanted && scratch && first);
    bool is_seen[32] = {false};
    for (int c = 0; c < n_cases; c++) {
        char option[64], name[64];
        double rates[4];
        struct tdmi_optimizer_choice choice;
        fixture_word(fixture, "option", option, sizeof option);
        fixture_numbers(fixture, "rates", rates, 4);
        for (int t = 0; t < tensors; t++) {
            fixture_word(fixture, "tensor", name, sizeof name);
            assert_string_equal(name, it.graph->params[t].name);
            fixture_numbers(fixture, "moved", wanted[t], 5);
        }
        assert_int_equal(tdmi_optimizer_read(option, &choice, NULL), TDM_OK);
        for (int i = 0; tdmi_optimizer_at(i) != NULL; i++)
            is_seen[i] = is_seen[i] || tdmi_optimizer_at(i) == choice.optimizer;
        run(&it, &tdmi_backend_ref, 1, &choice, rates, steps);
        check(&it, option, "ref", wanted, scratch);
        memcpy(first, it.params, sizeof *first * (size_t)it.graph->param_values);
        run(&it, &tdmi_backend_cpu, 3, &choice, rates, steps);
        assert_memory_equal(it.params, first, sizeof *first * (size_t)it.graph->param_values);
    }
    for (int i = 0; tdmi_optimizer_at(i) != NULL; i++)
        if (!is_seen[i])
            fail_msg("no case is of %s", tdmi_optimizer_at(i)->name);
    free(wanted);
    free(scratch);
    free(first);
    close_world(&it);
    fixture_close(fixture);
}

TEST_MAIN(NULL, NULL)
