/*
 * Checks of whole networks: the gradient of everything at once, a short training whose bits must
 * not depend on the number of threads, and a training that no memory holds.
 */
#include "base/hash/rng.h"
#include "base/scope.h"
#include "models/network.h"
#include "train/selftest/checks.h"
#include "train/step/step.h"
#include "train/step/update.h"
#include "optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { classes = 3, batch = 11, shard = 4, steps = 30, recorded_steps = 6, seed = 20 };

/* Slow enough that what rounding does stays small: a change of LeNet-5's first weights by their
 * last bit in bf16 moves the third loss by 2 %; with a rate of 0.02 it was a fifth. */
static const struct tdmi_update_rates rates = {
    .learning_rate = 0.005f, .momentum = 0.9f, .weight_decay = 1e-4f};

/* A small training in memory: network, values, one batch of images. */
struct fixture {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    enum tdmi_dtype storage; /* of activations */
    int shard;
    tdmi_stream *stream;
    tdmi_pool *pool;
    tdmi_graph *graph;
    tdmi_plan *plan;
    tdmi_step *step;
    tdmi_update *update;
    float *params, *states, *slots[TDMI_OPTIMIZER_SLOTS]; /* on the device */
    float *host_params, *host_states, *host_sums;
    uint8_t *pixels;
    int32_t labels[batch];
    int64_t items[batch];
    tdmi_arena arena;
};

/* Images that are easy to classify: each class lights another third of the rows, with noise. Two of
 * eleven are marked as skipped, so one group is ragged. */
static void paint(struct fixture *it)
{
    struct tdmi_shape shape = it->graph->nodes[0].out;
    for (int i = 0; i < batch; i++) {
        tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_TEST, 1, (uint64_t)i);
        int label = i % classes;
        uint8_t *picture = it->pixels + i * tdmi_shape_values(shape);
        for (int y = 0; y < shape.h; y++)
            for (int x = 0; x < shape.w * shape.c; x++)
                picture[y * shape.w * shape.c + x] =
                    (uint8_t)(tdmi_rng_below(&rng, 90) +
                              (y * classes / shape.h == label ? 150 : 20));
        it->labels[i] = i == 5 || i == 9 ? -1 : label;
        it->items[i] = i;
    }
}

static tdm_status reserve(struct fixture *it, tdm_error *err)
{
    const tdmi_graph *graph = it->graph;
    const struct tdmi_memory_table *memory = &it->backend->memory;
    size_t params = sizeof(float) * (size_t)graph->param_values;
    size_t states = sizeof(float) * (size_t)(graph->state_values + 1);
    size_t sums = sizeof(float) * (size_t)tdmi_graph_sums_values(graph);
    it->params = memory->alloc(it->device, params);
    it->states = memory->alloc(it->device, states);
    it->slots[0] = memory->alloc(it->device, params);
    it->host_params = tdmi_arena_alloc(&it->arena, params, 1);
    it->host_states = tdmi_arena_alloc(&it->arena, states, 1);
    it->host_sums = tdmi_arena_alloc(&it->arena, sums, 1);
    it->pixels =
        tdmi_arena_alloc(&it->arena, (size_t)(batch * tdmi_shape_values(graph->nodes[0].out)), 1);
    TDMI_CHECK_MEMORY(it->params && it->states && it->slots[0] && it->host_params &&
                          it->host_states && it->host_sums && it->pixels,
                      err);
    return TDM_OK;
}

/* Copy weights and running statistics to the device (true) or back. */
static tdm_status move_values(struct fixture *it, bool is_upload, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &it->backend->memory;
    const size_t params = sizeof(float) * (size_t)it->graph->param_values;
    const size_t states = sizeof(float) * (size_t)it->graph->state_values;
    if (is_upload) {
        TDMI_TRY(memory->upload(it->stream, it->params, it->host_params, params, err));
        TDMI_TRY(memory->upload(it->stream, it->states, it->host_states, states, err));
    } else {
        TDMI_TRY(memory->download(it->stream, it->host_params, it->params, params, err));
        TDMI_TRY(memory->download(it->stream, it->host_states, it->states, states, err));
    }
    return it->backend->stream.wait(it->stream, err);
}

static tdm_status open_fixture(struct fixture *it, const char *network, int size, int threads,
                               tdm_error *err)
{
    struct tdmi_network known;
    const struct tdmi_optimizer *optimizer;
    TDMI_TRY(tdmi_network_find(network, &known, err));
    TDMI_TRY(tdmi_optimizer_find("sgd", &optimizer, err));
    struct tdmi_preprocess preprocess = known.preprocess;
    preprocess.width = preprocess.height = size;
    TDMI_TRY(it->backend->stream.open(it->device, &it->stream, err));
    TDMI_TRY(tdmi_pool_new(threads, NULL, &it->pool, err));
    TDMI_TRY(tdmi_network_build(&known, &preprocess, classes, &it->graph, err));
    const struct tdmi_plan_options request = {
        .max_images = it->shard, .is_training = true, .storage = it->storage, .device = it->device};
    TDMI_TRY(tdmi_plan_make(it->graph, it->backend, &request, &it->plan, err));
    TDMI_TRY(reserve(it, err));
    TDMI_TRY(tdmi_step_open(it->plan, it->device, it->pool,
                            &(struct tdmi_step_options){.max_batch = batch}, &it->step, err));
    TDMI_TRY(tdmi_update_open(it->graph, 0, it->backend, it->device, optimizer, it->pool,
                              it->params, it->states, it->slots, &it->update, err));
    tdmi_graph_init_values(it->graph, seed, it->host_params, it->host_states);
    paint(it);
    return move_values(it, true, err);
}

static void close_fixture(struct fixture *it)
{
    tdmi_update_close(it->update);
    tdmi_step_close(it->step);
    tdmi_plan_free(it->plan);
    tdmi_graph_free(it->graph);
    tdmi_pool_free(it->pool);
    it->backend->memory.free(it->device, it->params);
    it->backend->memory.free(it->device, it->states);
    it->backend->memory.free(it->device, it->slots[0]);
    it->backend->stream.close(it->stream);
    tdmi_arena_release(&it->arena);
}

/* Forward and backward of the batch; the sums are downloaded. */
static tdm_status run_step(struct fixture *it, tdm_error *err)
{
    struct tdmi_batch pictures = {
        .n = batch, .pixels = it->pixels, .labels = it->labels, .items = it->items};
    struct tdmi_values values = {it->params, it->states};
    tdmi_step_begin(it->step, values, &pictures, NULL);
    TDMI_TRY(tdmi_step_run(it->step, 0, it->plan->n_segments - 1, err));
    TDMI_TRY(it->backend->memory.download(it->stream, it->host_sums, tdmi_step_sums(it->step),
                                          sizeof(float) * (size_t)tdmi_graph_sums_values(it->graph),
                                          err));
    return it->backend->stream.wait(it->stream, err);
}

static float tail_of(const struct fixture *it, int what)
{
    return it->host_sums[tdmi_graph_tail_at(it->graph) + what];
}

/* ---- gradient --------------------------------------------------------------------------- */

static float direction(uint64_t i)
{
    tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_TEST, 2, i);
    return tdmi_rng_below(&rng, 2) ? 1.0f : -1.0f;
}

static tdm_status loss_beside(struct fixture *it, const float *centre, float step, double *loss,
                              tdm_error *err)
{
    for (int64_t i = 0; i < it->graph->param_values; i++)
        it->host_params[i] = centre[i] + step * direction((uint64_t)i);
    TDMI_TRY(move_values(it, true, err));
    TDMI_TRY(run_step(it, err));
    *loss = (double)tail_of(it, TDMI_TAIL_LOSS);
    return TDM_OK;
}

static tdm_status network_gradient(struct fixture *it, struct tdmi_check *check, tdm_error *err)
{
    const float step = 1.0f / 65536;
    double slope = 0.0, size = 0.0, above, below;
    TDMI_AT_END(tdmi_free_at) float *centre = NULL;
    TDMI_TRY(TDMI_NEW(centre, it->graph->param_values, err));
    memcpy(centre, it->host_params, sizeof(float) * (size_t)it->graph->param_values);
    TDMI_TRY(run_step(it, err));
    for (int t = 0; t < it->graph->n_params; t++) {
        const struct tdmi_tensor *tensor = &it->graph->params[t];
        for (int64_t i = tensor->offset; i < tensor->offset + tensor->n; i++) {
            slope += (double)it->host_sums[i] * (double)direction((uint64_t)i);
            size += (double)it->host_sums[i] * (double)it->host_sums[i];
        }
    }
    TDMI_TRY(loss_beside(it, centre, step, &above, err));
    TDMI_TRY(loss_beside(it, centre, -step, &below, err));
    double difference = (above - below) / (2.0 * (double)step);
    double limit = 0.02 * (fabs(slope) + 0.1 * sqrt(size));
    check->has_passed = fabs(difference - slope) <= limit && size > 0.0;
    if (!check->has_passed)
        snprintf(check->detail, sizeof check->detail,
                 "slope along a random direction is %.6g, central difference %.6g (within %.2g)",
                 slope, difference, limit);
    return TDM_OK;
}

tdm_status tdmi_check_network_gradient(const struct tdmi_backend *backend, tdmi_device *device,
                                       const char *network, int size, struct tdmi_check *check,
                                       tdm_error *err)
{
    TDMI_AT_END(close_fixture)
    struct fixture it = {.backend = backend, .device = device, .shard = shard};
    *check = (struct tdmi_check){.has_passed = true};
    TDM_TRY(open_fixture(&it, network, size, 1, err), err, "gradient of %s", network);
    return TDM_WRAP(err, network_gradient(&it, check, err), "gradient of %s", network);
}

/* ---- a short training ------------------------------------------------------------------- */

static tdm_status train(struct fixture *it, int n_steps, float *losses, tdm_error *err)
{
    for (int s = 0; s < n_steps; s++) {
        TDM_TRY(run_step(it, err), err, "step %d", s + 1);
        losses[s] = tail_of(it, TDMI_TAIL_LOSS) / tail_of(it, TDMI_TAIL_SAMPLES);
        TDM_TRY(tdmi_update_run(it->update, tdmi_step_sums(it->step),
                                tail_of(it, TDMI_TAIL_SAMPLES), rates, err),
                err, "step %d", s + 1);
    }
    return move_values(it, false, err);
}

static bool equal_bits(const float *a, const float *b, int64_t n)
{
    return memcmp(a, b, sizeof(float) * (size_t)n) == 0;
}

/* Do both trainings end with the same bits? */
static bool is_same_training(const struct fixture *a, const struct fixture *b, const float *losses,
                             const float *again, int n_steps)
{
    return equal_bits(losses, again, n_steps) &&
           equal_bits(a->host_params, b->host_params, a->graph->param_values) &&
           equal_bits(a->host_states, b->host_states, a->graph->state_values);
}

static void compare_trainings(const struct fixture *one, const struct fixture *three,
                              const float *losses, const float *again, const double *goldens,
                              struct tdmi_check *check)
{
    const double limit =
        one->storage == TDMI_DTYPE_F32 ? TDMI_TOLERANCE_GOLDEN : TDMI_TOLERANCE_GOLDEN_BF16;
    const bool is_equal = is_same_training(one, three, losses, again, steps);
    check->has_passed = false;
    for (int s = 0; s < TDMI_GOLDENS; s++) {
        double got = (double)losses[s];
        if (!(fabs(got - goldens[s]) <= limit * goldens[s])) {
            snprintf(check->detail, sizeof check->detail,
                     "the loss of step %d is %.6g, expected %.6g (within %g of it)", s + 1, got,
                     goldens[s], limit);
            return;
        }
    }
    check->has_passed = is_equal && losses[steps - 1] < 0.2f * losses[0];
    if (!check->has_passed)
        snprintf(check->detail, sizeof check->detail,
                 "one and three threads give %s bits; the loss went from %.6g to %.6g (expected: "
                 "to a fifth)",
                 is_equal ? "equal" : "different", (double)losses[0], (double)losses[steps - 1]);
}

static tdm_status train_twice(struct fixture *one, struct fixture *three, const char *network,
                              int size, const double *goldens, struct tdmi_check *check,
                              tdm_error *err)
{
    float losses[steps], again[steps];
    TDMI_TRY(open_fixture(one, network, size, 1, err));
    TDMI_TRY(open_fixture(three, network, size, 3, err));
    TDMI_TRY(train(one, steps, losses, err));
    TDMI_TRY(train(three, steps, again, err));
    compare_trainings(one, three, losses, again, goldens, check);
    return TDM_OK;
}

tdm_status tdmi_check_training(const struct tdmi_backend *backend, tdmi_device *device,
                               const char *network, int size, enum tdmi_dtype storage,
                               const double goldens[TDMI_GOLDENS], struct tdmi_check *check,
                               tdm_error *err)
{
    TDMI_AT_END(close_fixture)
    struct fixture one = {.backend = backend, .device = device, .storage = storage, .shard = shard};
    TDMI_AT_END(close_fixture) struct fixture three = one;
    *check = (struct tdmi_check){.has_passed = true};
    return TDM_WRAP(err, train_twice(&one, &three, network, size, goldens, check, err),
                    "a short training of %s", network);
}

/* ---- recorded and replayed -------------------------------------------------------------- */

bool tdmi_check_can_record(const struct tdmi_backend *backend)
{
    return !backend->device.is_host && backend->stream.capture_begin && backend->update->run;
}

/* The same steps as training queues them. */
static tdm_status train_queued(struct fixture *it, float *losses, tdm_error *err)
{
    const struct tdmi_batch pictures = {
        .n = batch, .pixels = it->pixels, .labels = it->labels, .items = it->items};
    const struct tdmi_values values = {it->params, it->states};
    tdmi_update_use_stream(it->update, tdmi_step_stream(it->step));
    for (int s = 0; s < recorded_steps; s++) {
        float tail[TDMI_TAIL_VALUES];
        tdmi_step_begin(it->step, values, &pictures, NULL);
        TDM_TRY(tdmi_update_begin(it->update, (float)tdmi_step_images(it->step), rates, err), err,
                "step %d", s + 1);
        const struct tdmi_step_next next = tdmi_update_next(it->update);
        TDM_TRY(tdmi_step_run_queued(it->step, &next, tail, err), err, "step %d", s + 1);
        losses[s] = tail[TDMI_TAIL_LOSS] / tail[TDMI_TAIL_SAMPLES];
    }
    return move_values(it, false, err);
}

/* The same steps one by one, and recorded and replayed. */
static tdm_status train_recorded(struct fixture *one_by_one, struct fixture *recorded,
                                 const char *network, int size, struct tdmi_check *check,
                                 tdm_error *err)
{
    float losses[recorded_steps], again[recorded_steps];
    TDMI_TRY(open_fixture(one_by_one, network, size, 1, err));
    TDMI_TRY(open_fixture(recorded, network, size, 1, err));
    TDM_TRY(train(one_by_one, recorded_steps, losses, err), err, "steps one by one");
    TDM_TRY(train_queued(recorded, again, err), err, "steps that are recorded");
    const int64_t replays = tdmi_step_replays(recorded->step);
    const bool is_equal = is_same_training(one_by_one, recorded, losses, again, recorded_steps);
    check->has_passed = is_equal && replays >= recorded_steps - 1;
    if (!check->has_passed)
        snprintf(check->detail, sizeof check->detail,
                 "groups of %d: %lld of %d steps were replayed (expected: %d or more), with %s "
                 "bits",
                 recorded->shard, (long long)replays, recorded_steps, recorded_steps - 1,
                 is_equal ? "equal" : "different");
    return TDM_OK;
}

tdm_status tdmi_check_recording(const struct tdmi_backend *backend, tdmi_device *device,
                                const char *network, int size, struct tdmi_check *check,
                                tdm_error *err)
{
    static const int groups[] = {batch, shard};
    *check = (struct tdmi_check){.has_passed = true};
    for (int k = 0; k < 2 && check->has_passed; k++) {
        TDMI_AT_END(close_fixture)
        struct fixture one_by_one = {.backend = backend, .device = device, .shard = groups[k]};
        TDMI_AT_END(close_fixture) struct fixture recorded = one_by_one;
        TDM_TRY(train_recorded(&one_by_one, &recorded, network, size, check, err), err,
                "recorded steps of %s", network);
    }
    return TDM_OK;
}

/* ---- too much memory is an error, and the device works afterwards ------------------------ */

/* MobileNetV2 keeps more than 8 MB an image, so this is beyond the 2^47 bytes of any address space
 * here: no system can overcommit it. */
enum { too_many = 1 << 27, large_image = 224 };

TDMI_POINTER_RELEASE(tdmi_step, tdmi_step_close)

/* Prepare a first step that no memory holds. */
static tdm_status prepare_too_much(const struct tdmi_backend *backend, tdmi_device *device,
                                   tdm_error *err)
{
    struct tdmi_network network;
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
    TDMI_AT_END(tdmi_pool_free_at) tdmi_pool *pool = NULL;
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *plan = NULL;
    TDMI_AT_END(tdmi_step_close_at) tdmi_step *step = NULL;
    const struct tdmi_plan_options request = {.max_images = too_many, .is_training = true};
    TDM_TRY(tdmi_network_find("mobilenetv2", &network, err), err,
            "preparing a step that no memory holds");
    struct tdmi_preprocess preprocess = network.preprocess;
    preprocess.width = preprocess.height = large_image;
    TDMI_TRY(tdmi_network_build(&network, &preprocess, classes, &graph, err));
    TDMI_TRY(tdmi_pool_new(1, NULL, &pool, err));
    TDMI_TRY(tdmi_plan_make(graph, backend, &request, &plan, err));
    return tdmi_step_open(plan, device, pool, &(struct tdmi_step_options){.max_batch = too_many},
                          &step, err);
}

tdm_status tdmi_check_memory(const struct tdmi_backend *backend, tdmi_device *device,
                             struct tdmi_check *check, tdm_error *err)
{
    const tdm_status status = prepare_too_much(backend, device, NULL);
    *check = (struct tdmi_check){.has_passed = status == TDM_E_MEMORY};
    if (status == TDM_E_ABSENT) /* an op is missing: nothing is known of memory */
        return TDM_FAIL(err, status, "the backend %s lacks an op of MobileNetV2", backend->name);
    if (!check->has_passed) {
        snprintf(check->detail, sizeof check->detail,
                 "a training of %d images at once returned '%s'; expected too little memory",
                 too_many, tdm_status_text(status));
        return TDM_OK;
    }
    return tdmi_check_match(backend, device, tdmi_case_at(0), check, err);
}
