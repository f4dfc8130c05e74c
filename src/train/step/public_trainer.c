/* The trainer of tandem/network.h: a network, its weights on the CPU, one step, one evaluator. */
#include "base/scope.h"
#include "base/sized.h"
#include "base/touch.h"
#include "models/describe.h"
#include "optim/optimizer.h"
#include "tandem/network.h"
#include "train/evaluate/evaluator.h"
#include "train/evaluate/score.h"
#include "train/step/step.h"
#include "train/step/update.h"

#include <math.h>

struct tdm_trainer {
    const tdmi_graph *graph;
    const struct tdmi_backend *backend;
    tdmi_device *device;
    struct tdmi_placement placement;
    tdmi_pool *pool;
    struct tdmi_optimizer_choice optimizer;
    struct tdmi_update_rates rates;
    uint64_t seed;
    int most_images;
    tdmi_plan *training, *inference;
    tdmi_step *step;
    tdmi_update *update;
    tdmi_evaluator *evaluator;
    float *params, *states, *slots[TDMI_OPTIMIZER_SLOTS];
    int64_t *items; /* 0, 1, …: for batches without any */
    struct tdmi_judgement *judgements;
};

void tdm_trainer_options_init(struct tdm_trainer_options *options, size_t struct_bytes)
{
    static const struct tdm_trainer_options usual = {.batch = 32,
                                                     .group = 16,
                                                     .optimizer = "sgd",
                                                     .learning_rate = 0.02,
                                                     .momentum = -1,
                                                     .weight_decay = -1,
                                                     .seed = 42};
    tdmi_options_init(options, struct_bytes, &usual, sizeof usual);
}

static tdm_status check(const struct tdm_trainer_options *options, tdm_error *err)
{
    if (options->batch >= 1 && options->batch <= 65536 && options->group >= 1 &&
        options->threads >= 0 && options->learning_rate > 0.0 && isfinite(options->learning_rate))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_USAGE,
                    "batch is %d, group %d, threads %d, learning rate %g; 1 to 65536, 1 or more, 0 "
                    "or more, and above 0 are accepted",
                    options->batch, options->group, options->threads, options->learning_rate);
}

static tdm_status reserve_floats(const struct tdm_trainer *trainer, int64_t n, float **values,
                                 tdm_error *err)
{
    const size_t bytes = sizeof(float) * (size_t)(n + 1);
    *values = trainer->backend->memory.alloc(trainer->device, bytes);
    if (!*values)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %lld values", (long long)n);
    tdmi_touch_spread(trainer->pool, *values, bytes);
    return TDM_OK;
}

static tdm_status open_values(struct tdm_trainer *trainer, tdm_error *err)
{
    const tdmi_graph *graph = trainer->graph;
    TDMI_TRY(reserve_floats(trainer, graph->param_values, &trainer->params, err));
    TDMI_TRY(reserve_floats(trainer, graph->state_values, &trainer->states, err));
    for (int i = 0; i < trainer->optimizer.optimizer->n_slots; i++)
        TDMI_TRY(reserve_floats(trainer, graph->param_values, &trainer->slots[i], err));
    TDMI_TRY(TDMI_NEW(trainer->items, trainer->most_images, err));
    TDMI_TRY(TDMI_NEW(trainer->judgements, trainer->most_images, err));
    for (int i = 0; i < trainer->most_images; i++)
        trainer->items[i] = i;
    tdmi_graph_init_values(graph, trainer->seed, trainer->params, trainer->states);
    return TDM_OK;
}

static tdm_status open_runs(struct tdm_trainer *it, int group, tdm_error *err)
{
    const struct tdmi_step_options step = {.max_batch = it->most_images};
    const int threads = tdmi_pool_threads(it->pool);
    const struct tdmi_plan_options inference = {
        .max_images = group, .team = tdmi_evaluator_team(it->graph, it->backend, threads)};
    TDMI_TRY(tdmi_plan_new(it->graph, it->backend, group, true, &it->training, err));
    TDMI_TRY(tdmi_plan_make(it->graph, it->backend, &inference, &it->inference, err));
    TDMI_TRY(tdmi_step_open(it->training, it->device, it->pool, &step, &it->step, err));
    TDMI_TRY(tdmi_update_open(it->graph, 0, it->backend, it->device, it->optimizer.optimizer,
                              it->pool, it->params, it->states, it->slots, &it->update, err));
    return tdmi_evaluator_open(it->inference, it->device, it->pool, it->most_images, &it->evaluator,
                               err);
}

static tdm_status open_all(struct tdm_trainer *trainer, const struct tdm_trainer_options *options,
                           tdm_error *err)
{
    int index;
    TDMI_TRY(check(options, err));
    TDMI_TRY(tdmi_optimizer_read(options->optimizer, &trainer->optimizer, err));
    TDMI_TRY(tdmi_backend_find("cpu", &trainer->backend, &index, err));
    TDMI_TRY(trainer->backend->device.open(index, &trainer->device, err));
    TDMI_TRY(tdmi_placement_here(options->threads, &trainer->placement, err));
    TDMI_TRY(tdmi_pool_new(trainer->placement.threads, &trainer->placement, &trainer->pool, err));
    const struct tdmi_optimizer *optimizer = trainer->optimizer.optimizer;
    const double momentum = options->momentum < 0.0 ? optimizer->momentum : options->momentum;
    const double decay =
        options->weight_decay < 0.0 ? optimizer->weight_decay : options->weight_decay;
    trainer->rates = (struct tdmi_update_rates){.learning_rate = (float)options->learning_rate,
                                                .momentum = (float)fmax(momentum, 0.0),
                                                .weight_decay = (float)decay,
                                                .values = trainer->optimizer.values};
    trainer->seed = options->seed;
    trainer->most_images = options->batch;
    TDMI_TRY(open_values(trainer, err));
    return open_runs(trainer, options->group < options->batch ? options->group : options->batch,
                     err);
}

TDMI_POINTER_RELEASE(tdm_trainer, tdm_trainer_close)

tdm_status tdm_trainer_open(const tdm_network *network, const struct tdm_trainer_options *options,
                            tdm_trainer **trainer, tdm_error *err)
{
    TDMI_OPTIONS(tdm_trainer_options, options, tdm_trainer_options_default(), err);
    TDMI_AT_END(tdm_trainer_close_at) tdm_trainer *made = NULL;
    if (network->totals.nodes == 0)
        return TDM_FAIL(err, TDM_E_USAGE, "opening a trainer: the network was not finished");
    TDM_TRY(TDMI_NEW(made, 1, err), err, "opening a trainer");
    made->graph = network->graph;
    TDM_TRY(open_all(made, options, err), err, "opening a trainer");
    *trainer = tdmi_take(&made);
    return TDM_OK;
}

void tdm_trainer_close(tdm_trainer *trainer)
{
    if (!trainer)
        return;
    tdmi_evaluator_close(trainer->evaluator);
    tdmi_update_close(trainer->update);
    tdmi_step_close(trainer->step);
    tdmi_plan_free(trainer->training);
    tdmi_plan_free(trainer->inference);
    float *const values[] = {trainer->params, trainer->states, trainer->slots[0],
                             trainer->slots[1]};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i])
            trainer->backend->memory.free(trainer->device, values[i]);
    tdmi_pool_free(trainer->pool);
    tdmi_placement_release(&trainer->placement);
    if (trainer->device)
        trainer->backend->device.close(trainer->device);
    tdmi_free(trainer->items);
    tdmi_free(trainer->judgements);
    tdmi_free(trainer);
}

void tdm_trainer_set_learning_rate(tdm_trainer *trainer, double learning_rate)
{
    trainer->rates.learning_rate = (float)learning_rate;
}

static tdm_status take_batch(const struct tdm_trainer *trainer, const struct tdm_batch *batch,
                             struct tdmi_batch *own, tdm_error *err)
{
    if (batch->n < 1 || batch->n > trainer->most_images)
        return TDM_FAIL(err, TDM_E_USAGE, "a batch of %d images; 1 to %d are accepted", batch->n,
                        trainer->most_images);
    for (int i = 0; i < batch->n; i++)
        if (batch->labels[i] < -1 || batch->labels[i] >= tdmi_graph_classes(trainer->graph))
            return TDM_FAIL(err, TDM_E_USAGE, "label %d of image %d; the network has %d classes",
                            batch->labels[i], i, tdmi_graph_classes(trainer->graph));
    *own = (struct tdmi_batch){.n = batch->n,
                               .values = batch->pixels,
                               .pixels = batch->pixels,
                               .labels = batch->labels,
                               .items = batch->items ? batch->items : trainer->items};
    return TDM_OK;
}

static void add_score(tdm_score *score, int64_t n, int64_t correct, double loss)
{
    *score = tdmi_score_of(score->n + n, score->correct + correct,
                           score->loss * (double)score->n + loss);
}

tdm_status tdm_trainer_step(tdm_trainer *trainer, const struct tdm_batch *batch, tdm_score *score,
                            tdm_error *err)
{
    const struct tdmi_mixing mixing = {.seed = trainer->seed,
                                       .epoch = (uint32_t)trainer->rates.step};
    struct tdmi_batch own;
    TDM_TRY(take_batch(trainer, batch, &own, err), err, "a training step");
    tdmi_step_begin(trainer->step, (struct tdmi_values){trainer->params, trainer->states}, &own,
                    &mixing);
    TDM_TRY(tdmi_step_run(trainer->step, 0, trainer->training->n_segments - 1, err), err,
            "a training step");
    const float *sums = tdmi_step_sums(trainer->step);
    const float *tail = sums + tdmi_graph_tail_at(trainer->graph);
    add_score(score, (int64_t)tail[TDMI_TAIL_SAMPLES], (int64_t)tail[TDMI_TAIL_CORRECT],
              (double)tail[TDMI_TAIL_LOSS]);
    if (!(tail[TDMI_TAIL_SAMPLES] > 0.0f))
        return TDM_OK;
    trainer->rates.step++;
    return TDM_WRAP(
        err, tdmi_update_run(trainer->update, sums, tail[TDMI_TAIL_SAMPLES], trainer->rates, err),
        "a training step");
}

static tdm_status evaluate(tdm_trainer *trainer, const struct tdm_batch *batch,
                           float *probabilities, struct tdmi_batch *own, tdm_error *err)
{
    const struct tdmi_values values = {trainer->params, trainer->states};
    TDMI_TRY(take_batch(trainer, batch, own, err));
    TDMI_TRY(tdmi_evaluator_take(trainer->evaluator, values, err));
    return tdmi_evaluator_batch(trainer->evaluator, own, trainer->judgements, probabilities, NULL,
                                err);
}

tdm_status tdm_trainer_evaluate(tdm_trainer *trainer, const struct tdm_batch *batch,
                                float *probabilities, tdm_score *score, tdm_error *err)
{
    struct tdmi_batch own;
    TDM_TRY(evaluate(trainer, batch, probabilities, &own, err), err, "evaluating a batch");
    for (int i = 0; i < own.n; i++) {
        const struct tdmi_judgement *found = &trainer->judgements[i];
        if (own.labels[i] >= 0)
            add_score(score, 1, found->predicted == own.labels[i], (double)found->loss);
    }
    return TDM_OK;
}
