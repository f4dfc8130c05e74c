/*
 * The step, the optimizer and the loss scale. Parameters, gradient sums and the optimizer's state
 * are f32, whatever --precision stores activations as; f16 has so small a range that gradients are
 * scaled.
 */
#include "train/session/trainer.h"
#include "base/scope.h"
#include "train/session/memory.h"
#include "train/session/session.h"

#include <math.h>
#include <string.h>

/* Steps adapt it within a few dozen. */
static const struct tdmi_loss_scale first_scale = {.scale = 65536.0f};

/* ---- the loss scale -------------------------------------------------------------------------- */

tdm_status tdmi_trainer_open_scale(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &session->compute.backend->memory;
    struct tdmi_loss_scale *scale = &session->progress.loss_scale;
    if (session->config.storage != TDMI_DTYPE_F16)
        return TDM_OK;
    if (!(scale->scale > 0.0f))
        *scale = first_scale;
    if (!session->trainer.loss_scale)
        session->trainer.loss_scale = memory->alloc(session->compute.device, sizeof *scale);
    if (!session->trainer.loss_scale)
        return TDM_FAIL(err, TDM_E_MEMORY, "the scale of gradients: out of the device's memory");
    TDM_TRY(memory->upload(session->compute.stream, session->trainer.loss_scale, scale,
                           sizeof *scale, err),
            err, "placing the scale of gradients");
    return session->compute.backend->stream.wait(session->compute.stream, err);
}

tdm_status tdmi_trainer_fetch_scale(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_loss_scale *scale = &session->progress.loss_scale;
    if (!session->trainer.loss_scale)
        return TDM_OK;
    return TDM_WRAP(err,
                    session->compute.backend->memory.download(session->compute.stream, scale,
                                                              session->trainer.loss_scale,
                                                              sizeof *scale, err),
                    "fetching the scale of gradients");
}

void tdmi_trainer_report_skipped(const struct tdmi_session *session)
{
    const struct tdmi_progress *progress = session->record.progress;
    const struct tdmi_loss_scale *scale = &progress->loss_scale;
    if (session->trainer.loss_scale && scale->n_left_out > 0)
        tdmi_record_note(&session->record,
                         "--precision f16: %lld of %lld steps were left out, their gradients were "
                         "not finite (the last scale is %g)",
                         (long long)scale->n_left_out, (long long)progress->step,
                         (double)scale->scale);
}

/* ---- the optimizer --------------------------------------------------------------------------- */

int64_t tdmi_trainer_began(const struct tdmi_session *session)
{
    return session->data.steps_per_epoch *
           tdmi_unfreeze_began(&session->network.unfreeze, session->network.graph,
                               session->progress.epoch, session->network.first_trained);
}

tdm_status tdmi_trainer_upload(const struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_model_file *host = &session->network.host;
    const size_t bytes = sizeof(float) * (size_t)session->network.graph->param_values;
    for (int i = 0; i < session->trainer.optimizer->n_slots; i++)
        TDM_TRY(session->compute.backend->memory.upload(
                    session->compute.stream, session->trainer.slots[i], host->slots[i], bytes, err),
                err, "placing the optimizer's state");
    return tdmi_values_upload(session, false, host->params, host->states, err);
}

tdm_status tdmi_session_begin_optimizer(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_progress *progress = &session->progress;
    const size_t bytes = sizeof(float) * (size_t)session->network.graph->param_values;
    if (progress->step == 0 || tdmi_trainer_began(session) != progress->step)
        return TDM_OK;
    progress->epochs_since_best = 0; /* of other weights */
    for (int i = 0; i < session->trainer.optimizer->n_slots; i++) {
        float *slot = session->network.host.slots[i];
        memset(slot, 0, bytes);
        TDM_TRY(session->compute.backend->memory.upload(
                    session->compute.stream, session->trainer.slots[i], slot, bytes, err),
                err, "beginning the optimizer anew");
    }
    return session->compute.backend->stream.wait(session->compute.stream, err);
}

/* --layer-decay: the rate falls with the depth below the head. */
static tdm_status scale_rates(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_graph *graph = session->network.graph;
    const double decay = session->config.options.layer_decay;
    if (!(decay < 1.0))
        return TDM_OK;
    if (!session->trainer.rate_parts)
        session->trainer.rate_parts = tdmi_arena_alloc(&session->arena, (size_t)graph->n_params,
                                                       sizeof *session->trainer.rate_parts);
    TDMI_CHECK_MEMORY(session->trainer.rate_parts, err);
    for (int i = 0; i < graph->n_nodes; i++)
        for (int j = 0; j < graph->nodes[i].n_params; j++)
            session->trainer.rate_parts[graph->nodes[i].first_param + j] =
                (float)pow(decay, tdmi_freeze_depth(graph, session->network.head, i));
    tdmi_update_scale(session->trainer.update, session->trainer.rate_parts);
    return TDM_OK;
}

/* ---- the step -------------------------------------------------------------------------------- */

struct tdmi_step_options tdmi_trainer_step_options(const struct tdmi_session *session)
{
    return (struct tdmi_step_options){
        .max_batch =
            tdmi_ranks_most_images(session, session->data.max_batch, session->config.shard),
        .whole_batch = session->data.max_batch,
        .comm = tdmi_ranks_share_steps(session) ? session->compute.comm : NULL,
        .peers = tdmi_ranks_share_steps(session) ? session->compute.peers : NULL,
        .rounds = session->config.options.fast,
        .class_weights = session->trainer.class_weights,
        .can_mix = tdmi_augment_has_mix(&session->config.augment),
        .shares_statistics = session->config.shares_statistics,
        .loss_scale = session->trainer.loss_scale,
        .lanes = session->compute.lanes,
    };
}

void tdmi_trainer_note_recorded(struct tdmi_session *session)
{
    const int64_t bytes =
        session->trainer.step ? tdmi_step_recorded_bytes(session->trainer.step) : 0;
    if (bytes > session->compute.recorded_bytes)
        session->compute.recorded_bytes = bytes;
}

/* Balanced weights: images / (classes · images of the class). */
tdm_status tdmi_session_weigh_classes(struct tdmi_session *session, tdm_error *err)
{
    const int classes = session->network.host.n_classes;
    const tdmi_split *split = &session->data.split;
    if (!session->config.balances_loss)
        return TDM_OK;
    int64_t *counts = tdmi_arena_alloc(&session->arena, (size_t)classes, sizeof *counts);
    float *weights = tdmi_arena_alloc(&session->arena, (size_t)classes, sizeof *weights);
    TDMI_CHECK_MEMORY(counts && weights, err);
    for (int64_t i = 0; i < split->n_train; i++)
        counts[tdmi_source_item(session->data.source, split->train[i]).label]++;
    for (int c = 0; c < classes; c++)
        weights[c] = counts[c] > 0
                         ? (float)((double)split->n_train / ((double)classes * (double)counts[c]))
                         : 1.0F;
    session->trainer.class_weights = weights;
    return TDM_OK;
}

static tdm_status open_evaluators(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_compute *compute = &session->compute;
    struct tdmi_train_network *network = &session->network;
    struct tdmi_evaluation *evaluation = &session->evaluation;
    TDM_TRY(tdmi_evaluator_open(network->evaluation_plan, compute->device, compute->pool,
                                session->data.max_batch, &evaluation->evaluator, err),
            err, "preparing validation");
    TDMI_TRY(tdmi_plans_make_test(session, compute->device, compute->most_workspace,
                                  &network->test_plan, err));
    if (network->test_plan)
        TDM_TRY(tdmi_evaluator_open(network->test_plan, compute->device, compute->pool, 1,
                                    &evaluation->test_evaluator, err),
                err, "preparing the model's self-test");
    return TDM_OK;
}

tdm_status tdmi_trainer_open_update(const struct tdmi_session *session, int first_trained,
                                    tdmi_step *step, tdmi_update **update, tdm_error *err)
{
    const struct tdmi_compute *compute = &session->compute;
    const struct tdmi_train_network *network = &session->network;
    const struct tdmi_trainer *trainer = &session->trainer;
    TDM_TRY(tdmi_update_open(network->graph, first_trained, compute->backend, compute->device,
                             trainer->optimizer, compute->pool, network->params, network->states,
                             trainer->slots, update, err),
            err, "preparing the optimizer");
    if (session->config.keeps_statistics)
        tdmi_update_keep_statistics(*update);
    if (trainer->loss_scale)
        tdmi_update_loss_scale(*update, trainer->loss_scale);
    if (tdmi_compute_queues(compute))
        tdmi_update_use_stream(*update, tdmi_step_stream(step));
    return TDM_OK;
}

tdm_status tdmi_session_open_trainer(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_compute *compute = &session->compute;
    const struct tdmi_train_network *network = &session->network;
    struct tdmi_trainer *trainer = &session->trainer;
    const struct tdmi_step_options step = tdmi_trainer_step_options(session);
    TDM_TRY(tdmi_step_open(network->train_plan, compute->device, compute->pool, &step,
                           &trainer->step, err),
            err, "preparing training");
    TDMI_TRY(open_evaluators(session, err));
    TDMI_TRY(tdmi_trainer_open_update(session, network->first_trained, trainer->step,
                                      &trainer->update, err));
    return scale_rates(session, err);
}

void tdmi_trainer_release(struct tdmi_session *session)
{
    for (int i = 0; i < TDMI_OPTIMIZER_SLOTS; i++)
        tdmi_compute_free(&session->compute, session->trainer.slots[i]);
    tdmi_compute_free(&session->compute, session->trainer.loss_scale);
}

/* ---- averages of weights (--ema) ---------------------------------------------------------- */

/* Updated after every step, evaluated and kept, so a model file holds them as its weights; a
 * checkpoint holds the trained values too. */
static tdm_status reserve_averages(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_train_network *network = &session->network;
    struct tdmi_model_file *host = &network->host;
    const size_t params = (size_t)network->graph->param_values;
    const size_t states = (size_t)network->graph->state_values + 1;
    network->mean_params =
        tdmi_compute_alloc_values(&session->compute, network->graph->param_values);
    network->mean_states =
        tdmi_compute_alloc_values(&session->compute, network->graph->state_values);
    host->raw_params = tdmi_arena_alloc(&session->arena, params, sizeof(float));
    host->raw_states = tdmi_arena_alloc(&session->arena, states, sizeof(float));
    TDMI_CHECK_MEMORY(
        network->mean_params && network->mean_states && host->raw_params && host->raw_states, err);
    return TDM_OK;
}

/* The averages start as the values on the host: the first weights, or a checkpoint's averages. */
static tdm_status fill_averages(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_model_file *host = &session->network.host, *resumed = session->resumed;
    if (resumed && !resumed->raw_params)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the checkpoint of %s has no averages of weights, which --ema continues",
                        tdmi_run_path(session->record.run));
    TDMI_TRY(reserve_averages(session, err));
    TDMI_TRY(tdmi_values_upload(session, true, host->params, host->states, err));
    if (resumed)
        TDM_TRY(tdmi_values_upload(session, false, resumed->raw_params, resumed->raw_states, err),
                err, "resuming the weights beside the averages");
    return TDM_OK;
}

tdm_status tdmi_session_fill_averages(struct tdmi_session *session, tdm_error *err)
{
    return session->config.options.ema > 0.0 ? fill_averages(session, err) : TDM_OK;
}

tdm_status tdmi_session_open_average(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_train_network *network = &session->network;
    (void)err;
    if (session->config.options.ema > 0.0)
        tdmi_update_average(session->trainer.update, network->mean_params, network->mean_states);
    return TDM_OK;
}
