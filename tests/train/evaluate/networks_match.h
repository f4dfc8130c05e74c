/*
 * Whole networks against PyTorch in double (tests/fixtures/nn/match-*.txt and curve-*.txt, made by
 * tests/fixtures/make_networks.py, which says what they hold), with every backend of the build.
 * Batch norm takes the statistics of the whole batch: the batch is one group. Weights and pictures
 * are not stored: both sides draw them from the counter generator, each tensor from the stream that
 * its name numbers.
 *
 * What is compared of a gradient may be off by twice what PyTorch in f32 is, or by a thousandth of
 * its norm; every other number by 1e-4, relative to it where it is above 1.
 *
 * Under a sanitizer, which makes ref many times slower, the subject is memory and threads, and the
 * same code is walked in less time: fewer networks, fewer steps (sanitized.h).
 */
#pragma once

#include "base/memory.h"
#include "base/hash/rng.h"
#include "graph/fixture.h"
#include "models/known_network.h"
#include "graph/packed.h"
#include "optim/optimizer.h"
#include "sanitized.h"
#include "train/evaluate/evaluator.h"
#include "train/step/step.h"
#include "train/step/update.h"
#include "unit.h"

#include <math.h>

enum { most_images = 16, most_classes = 10, most_values = 64, most_steps = 100, most_batches = 4 };
/* "Epochs" of the streams of TDMI_RNG_TEST. */
enum { weights_epoch = 16, pixels_epoch = 17, signs_epoch = 18, colours_epoch = 19 };

#define TOLERANCE 1e-4
#define GRADIENT_TOLERANCE 1e-3
#define CURVE_TOLERANCE 0.01
#define NOTHING 1e-3 /* of f32's distance */

enum { curve_steps = is_sanitized ? 2 : most_steps };

struct network_run {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_stream *stream;
    tdmi_pool *pool;
    uint64_t seed;
    int images, classes, n_batches;
    struct tdmi_update_rates rates;
    tdmi_graph *graph;
    float *host_params, *host_states, *host_sums;
    float *params, *states, *slot; /* on the device */
    uint8_t *pixels;               /* of all batches */
    int32_t labels[most_batches * most_images];
    int64_t items[most_batches * most_images];
};

static uint64_t stream_of(const char *name) /* FNV-1a */
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 0x100000001B3u;
    return hash;
}

static void near(const char *what, double got, double wanted, double limit)
{
    if (!(fabs(got - wanted) <= limit))
        fail_msg("%s is %.9g, wanted %.9g (within %.2g)", what, got, wanted, limit);
}

static void *device_memory(const struct network_run *it, int64_t values)
{
    void *memory = it->backend->memory.alloc(it->device, (size_t)values * sizeof(float));
    assert_non_null(memory);
    return memory;
}

static void upload(const struct network_run *it, float *to, const float *from, int64_t values)
{
    assert_int_equal(
        it->backend->memory.upload(it->stream, to, from, (size_t)values * sizeof(float), NULL),
        TDM_OK);
    assert_int_equal(it->backend->stream.wait(it->stream, NULL), TDM_OK);
}

static void download(const struct network_run *it, float *to, const float *from, int64_t values)
{
    assert_int_equal(
        it->backend->memory.download(it->stream, to, from, (size_t)values * sizeof(float), NULL),
        TDM_OK);
    assert_int_equal(it->backend->stream.wait(it->stream, NULL), TDM_OK);
}

/* ---- what both sides draw ------------------------------------------------------------------ */

static void fill_tensor(struct network_run *it, const struct tdmi_tensor *tensor, double base,
                        double gain)
{
    tdmi_rng rng = tdmi_rng_at(it->seed, TDMI_RNG_TEST, weights_epoch, stream_of(tensor->name));
    float *values = it->host_params + tensor->offset, bound = 0.25f;
    int n_dims = tensor->spec.n_dims;
    if (n_dims > 1)
        bound = sqrtf(6.0f / (float)(tensor->n / tensor->spec.dims[n_dims - 1])) *
                (n_dims == 2 ? (float)gain : 1.0f);
    for (int64_t i = 0; i < tensor->n; i++)
        values[i] = (float)base + tdmi_rng_uniform(&rng, -bound, bound);
}

static void fill_weights(struct network_run *it, double shift, double gain)
{
    for (int node = 0; node < it->graph->n_nodes; node++)
        for (int p = 0; p < it->graph->nodes[node].n_params; p++) {
            const struct tdmi_tensor *tensor =
                &it->graph->params[it->graph->nodes[node].first_param + p];
            bool is_norm = it->graph->nodes[node].kind == TDMI_OP_BATCH_NORM;
            bool is_scale = tensor->spec.init == TDMI_INIT_ONE;
            fill_tensor(it, tensor, is_scale ? 1.0 : is_norm ? shift : 0.0, gain);
        }
    for (int t = 0; t < it->graph->n_states; t++)
        for (int64_t i = 0; i < it->graph->states[t].n; i++)
            it->host_states[it->graph->states[t].offset + i] =
                it->graph->states[t].spec.init == TDMI_INIT_ONE ? 1.0f : 0.0f;
    upload(it, it->params, it->host_params, it->graph->param_values);
    upload(it, it->states, it->host_states, it->graph->state_values);
}

/* Fine noise, each of half the range, on coarse noise, or on the colour of the class where there is
 * something to learn. */
static void fill_pictures(struct network_run *it, bool can_be_learned)
{
    enum { coarse = 8, most_coarse = 16 };
    const struct tdmi_shape shape = it->graph->nodes[0].out;
    const int n_coarse = (shape.w + coarse - 1) / coarse;
    assert_true(n_coarse <= most_coarse && shape.c <= 3);
    for (int i = 0; i < it->n_batches * it->images; i++) {
        uint32_t below[most_coarse * most_coarse * 3];
        tdmi_rng rng = tdmi_rng_at(it->seed, TDMI_RNG_TEST, pixels_epoch, (uint64_t)i);
        tdmi_rng colours = tdmi_rng_at(it->seed, TDMI_RNG_TEST, colours_epoch,
                                       (uint64_t)(can_be_learned ? i % it->classes : i));
        int n_below = can_be_learned ? shape.c : n_coarse * n_coarse * shape.c;
        for (int k = 0; k < n_below; k++)
            below[k] = tdmi_rng_u32(&colours) >> 25;
        it->labels[i] = i % it->classes;
        it->items[i] = i;
        uint8_t *pixel = it->pixels + i * tdmi_shape_values(shape);
        for (int y = 0; y < shape.h; y++)
            for (int x = 0; x < shape.w; x++)
                for (int c = 0; c < shape.c; c++) {
                    int at = can_be_learned ? 0 : y / coarse * n_coarse + x / coarse;
                    *pixel++ = (uint8_t)((tdmi_rng_u32(&rng) >> 25) + below[at * shape.c + c]);
                }
    }
}

/* ---- a network on a backend ---------------------------------------------------------------- */

/* Reads the head of the fixture. False: the backend lacks an op, which is said. */
static bool open_run(struct network_run *it, const struct tdmi_backend *backend,
                     struct fixture *fixture, const char *network, bool is_curve)
{
    it->backend = backend;
    it->seed = (uint64_t)fixture_number(fixture, "seed");
    int size = (int)fixture_number(fixture, "size");
    if (!is_curve)
        (void)fixture_number(fixture, "channels");
    it->images = (int)fixture_number(fixture, "images");
    it->classes = (int)fixture_number(fixture, "classes");
    double shift = fixture_number(fixture, "shift"), gain = fixture_number(fixture, "gain");
    double momentum = fixture_number(fixture, "momentum");
    it->rates = (struct tdmi_update_rates){.learning_rate = (float)fixture_number(fixture, "rate"),
                                           .momentum = 0.9f};
    it->n_batches = is_curve ? (int)fixture_number(fixture, "batches") : 1;
    assert_true(it->images <= most_images && it->classes <= most_classes &&
                it->n_batches <= most_batches);

    tdmi_plan *plan = NULL;
    tdm_error err = {0};
    it->graph = network_new(network, size, it->classes);
    it->graph->nodes[0].attrs.preprocess.scale = TDMI_SCALE_TF;
    for (int i = 0; i < it->graph->n_nodes; i++) {
        it->graph->nodes[i].attrs.momentum = momentum;
        it->graph->nodes[i].attrs.rate = 0.0; /* of dropout: nothing left to chance */
    }
    if (tdmi_plan_new(it->graph, backend, it->images, true, &plan, &err) == TDM_E_ABSENT) {
        print_message("%s: not with %s: %s\n", network, backend->name,
                      tdm_error_sentence(&err, 0)); /* listed, not skipped in silence */
        tdmi_graph_free(it->graph);
        return false;
    }
    tdmi_plan_free(plan);
    assert_int_equal(backend->device.open(0, &it->device, NULL), TDM_OK);
    assert_int_equal(backend->stream.open(it->device, &it->stream, NULL), TDM_OK);
    assert_int_equal(tdmi_pool_new(2, NULL, &it->pool, NULL), TDM_OK);
    int64_t n_params = it->graph->param_values, n_states = it->graph->state_values;
    int64_t image = tdmi_shape_values(it->graph->nodes[0].out);
    it->host_params = tdmi_alloc((size_t)n_params, sizeof(float));
    it->host_states = tdmi_alloc((size_t)n_states + 1, sizeof(float));
    it->host_sums = tdmi_alloc((size_t)tdmi_graph_sums_values(it->graph), sizeof(float));
    it->pixels = tdmi_alloc((size_t)(it->n_batches * it->images * image), 1);
    assert_true(it->host_params && it->host_states && it->host_sums && it->pixels);
    it->params = device_memory(it, n_params);
    it->slot = device_memory(it, n_params);
    it->states = device_memory(it, n_states + 1);
    fill_weights(it, shift, gain);
    fill_pictures(it, is_curve);
    return true;
}

static void close_run(struct network_run *it)
{
    it->backend->memory.free(it->device, it->params);
    it->backend->memory.free(it->device, it->slot);
    it->backend->memory.free(it->device, it->states);
    it->backend->stream.close(it->stream);
    it->backend->device.close(it->device);
    tdmi_pool_free(it->pool);
    tdmi_free(it->host_params);
    tdmi_free(it->host_states);
    tdmi_free(it->host_sums);
    tdmi_free(it->pixels);
    tdmi_graph_free(it->graph);
}

static struct tdmi_batch batch_of(const struct network_run *it, int index)
{
    int first = index * it->images;
    const uint8_t *pixels = it->pixels + first * tdmi_shape_values(it->graph->nodes[0].out);
    return (struct tdmi_batch){.n = it->images,
                               .values = pixels,
                               .pixels = pixels,
                               .labels = it->labels + first,
                               .items = it->items + first};
}

/* Forward and backward of the first batch: logits, and the sums on the host. */
static void run_once(struct network_run *it, float *logits)
{
    tdmi_plan *plan = NULL;
    tdmi_executor *lane = NULL;
    tdmi_packed *packed = NULL;
    const uint8_t *pictures[most_images];
    struct tdmi_judgement judgements[most_images];
    struct tdmi_values values = {it->params, it->states};
    int64_t image = tdmi_shape_values(it->graph->nodes[0].out);
    for (int i = 0; i < it->images; i++)
        pictures[i] = it->pixels + i * image;
    assert_int_equal(tdmi_plan_new(it->graph, it->backend, it->images, true, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_open(plan, it->device, &packed, NULL), TDM_OK);
    assert_int_equal(tdmi_packed_fill(packed, values, 0, it->pool, NULL), TDM_OK);
    assert_int_equal(tdmi_executor_open(plan, it->device, &lane, NULL), TDM_OK);
    tdmi_executor_use(lane, tdmi_packed_memory(packed));
    float *sums = device_memory(it, tdmi_graph_sums_values(it->graph));
    struct tdmi_group group = {
        .n = it->images, .pixels = pictures, .labels = it->labels, .judgements = judgements};
    tdmi_executor_forward(lane, values, &group, sums);
    download(it, logits, tdmi_executor_logits(lane), it->images * it->classes);
    for (int s = 0; s < plan->n_segments; s++)
        tdmi_executor_backward(lane, values, s, sums, NULL);
    download(it, it->host_sums, sums, tdmi_graph_sums_values(it->graph));
    it->backend->memory.free(it->device, sums);
    tdmi_executor_close(lane);
    tdmi_packed_close(packed);
    tdmi_plan_free(plan);
}

/* Without training, on the first batch. */
static void infer(struct network_run *it, const float *states, float *logits)
{
    tdmi_plan *plan = NULL;
    tdmi_evaluator *evaluator = NULL;
    struct tdmi_judgement judgements[most_images];
    float probabilities[most_images * most_classes];
    struct tdmi_batch batch = batch_of(it, 0);
    assert_int_equal(tdmi_plan_new(it->graph, it->backend, it->images, false, &plan, NULL), TDM_OK);
    assert_int_equal(tdmi_evaluator_open(plan, it->device, it->pool, it->images, &evaluator, NULL),
                     TDM_OK);
    assert_int_equal(tdmi_evaluator_take(evaluator, (struct tdmi_values){it->params, states}, NULL),
                     TDM_OK);
    assert_int_equal(
        tdmi_evaluator_batch(evaluator, &batch, judgements, probabilities, logits, NULL), TDM_OK);
    tdmi_evaluator_close(evaluator);
    tdmi_plan_free(plan);
}

/* The same with what run_once found as running statistics. */
static void infer_from_sums(struct network_run *it, float *logits)
{
    const float *sums = it->host_sums + tdmi_graph_state_sums_at(it->graph);
    TDMI_AT_END(tdmi_free_at)
    float *measured = tdmi_alloc((size_t)it->graph->state_values + 1, sizeof *measured);
    float *states = device_memory(it, it->graph->state_values + 1);
    assert_non_null(measured);
    for (int64_t i = 0; i < it->graph->state_values; i++)
        measured[i] = sums[i] / (float)it->images;
    upload(it, states, measured, it->graph->state_values);
    infer(it, states, logits);
    it->backend->memory.free(it->device, states);
}

/* Steps of SGD over the batches in turn; the mean loss of each, and the states on the host. */
static void train(struct network_run *it, int steps, double *losses)
{
    tdmi_plan *plan = NULL;
    tdmi_step *step = NULL;
    tdmi_update *update = NULL;
    const struct tdmi_optimizer *sgd = NULL;
    float tail[TDMI_TAIL_VALUES];
    assert_int_equal(tdmi_optimizer_find("sgd", &sgd, NULL), TDM_OK);
    assert_int_equal(tdmi_plan_new(it->graph, it->backend, it->images, true, &plan, NULL), TDM_OK);
    const struct tdmi_step_options options = {.max_batch = it->images};
    assert_int_equal(tdmi_step_open(plan, it->device, it->pool, &options, &step, NULL), TDM_OK);
    assert_int_equal(tdmi_update_open(it->graph, 0, it->backend, it->device, sgd, it->pool,
                                      it->params, it->states, &it->slot, &update, NULL),
                     TDM_OK);
    for (int s = 0; s < steps; s++) {
        struct tdmi_batch batch = batch_of(it, s % it->n_batches);
        tdmi_step_begin(step, (struct tdmi_values){it->params, it->states}, &batch, NULL);
        assert_int_equal(tdmi_step_run(step, 0, plan->n_segments - 1, NULL), TDM_OK);
        const float *sums = tdmi_step_sums(step);
        download(it, tail, sums + tdmi_graph_tail_at(it->graph), TDMI_TAIL_VALUES);
        losses[s] = (double)tail[TDMI_TAIL_LOSS] / it->images;
        assert_int_equal(tdmi_update_run(update, sums, (float)it->images, it->rates, NULL), TDM_OK);
    }
    download(it, it->host_states, it->states, it->graph->state_values);
    tdmi_update_close(update);
    tdmi_step_close(step);
    tdmi_plan_free(plan);
}

/* ---- checks -------------------------------------------------------------------------------- */

static const struct tdmi_tensor *find(const struct tdmi_tensor *tensors, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    fail_msg("the graph has no %s", name);
    return NULL;
}

/* How far a number may be off that is no gradient. */
static double limit_of(double wanted)
{
    return TOLERANCE * fmax(1.0, fabs(wanted));
}

/* Norm, product with a vector of signs, how far f32 may be off, up to 64 values. */
struct wanted_tensor {
    const struct tdmi_tensor *tensor;
    int n_picks;
    double norm, product, distance, picks[most_values];
};

static struct wanted_tensor read_tensor(struct fixture *fixture, const char *word,
                                        const struct tdmi_tensor *tensors, int n_tensors)
{
    char name[64];
    double numbers[3 + most_values];
    fixture_word(fixture, word, name, sizeof name);
    const struct tdmi_tensor *tensor = find(tensors, n_tensors, name);
    struct wanted_tensor wanted = {tensor, (int)fmin((double)tensor->n, most_values), 0, 0, 0, {0}};
    fixture_numbers(fixture, "numbers", numbers, 3 + wanted.n_picks);
    wanted.norm = numbers[0];
    wanted.product = numbers[1];
    wanted.distance = numbers[2];
    memcpy(wanted.picks, numbers + 3, sizeof wanted.picks);
    return wanted;
}

static void measure(const struct network_run *it, const struct tdmi_tensor *tensor,
                    const float *values, double *norm, double *product)
{
    tdmi_rng rng = tdmi_rng_at(it->seed, TDMI_RNG_TEST, signs_epoch, stream_of(tensor->name));
    double squares = 0.0;
    *product = 0.0;
    for (int64_t i = 0; i < tensor->n; i++) {
        squares += (double)values[i] * (double)values[i];
        *product += (double)values[i] * (tdmi_rng_u32(&rng) & 1 ? 1.0 : -1.0);
    }
    *norm = sqrt(squares);
}

/* Where a gradient is nothing, such as that of a shift that the next batch norm takes away, f32
 * leaves roundings of large values. Their norm is then all their distance from f64, and held to
 * twice PyTorch's like any other. That bounds their product with signs by the root of the number
 * of values times as much and by no less (ref's is 2.7 norms of its own, ResNet-50's bn1.bias,
 * because roundings of many channels have causes in common), so it is not looked at. 28 of the 642
 * gradients are such; for them zero would pass, too. */
static void check_gradient(struct network_run *it, struct fixture *fixture)
{
    const struct wanted_tensor wanted =
        read_tensor(fixture, "gradient", it->graph->params, it->graph->n_params);
    const struct tdmi_tensor *tensor = wanted.tensor;
    const float *values = it->host_sums + tensor->offset;
    const double limit = fmax(2.0 * wanted.distance, GRADIENT_TOLERANCE * wanted.norm);
    double norm, product;
    measure(it, tensor, values, &norm, &product);
    near(tensor->name, norm, wanted.norm, limit);
    if (wanted.norm > NOTHING * wanted.distance)
        near(tensor->name, product, wanted.product, limit);
    for (int i = 0; i < wanted.n_picks; i++)
        near(tensor->name, (double)values[i * tensor->n / wanted.n_picks], wanted.picks[i], limit);
}

static void check_state(struct network_run *it, struct fixture *fixture)
{
    const struct wanted_tensor wanted =
        read_tensor(fixture, "state", it->graph->states, it->graph->n_states);
    const struct tdmi_tensor *tensor = wanted.tensor;
    const float *values = it->host_states + tensor->offset;
    double norm, product;
    measure(it, tensor, values, &norm, &product);
    near(tensor->name, norm, wanted.norm, limit_of(wanted.norm));
    near(tensor->name, product, wanted.product, limit_of(wanted.norm));
    for (int i = 0; i < wanted.n_picks; i++)
        near(tensor->name, (double)values[i * tensor->n / wanted.n_picks], wanted.picks[i],
             limit_of(wanted.picks[i]));
}

static void check_logits(struct network_run *it, struct fixture *fixture, const char *word,
                         const float *logits)
{
    double wanted[most_images * most_classes];
    int n = it->images * it->classes;
    fixture_numbers(fixture, word, wanted, n);
    for (int i = 0; i < n; i++)
        near(word, (double)logits[i], wanted[i], limit_of(wanted[i]));
}

static void check_match(struct network_run *it, struct fixture *fixture)
{
    enum { n_logits = most_images * most_classes };
    float first[n_logits], inferred[n_logits], trained[n_logits];
    double losses[most_steps], wanted[most_steps];
    const tdmi_graph *graph = it->graph;
    int steps = (int)fixture_number(fixture, "steps");
    assert_true(steps <= most_steps);
    run_once(it, first);
    infer_from_sums(it, inferred);
    train(it, steps, losses);
    infer(it, it->states, trained);
    check_logits(it, fixture, "logits", first);
    check_logits(it, fixture, "infer_logits", inferred);
    check_logits(it, fixture, "trained_logits", trained);
    assert_int_equal((int)fixture_number(fixture, "gradients"), graph->n_params);
    for (int t = 0; t < graph->n_params; t++)
        check_gradient(it, fixture);
    fixture_numbers(fixture, "losses", wanted, steps);
    for (int s = 0; s < steps; s++)
        near("a loss", losses[s], wanted[s], limit_of(wanted[s]));
    assert_int_equal((int)fixture_number(fixture, "states"), graph->n_states);
    for (int t = 0; t < graph->n_states; t++)
        check_state(it, fixture);
}

static void check_curve(struct network_run *it, struct fixture *fixture)
{
    double losses[most_steps], wanted[most_steps];
    int steps = (int)fixture_number(fixture, "steps");
    assert_true(steps <= most_steps);
    fixture_numbers(fixture, "losses", wanted, steps);
    steps = steps < curve_steps ? steps : curve_steps;
    train(it, steps, losses);
    for (int s = 0; s < steps; s++)
        near("a loss of the curve", losses[s], wanted[s], CURVE_TOLERANCE * wanted[s]);
}

static inline void check(const char *kind, const char *network)
{
    char path[64];
    bool is_curve = strcmp(kind, "curve") == 0;
    snprintf(path, sizeof path, "nn/%s-%s.txt", kind, network);
    for (int i = 0; tdmi_backend_at(i); i++) {
        struct network_run it = {0};
        struct fixture *fixture = fixture_open(path);
        print_message("# %s with %s\n", network, tdmi_backend_at(i)->name);
        if (open_run(&it, tdmi_backend_at(i), fixture, network, is_curve)) {
            if (is_curve)
                check_curve(&it, fixture);
            else
                check_match(&it, fixture);
            close_run(&it);
        }
        fixture_close(fixture);
    }
}

/* A sanitizer runs only the quick ones. */
#define MATCHES(is_quick, function, network)                                    \
    TEST_IF(is_quick || !is_sanitized, function##_gives_the_numbers_of_pytorch) \
    {                                                                           \
        check("match", network);                                                \
    }
#define LEARNS(function, network)         \
    TEST(function##_learns_as_in_pytorch) \
    {                                     \
        check("curve", network);          \
    }
