/* Opening a network for measurements, and running it. */
#include "tune/bench_network.h"
#include "base/clock.h"
#include "base/hash/rng.h"
#include "base/scope.h"
#include "tandem/train.h"

#include <string.h>

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
static tdm_status read_precision(struct tdmi_bench_network *it, tdm_error *err)
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

static tdm_status choose(struct tdmi_bench_network *it, tdm_error *err)
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
    TDM_TRY(tdmi_placement_here(o->threads, &it->placement, err), err, "choosing threads");
    TDM_TRY(tdmi_pool_new(it->placement.threads, &it->placement, &it->pool, err), err,
            "starting threads");
    it->shard = o->shard                      ? o->shard
                : it->backend->device.is_host ? it->network.shard
                                              : o->batch; /* as training does */
    if (it->is_training && it->shard > o->batch)
        it->shard = o->batch;
    return TDM_OK;
}

static tdm_status open_graph(struct tdmi_bench_network *it, tdm_error *err)
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
        .splits_products = true,
        .allows_tf32 = strcmp(it->options->precision, "auto") == 0,
        .device = it->device,
        .team = team,
        .is_apart = it->options->is_unfused,
        .first_trained = it->options->has_frozen_base ? it->graph->head : 0,
    };
    return TDM_WRAP(err, tdmi_plan_make(it->graph, it->backend, &request, &it->plan, err),
                    "planning");
}

static tdm_status device_values(struct tdmi_bench_network *it, int64_t n, float **values,
                                tdm_error *err)
{
    *values = it->backend->memory.alloc(it->device, sizeof(float) * (size_t)(n + 1));
    return *values ? TDM_OK
                   : TDM_FAIL(err, TDM_E_MEMORY, "no memory for %lld values on the device",
                              (long long)n);
}

static tdm_status open_values(struct tdmi_bench_network *it, tdm_error *err)
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

static tdm_status open_runs(struct tdmi_bench_network *it, tdm_error *err)
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

static tdm_status make_batch(struct tdmi_bench_network *it, tdm_error *err)
{
    int n = it->options->batch, classes = tdmi_graph_classes(it->graph);
    int64_t image = tdmi_shape_values(it->graph->nodes[0].out);
    TDMI_TRY(TDMI_NEW(it->pixels, n * image, err));
    TDMI_TRY(TDMI_NEW(it->labels, n, err));
    TDMI_TRY(TDMI_NEW(it->items, n, err));
    TDMI_TRY(TDMI_NEW(it->judgements, n, err));
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
static tdm_status place_batch(struct tdmi_bench_network *it, tdm_error *err)
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

tdm_status tdmi_bench_network_open(const struct tdm_bench_compute_options *options,
                                   struct tdmi_bench_network *it, tdm_error *err)
{
    it->options = options;
    it->is_training = options->mode == TDM_BENCH_TRAIN;
    const int64_t begin = tdmi_clock_ns();
    TDMI_TRY(check(options, err));
    TDMI_TRY(choose(it, err));
    TDMI_TRY(open_graph(it, err));
    TDMI_TRY(open_values(it, err));
    TDMI_TRY(open_runs(it, err));
    it->start_seconds = tdmi_clock_seconds_since(begin);
    TDMI_TRY(make_batch(it, err));
    return place_batch(it, err);
}

void tdmi_bench_network_release(struct tdmi_bench_network *it)
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
    tdmi_placement_release(&it->placement);
    if (it->stream)
        it->backend->stream.close(it->stream);
    if (it->device)
        it->backend->device.close(it->device);
    tdmi_free(it->pixels);
    tdmi_free(it->labels);
    tdmi_free(it->items);
    tdmi_free(it->judgements);
}

/* ---- running ------------------------------------------------------------------------------- */

/* So slow that noise teaches nothing: the values stay such as are met in practice. */
static struct tdmi_update_rates slow_rates(const struct tdmi_bench_network *it)
{
    return (struct tdmi_update_rates){.learning_rate = 1e-6f,
                                      .momentum = (float)it->optimizer->momentum,
                                      .weight_decay = (float)it->optimizer->weight_decay};
}

/* With one wait, recorded and replayed. */
static tdm_status run_queued(struct tdmi_bench_network *it, struct tdmi_update_rates rates,
                             tdm_error *err)
{
    float tail[TDMI_TAIL_VALUES];
    TDM_TRY(tdmi_update_begin(it->update, (float)it->batch.n, rates, err), err, "an update");
    const struct tdmi_step_next next = tdmi_update_next(it->update);
    return TDM_WRAP(err, tdmi_step_run_queued(it->step, &next, tail, err), "a step");
}

tdm_status tdmi_bench_network_step(struct tdmi_bench_network *it, tdm_error *err)
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

tdm_status tdmi_bench_network_update(struct tdmi_bench_network *it, int n, tdm_error *err)
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
