/*
 * A network's rate without a loader: a batch of noise in memory goes through the training step, or
 * through the evaluator. The head of a feature extractor has two classes, which cost nothing, so
 * the whole inference graph stands for its features.
 */
#include "base/clock.h"
#include "base/hash/rng.h"
#include "base/scope.h"
#include "base/sized.h"
#include "models/network.h"
#include "optim/optimizer.h"
#include "tandem/event.h"
#include "tandem/train.h"
#include "train/evaluate/evaluator.h"
#include "train/step/step.h"
#include "train/step/update.h"
#include "tune/bench_ceiling.h"
#include "tune/bench_profile.h"
#include "tune/bench_rate.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { most_steps = 4096, least_steps = 3 };

struct bench {
    const struct tdm_bench_compute_options *options;
    bool is_training;
    struct tdmi_network network;
    const struct tdmi_backend *backend;
    enum tdmi_dtype storage; /* of activations */
    const struct tdmi_optimizer *optimizer;
    tdmi_device *device;
    tdmi_stream *stream;
    tdmi_pool *pool;
    int shard, n_executors;
    tdmi_graph *graph;
    tdmi_plan *plan;
    float *params, *states, *slots[TDMI_OPTIMIZER_SLOTS]; /* on the device */
    tdmi_step *step;
    tdmi_update *update;
    tdmi_evaluator *evaluator;

    struct tdmi_batch batch;
    uint8_t *pixels;
    void *device_pixels; /* NULL on the host */
    int32_t *labels;
    int64_t *items;
    struct tdmi_judgement *judgements;
    double *rates;
    bool is_queued; /* steps are, as training queues them on a device */
};

void tdm_bench_compute_options_init(struct tdm_bench_compute_options *options, size_t struct_bytes)
{
    static const struct tdm_bench_compute_options usual = {.model = "convnet7",
                                                           .batch = 32,
                                                           .classes = 1000,
                                                           .precision = "f32",
                                                           .device = "cpu",
                                                           .seconds = 10};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

static tdm_status check(const struct tdm_bench_compute_options *o, tdm_error *err)
{
    if (o->batch < 1 || o->batch > 65536 || o->image < 0 || o->image > 4096 || o->classes < 2 ||
        o->classes > 100000 || o->shard < 0 || o->threads < 0 ||
        !(o->seconds >= 0.5 && o->seconds <= 3600))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a network is measured with batches of 1 to 65536 images of up to 4096 "
                        "pixels, 2 to 100000 classes and for 0.5 to 3600 seconds; found %d, %d, %d "
                        "and %g",
                        o->batch, o->image, o->classes, o->seconds);
    if (o->has_frozen_base && o->mode != TDM_BENCH_TRAIN)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "measuring features with a frozen base: features are without training, so "
                        "all of the network is frozen; --mode train is accepted");
    return TDM_OK;
}

/* Choose the type of stored activations: f32, or bf16 where the backend has it (f16 needs a loss
 * scale that moves, which a single step does not have). */
static tdm_status read_precision(struct bench *it, tdm_error *err)
{
    const char *precision = it->options->precision;
    const bool has_bf16 = tdmi_backend_stores(it->backend, TDMI_DTYPE_BF16);
    const bool is_bf16 = strcmp(precision, "bf16") == 0;
    if (strcmp(precision, "f32") != 0 && strcmp(precision, "auto") != 0 && !(is_bf16 && has_bf16))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "measuring in the precision '%s': the device %s computes in f32%s; "
                        "f32%s or auto is accepted",
                        precision, it->options->device, has_bf16 ? " and bf16" : "",
                        has_bf16 ? ", bf16" : "");
    it->storage = is_bf16 ? TDMI_DTYPE_BF16 : TDMI_DTYPE_F32;
    return TDM_OK;
}

/* ---- opening ------------------------------------------------------------------------------- */

static tdm_status choose(struct bench *it, tdm_error *err)
{
    const struct tdm_bench_compute_options *o = it->options;
    int gpu;
    TDMI_TRY(tdmi_network_find(o->model, &it->network, err));
    TDMI_TRY(tdmi_backend_find(o->device, &it->backend, &gpu, err));
    TDMI_TRY(read_precision(it, err));
    TDMI_TRY(tdmi_optimizer_find(tdm_train_options_default().optimizer, &it->optimizer, err));
    TDM_TRY(it->backend->device.open(gpu, &it->device, err), err, "opening the device %s",
            o->device);
    TDM_TRY(it->backend->stream.open(it->device, &it->stream, err), err, "opening the device %s",
            o->device);
    TDM_TRY(tdmi_pool_new(o->threads, o->threads == 0, &it->pool, err), err, "starting threads");
    it->shard = o->shard                      ? o->shard
                : it->backend->device.is_host ? it->network.shard
                                              : o->batch; /* as training does */
    if (it->is_training && it->shard > o->batch)
        it->shard = o->batch;
    return TDM_OK;
}

static tdm_status open_graph(struct bench *it, tdm_error *err)
{
    struct tdmi_preprocess preprocess = it->network.preprocess;
    if (it->options->image > 0)
        preprocess.width = preprocess.height = it->options->image;
    TDM_TRY(tdmi_network_build(&it->network, &preprocess,
                               it->is_training ? it->options->classes : 2, &it->graph, err),
            err, "preparing the model");
    const int threads = tdmi_pool_threads(it->pool);
    const int team = !it->is_training ? tdmi_evaluator_team(it->graph, it->backend, threads)
                     : it->backend->device.is_host ? tdmi_team_largest(threads)
                                                   : 1;
    const struct tdmi_plan_options request = {
        .max_images = it->shard,
        .is_training = it->is_training,
        .storage = it->storage,
        .allows_tf32 = strcmp(it->options->precision, "auto") == 0,
        .device = it->device,
        .team = team,
        .is_apart = it->options->is_unfused,
        .first_trained = it->options->has_frozen_base ? it->graph->head : 0,
    };
    return TDM_WRAP(err, tdmi_plan_make(it->graph, it->backend, &request, &it->plan, err),
                    "planning");
}

static tdm_status device_values(struct bench *it, int64_t n, float **values, tdm_error *err)
{
    *values = it->backend->memory.alloc(it->device, sizeof(float) * (size_t)(n + 1));
    return *values ? TDM_OK
                   : TDM_FAIL(err, TDM_E_MEMORY, "no memory for %lld values on the device",
                              (long long)n);
}

static tdm_status open_values(struct bench *it, tdm_error *err)
{
    const tdmi_graph *graph = it->graph;
    const struct tdmi_memory_table *memory = &it->backend->memory;
    const int64_t n_params = graph->param_values, n_states = graph->state_values;
    TDMI_AT_END(tdmi_free_at) float *params = NULL;
    TDMI_AT_END(tdmi_free_at) float *states = NULL;
    TDMI_TRY(TDMI_NEW(params, n_params + 1, err));
    TDMI_TRY(TDMI_NEW(states, n_states + 1, err));
    TDMI_TRY(device_values(it, n_params, &it->params, err));
    TDMI_TRY(device_values(it, n_states, &it->states, err));
    for (int i = 0; i < it->optimizer->n_slots && it->is_training; i++)
        TDMI_TRY(device_values(it, n_params, &it->slots[i], err));
    tdmi_graph_init_values(graph, 1, params, states);
    TDMI_TRY(memory->upload(it->stream, it->params, params, sizeof(float) * (size_t)n_params, err));
    TDMI_TRY(memory->upload(it->stream, it->states, states, sizeof(float) * (size_t)n_states, err));
    return it->backend->stream.wait(it->stream, err);
}

static tdm_status open_runs(struct bench *it, tdm_error *err)
{
    int batch = it->options->batch;
    it->n_executors = (batch + it->shard - 1) / it->shard;
    if (it->n_executors > tdmi_pool_threads(it->pool))
        it->n_executors = tdmi_pool_threads(it->pool);
    if (!it->is_training) {
        TDM_TRY(tdmi_evaluator_open(it->plan, it->device, it->pool, batch, &it->evaluator, err),
                err, "preparing");
        return tdmi_evaluator_take(it->evaluator, (struct tdmi_values){it->params, it->states},
                                   err);
    }
    const struct tdmi_step_options step = {.max_batch = batch};
    TDM_TRY(tdmi_step_open(it->plan, it->device, it->pool, &step, &it->step, err), err,
            "preparing");
    TDM_TRY(tdmi_update_open(it->graph, it->plan->first_trained, it->backend, it->device,
                             it->optimizer, it->pool, it->params, it->states, it->slots,
                             &it->update, err),
            err, "preparing");
    it->is_queued = !it->backend->device.is_host && it->backend->update->run;
    if (it->is_queued)
        tdmi_update_use_stream(it->update, tdmi_step_stream(it->step));
    return TDM_OK;
}

static tdm_status make_batch(struct bench *it, tdm_error *err)
{
    int n = it->options->batch, classes = tdmi_graph_classes(it->graph);
    int64_t image = tdmi_shape_values(it->graph->nodes[0].out);
    TDMI_TRY(TDMI_NEW(it->pixels, n * image, err));
    TDMI_TRY(TDMI_NEW(it->labels, n, err));
    TDMI_TRY(TDMI_NEW(it->items, n, err));
    TDMI_TRY(TDMI_NEW(it->judgements, n, err));
    TDMI_TRY(TDMI_NEW(it->rates, most_steps, err));
    for (int i = 0; i < n; i++) {
        tdmi_rng rng = tdmi_rng_at(1, TDMI_RNG_SYNTH, 0, (uint64_t)i);
        for (int64_t p = 0; p < image; p++)
            it->pixels[i * image + p] = (uint8_t)(tdmi_rng_u32(&rng) >> 24);
        it->labels[i] = i % classes;
        it->items[i] = i;
    }
    it->batch = (struct tdmi_batch){.n = n,
                                    .values = it->pixels,
                                    .pixels = it->pixels,
                                    .labels = it->labels,
                                    .items = it->items};
    return TDM_OK;
}

/* On a device the images are uploaded once, so that a step's time is that of computing alone. */
static tdm_status place_batch(struct bench *it, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &it->backend->memory;
    const size_t bytes = (size_t)it->batch.n * tdmi_plan_sample_bytes(it->plan);
    if (it->backend->device.is_host)
        return TDM_OK;
    it->device_pixels = memory->alloc(it->device, bytes);
    if (!it->device_pixels)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %d images on the device", it->batch.n);
    it->batch.pixels = it->device_pixels;
    it->batch.is_on_device = true;
    TDMI_TRY(memory->upload(it->stream, it->device_pixels, it->pixels, bytes, err));
    return it->backend->stream.wait(it->stream, err);
}

static void release(struct bench *it)
{
    tdmi_update_close(it->update);
    tdmi_step_close(it->step);
    tdmi_evaluator_close(it->evaluator);
    float *values[] = {it->params, it->states, it->slots[0], it->slots[1]};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i])
            it->backend->memory.free(it->device, values[i]);
    if (it->device_pixels)
        it->backend->memory.free(it->device, it->device_pixels);
    tdmi_plan_free(it->plan);
    tdmi_graph_free(it->graph);
    tdmi_pool_free(it->pool);
    if (it->stream)
        it->backend->stream.close(it->stream);
    if (it->device)
        it->backend->device.close(it->device);
    tdmi_free(it->pixels);
    tdmi_free(it->labels);
    tdmi_free(it->items);
    tdmi_free(it->judgements);
    tdmi_free(it->rates);
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* So slow that noise teaches nothing: the values stay such as are met in practice. */
static struct tdmi_update_rates slow_rates(const struct bench *it)
{
    return (struct tdmi_update_rates){.learning_rate = 1e-6f,
                                      .momentum = (float)it->optimizer->momentum,
                                      .weight_decay = (float)it->optimizer->weight_decay};
}

/* With one wait, recorded and replayed. */
static tdm_status run_queued(struct bench *it, struct tdmi_update_rates rates, tdm_error *err)
{
    float tail[TDMI_TAIL_VALUES];
    TDM_TRY(tdmi_update_begin(it->update, (float)it->batch.n, rates, err), err, "an update");
    const struct tdmi_step_next next = tdmi_update_next(it->update);
    return TDM_WRAP(err, tdmi_step_run_queued(it->step, &next, tail, err), "a step");
}

static tdm_status run_step(struct bench *it, tdm_error *err)
{
    struct tdmi_values values = {it->params, it->states};
    if (!it->is_training)
        return tdmi_evaluator_batch(it->evaluator, &it->batch, NULL, NULL, NULL, err);
    const struct tdmi_update_rates rates = slow_rates(it);
    tdmi_step_begin(it->step, values, &it->batch, NULL);
    if (it->is_queued)
        return run_queued(it, rates, err);
    TDM_TRY(tdmi_step_run(it->step, 0, it->plan->n_segments - 1, err), err, "a step");
    TDM_TRY(tdmi_update_run(it->update, tdmi_step_sums(it->step), (float)it->batch.n, rates, err),
            err, "an update");
    return it->backend->stream.wait(it->stream, err);
}

static tdm_status measure_steps(struct bench *it, double seconds, struct tdm_bench_compute *result,
                                tdm_error *err)
{
    int64_t begin = 0;
    double cpu_s = 0.0;
    /* The first touches fresh memory and does not count; nor does one that is recorded. */
    for (int s = it->is_queued ? -2 : -1; s < most_steps; s++) {
        if (s >= least_steps && tdmi_clock_seconds_since(begin) > seconds)
            break;
        if (s == 0) {
            begin = tdmi_clock_ns();
            cpu_s = tdmi_cpu_seconds();
        }
        int64_t then = tdmi_clock_ns();
        TDM_TRY(run_step(it, err), err, "measuring %s", it->options->model);
        if (s >= 0)
            it->rates[result->steps++] = it->batch.n / tdmi_clock_seconds_since(then);
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while measuring");
    }
    cpu_s = tdmi_cpu_seconds() - cpu_s;
    if (cpu_s > 0.0)
        result->processor_rate = (double)it->batch.n * result->steps / cpu_s;
    result->rate = tdmi_bench_spread(it->rates, result->steps);
    result->milliseconds = 1e3 * it->batch.n / result->rate.median;
    return TDM_OK;
}

/* So many between two waits. */
static tdm_status update_in_a_row(struct bench *it, int n, tdm_error *err)
{
    const float *sums = tdmi_step_sums(it->step), images = (float)it->batch.n;
    const struct tdmi_update_rates rates = slow_rates(it);
    if (!it->is_queued) {
        for (int i = 0; i < n; i++)
            TDM_TRY(tdmi_update_run(it->update, sums, images, rates, err), err, "an update");
        return it->backend->stream.wait(it->stream, err);
    }
    TDM_TRY(tdmi_update_begin(it->update, images, rates, err), err, "an update");
    const struct tdmi_step_next next = tdmi_update_next(it->update);
    for (int i = 0; i < n; i++)
        next.queue(next.self, sums);
    return it->backend->stream.wait(tdmi_step_stream(it->step), err);
}

static tdm_status measure_update(struct bench *it, struct tdm_bench_compute *result, tdm_error *err)
{
    enum { rounds = 5, in_a_row = 8 };
    for (int r = 0; r < rounds; r++) {
        const int64_t begin = tdmi_clock_ns();
        TDM_TRY(update_in_a_row(it, in_a_row, err), err, "measuring the optimizer's step");
        const double seconds = tdmi_clock_seconds_since(begin) / in_a_row;
        if (r == 0 || seconds < result->update_seconds)
            result->update_seconds = seconds;
    }
    /* weights and slots are read and written, gradients read */
    const double arrays = 3.0 + 2.0 * it->optimizer->n_slots;
    result->update_bytes_per_s =
        arrays * (double)sizeof(float) * (double)it->graph->param_values / result->update_seconds;
    return TDM_OK;
}

/* Linux counts in KiB. */
static int64_t peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

static int64_t planned_bytes(const struct bench *it)
{
    const tdmi_graph *graph = it->graph;
    int64_t values = graph->param_values + graph->state_values;
    if (!it->is_training)
        return tdmi_evaluator_needs(it->plan, it->options->batch, tdmi_pool_threads(it->pool)) +
               values * (int64_t)sizeof(float);
    const struct tdmi_step_options step = {.max_batch = it->options->batch};
    values += it->optimizer->n_slots * graph->param_values;
    const struct tdmi_step_needs needs =
        tdmi_step_needs(it->plan, &step, tdmi_pool_threads(it->pool));
    return needs.activations + needs.gradients + values * (int64_t)sizeof(float);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void describe(const struct bench *it, struct tdm_bench_compute *result)
{
    double operations = 0.0;
    for (int i = 0; i < it->graph->n_nodes; i++)
        operations += tdmi_plan_node_operations(it->plan, i);
    result->operations_per_s = operations * result->rate.median;
    result->shard = it->shard;
    result->image = it->graph->nodes[0].out.w;
    result->threads = tdmi_pool_threads(it->pool);
    result->parameters = it->graph->parameters;
    result->planned_bytes = planned_bytes(it);
    result->peak_bytes = peak_bytes();
    snprintf(result->model, sizeof result->model, "%s", it->network.name);
    snprintf(result->backend, sizeof result->backend, "%s", it->backend->name);
}

static tdm_status measure(struct bench *it, struct tdm_bench_compute *result, tdm_error *err)
{
    double seconds = it->options->seconds, shard_seconds;
    TDM_TRY(measure_steps(it, seconds * 2 / 3, result, err), err, "measuring");
    describe(it, result);
    TDM_TRY(tdmi_ceiling_measure(it->plan, it->device, it->pool, it->shard, seconds / 3,
                                 &shard_seconds, err),
            err, "measuring");
    if (shard_seconds > 0.0)
        result->ceiling = result->threads * it->shard / shard_seconds;
    if (!it->options->has_profile)
        return TDM_OK;
    if (it->is_training && !it->options->has_frozen_base)
        TDM_TRY(measure_update(it, result, err), err, "measuring");
    const struct tdmi_profiled profiled = {.plan = it->plan,
                                           .device = it->device,
                                           .pool = it->pool,
                                           .values = {it->params, it->states},
                                           .n_executors = it->n_executors,
                                           .batch = &it->batch,
                                           .judgements = it->judgements};
    return tdmi_profile_nodes(&profiled, result, err);
}

tdm_status tdm_bench_compute(const struct tdm_bench_compute_options *options,
                             struct tdm_bench_compute *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_bench_compute_options, options, tdm_bench_compute_options_default(), err);
    TDMI_RESULT(tdm_bench_compute, result, err);
    TDMI_AT_END(release)
    struct bench it = {.options = options, .is_training = options->mode == TDM_BENCH_TRAIN};
    const int64_t begin = tdmi_clock_ns();
    TDMI_TRY(check(options, err));
    TDMI_TRY(choose(&it, err));
    TDMI_TRY(open_graph(&it, err));
    TDMI_TRY(open_values(&it, err));
    TDMI_TRY(open_runs(&it, err));
    result->start_milliseconds = 1e3 * tdmi_clock_seconds_since(begin);
    TDMI_TRY(make_batch(&it, err));
    TDMI_TRY(place_batch(&it, err));
    return measure(&it, result, err);
}

void tdm_bench_compute_release(struct tdm_bench_compute *result)
{
    tdmi_free(result->nodes);
    result->nodes = NULL;
    result->n_nodes = 0;
}
