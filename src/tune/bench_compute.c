/*
 * A network's rate without a loader: a batch of noise in memory goes through the training step, or
 * through the evaluator. The head of a feature extractor has two classes, which cost nothing, so
 * the whole inference graph stands for its features.
 */
#include "base/clock.h"
#include "base/scope.h"
#include "base/sized.h"
#include "tandem/event.h"
#include "tune/bench_ceiling.h"
#include "tune/bench_network.h"
#include "tune/bench_profile.h"
#include "tune/bench_rate.h"

#include <stdio.h>
#include <sys/resource.h>

enum { most_steps = 4096, least_steps = 3 };

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

static tdm_status measure_steps(struct tdmi_bench_network *it, double seconds,
                                struct tdm_bench_compute *result, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) double *rates = NULL;
    TDMI_TRY(TDMI_NEW(rates, most_steps, err));
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
        TDM_TRY(tdmi_bench_network_step(it, err), err, "measuring %s", it->options->model);
        if (s >= 0)
            rates[result->steps++] = it->batch.n / tdmi_clock_seconds_since(then);
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while measuring");
    }
    cpu_s = tdmi_cpu_seconds() - cpu_s;
    if (cpu_s > 0.0)
        result->processor_rate = (double)it->batch.n * result->steps / cpu_s;
    result->rate = tdmi_bench_spread(rates, result->steps);
    result->milliseconds = 1e3 * it->batch.n / result->rate.median;
    return TDM_OK;
}

static tdm_status measure_update(struct tdmi_bench_network *it, struct tdm_bench_compute *result,
                                 tdm_error *err)
{
    enum { rounds = 5, in_a_row = TDMI_BENCH_IN_A_ROW };
    for (int r = 0; r < rounds; r++) {
        const int64_t begin = tdmi_clock_ns();
        TDM_TRY(tdmi_bench_network_update(it, in_a_row, err), err,
                "measuring the optimizer's step");
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

static int64_t planned_bytes(const struct tdmi_bench_network *it)
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

static void describe(const struct tdmi_bench_network *it, struct tdm_bench_compute *result)
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

static tdm_status measure(struct tdmi_bench_network *it, struct tdm_bench_compute *result,
                          tdm_error *err)
{
    const double seconds = it->options->seconds;
    const int images = it->shard < it->options->batch ? it->shard : it->options->batch;
    TDM_TRY(measure_steps(it, seconds * 2 / 3, result, err), err, "measuring");
    describe(it, result);
    TDM_TRY(tdmi_ceiling_measure(it->plan, it->device, it->pool, images, seconds / 3,
                                 &result->ceiling, err),
            err, "measuring");
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
    TDMI_AT_END(tdmi_bench_network_release) struct tdmi_bench_network it = {0};
    TDMI_TRY(tdmi_bench_network_open(options, &it, err));
    result->start_milliseconds = 1e3 * it.start_seconds;
    return measure(&it, result, err);
}

void tdm_bench_compute_release(struct tdm_bench_compute *result)
{
    tdmi_free(result->nodes);
    result->nodes = NULL;
    result->n_nodes = 0;
}
