/*
 * Whole networks against PyTorch in double (tests/fixtures/nn, made by
 * bench/peers/fixtures/make_fixtures.py): logits, loss, running statistics, and every gradient.
 * Weights and pictures are not stored: both sides draw them from the counter generator.
 */
#include "base/memory.h"
#include "base/hash/rng.h"
#include "graph/fixture.h"
#include "graph/executor.h"
#include "models/known_network.h"
#include "unit.h"

#include <math.h>

#define TOLERANCE 1e-4 /* relative to a tensor's norm */

enum { most_images = 16, most_classes = 10 };

struct network_run {
    uint64_t seed;
    int images, classes;
    tdmi_graph *graph;
    float *params, *states, *sums;
    uint8_t *pixels;
    const uint8_t *pictures[most_images];
    int32_t labels[most_images];
    struct tdmi_judgement judgements[most_images];
    float logits[most_images * most_classes];
    tdmi_plan *plan;
    tdmi_executor *lane;
};

/* Move the values that init sets to 0 or 1 by at most a quarter: zeros would hide mistakes. */
static void fill(struct network_run *it)
{
    tdmi_graph_init_values(it->graph, it->seed, it->params, it->states);
    for (int t = 0; t < it->graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &it->graph->params[t];
        tdmi_rng rng = tdmi_rng_at(it->seed, TDMI_RNG_TEST, 3, (uint64_t)t);
        for (int64_t i = 0; tensor->spec.init != TDMI_INIT_HE && i < tensor->n; i++)
            it->params[tensor->offset + i] += tdmi_rng_uniform(&rng, -0.25f, 0.25f);
    }
    int64_t image = tdmi_shape_values(it->graph->nodes[0].out);
    for (int i = 0; i < it->images; i++) {
        tdmi_rng rng = tdmi_rng_at(it->seed, TDMI_RNG_TEST, 1, (uint64_t)i);
        it->pictures[i] = it->pixels + i * image;
        it->labels[i] = i % it->classes;
        for (int64_t p = 0; p < image; p++)
            it->pixels[i * image + p] = (uint8_t)(tdmi_rng_u32(&rng) >> 24);
    }
}

static void run(struct network_run *it, const char *network, int size)
{
    tdm_error err = {0};
    it->graph = network_new(network, size, it->classes);
    assert_int_equal(tdmi_plan_new(it->graph, &tdmi_backend_ref, it->images, true, &it->plan, &err),
                     TDM_OK);
    assert_int_equal(tdmi_executor_open(it->plan, NULL, &it->lane, &err), TDM_OK);
    it->params = tdmi_alloc((size_t)it->graph->param_values, sizeof(float));
    it->states = tdmi_alloc((size_t)it->graph->state_values, sizeof(float));
    it->sums = tdmi_alloc((size_t)tdmi_graph_sums_values(it->graph), sizeof(float));
    it->pixels = tdmi_alloc((size_t)(it->images * tdmi_shape_values(it->graph->nodes[0].out)), 1);
    assert_true(it->params && it->states && it->sums && it->pixels);
    fill(it);
    struct tdmi_values values = {it->params, it->states};
    struct tdmi_group group = {.n = it->images,
                               .pixels = it->pictures,
                               .labels = it->labels,
                               .judgements = it->judgements};
    tdmi_executor_forward(it->lane, values, &group, it->sums);
    memcpy(it->logits, tdmi_executor_logits(it->lane), /* before backward takes their place */
           sizeof(float) * (size_t)(it->images * it->classes));
    for (int s = 0; s < it->plan->n_segments; s++)
        tdmi_executor_backward(it->lane, values, s, it->sums, NULL);
}

static void release(struct network_run *it)
{
    tdmi_executor_close(it->lane);
    tdmi_plan_free(it->plan);
    tdmi_free(it->params);
    tdmi_free(it->states);
    tdmi_free(it->sums);
    tdmi_free(it->pixels);
    tdmi_graph_free(it->graph);
}

static void near(const char *what, double got, double wanted, double limit)
{
    if (!(fabs(got - wanted) <= limit))
        fail_msg("%s is %.9g, wanted %.9g (within %.2g)", what, got, wanted, limit);
}

/* Norm, product with a vector of signs, 16 values. */
static void check_tensor(struct fixture *fixture, const char *word, uint64_t seed,
                         const struct tdmi_tensor *tensor, int index, uint32_t signs,
                         const float *values)
{
    char name[64];
    double wanted[18], norm = 0.0, product = 0.0;
    fixture_word(fixture, word, name, sizeof name);
    assert_string_equal(name, tensor->name);
    fixture_numbers(fixture, "numbers", wanted, 18);
    tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_TEST, signs, (uint64_t)index);
    for (int64_t i = 0; i < tensor->n; i++) {
        norm += (double)values[i] * (double)values[i];
        product += (double)values[i] * (tdmi_rng_u32(&rng) & 1 ? 1.0 : -1.0);
    }
    assert_true(wanted[0] > 0.0);
    near(name, sqrt(norm), wanted[0], TOLERANCE * wanted[0]);
    near(name, product, wanted[1], TOLERANCE * wanted[0] * sqrt((double)tensor->n));
    for (int i = 0; i < 16; i++)
        near(name, (double)values[i * tensor->n / 16], wanted[2 + i], TOLERANCE * wanted[0]);
}

static void check(const char *network, const char *file)
{
    struct network_run it = {0};
    struct fixture *fixture = fixture_open(file);
    double logits[most_images * most_classes];
    it.seed = (uint64_t)fixture_number(fixture, "seed");
    int size = (int)fixture_number(fixture, "size");
    it.images = (int)fixture_number(fixture, "images");
    it.classes = (int)fixture_number(fixture, "classes");
    assert_true(it.images <= most_images && it.classes <= most_classes);
    run(&it, network, size);

    int n_logits = it.images * it.classes;
    fixture_numbers(fixture, "logits", logits, n_logits);
    for (int i = 0; i < n_logits; i++)
        near("a logit", (double)it.logits[i], logits[i], TOLERANCE * (1.0 + fabs(logits[i])));
    double loss = fixture_number(fixture, "loss");
    const float *tail = it.sums + tdmi_graph_tail_at(it.graph);
    near("the loss", (double)tail[TDMI_TAIL_LOSS], loss, TOLERANCE * loss);
    assert_int_equal((int)tail[TDMI_TAIL_SAMPLES], it.images);

    assert_int_equal((int)fixture_number(fixture, "gradients"), it.graph->n_params);
    for (int t = 0; t < it.graph->n_params; t++)
        check_tensor(fixture, "gradient", it.seed, &it.graph->params[t], t, 2,
                     it.sums + it.graph->params[t].offset);
    assert_int_equal((int)fixture_number(fixture, "states"), it.graph->n_states);
    for (int t = 0; t < it.graph->n_states; t++)
        check_tensor(fixture, "state", it.seed, &it.graph->states[t], t, 4,
                     it.sums + tdmi_graph_state_sums_at(it.graph) + it.graph->states[t].offset);
    fixture_close(fixture);
    release(&it);
}

TEST(convnet7_gives_the_numbers_of_pytorch)
{
    check("convnet7", "nn/convnet7.txt");
}

TEST(lenet5_gives_the_numbers_of_pytorch)
{
    check("lenet5", "nn/lenet5.txt");
}

TEST_MAIN(NULL, NULL)
