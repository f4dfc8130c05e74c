/*
 * Gradual unfreezing: the head is trained alone first, on features that are stored; then the border
 * moves towards the input, once or step by step. Where it lies follows from the epoch, so a run
 * that is gone on with needs no state of it. With every move the optimiser begins anew: its moments
 * and their corrections would be those of another set of weights.
 */
#include "train/freeze.h"
#include "train/session/session.h"
#include "train/stopping.h"

#include <math.h>
#include <string.h>

int tdmi_session_freeze_point_at(const struct tdmi_session *session, int epoch)
{
    const struct tdm_train_options *options = &session->options;
    if (options->unfreeze == 0)
        return session->first_freeze_point;
    return tdmi_freeze_point_after(session->graph, session->first_freeze_point,
                                   session->last_freeze_point, options->unfreeze_layers,
                                   epoch / options->unfreeze);
}

int tdmi_session_freeze_point_at_end(const struct tdmi_session *session)
{
    const double total = tdmi_rates_total_epochs(&session->options, session->steps_per_epoch);
    if (session->options.unfreeze == 0)
        return session->first_trained;
    return total > 0.0 ? tdmi_session_freeze_point_at(session, (int)ceil(total) - 1) /* from 0 */
                       : session->last_freeze_point;
}

int64_t tdmi_session_optimizer_began(const struct tdmi_session *session)
{
    int epoch = session->options.unfreeze > 0 ? session->progress.epoch : 0;
    while (epoch > 0 && tdmi_session_freeze_point_at(session, epoch - 1) == session->first_trained)
        epoch--;
    return epoch * session->steps_per_epoch;
}

tdm_status tdmi_session_begin_optimizer(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_memory_table *memory = &session->backend->memory;
    const size_t bytes = sizeof(float) * (size_t)session->graph->param_values;
    struct tdmi_model_file *host = &session->snapshot;
    if (session->progress.step == 0 ||
        tdmi_session_optimizer_began(session) != session->progress.step)
        return TDM_OK;
    session->progress.epochs_since_best = 0; /* of other weights */
    for (int i = 0; i < session->optimizer->n_slots; i++) {
        memset(host->slots[i], 0, bytes);
        TDM_TRY(memory->upload(session->stream, session->slots[i], host->slots[i], bytes, err), err,
                "beginning the optimizer anew");
    }
    return session->backend->stream.wait(session->stream, err);
}

tdm_status tdmi_session_scale_rates(struct tdmi_session *session, tdm_error *err)
{
    const tdmi_graph *graph = session->graph;
    const double decay = session->options.layer_decay;
    if (!(decay < 1.0))
        return TDM_OK;
    if (!session->rate_parts)
        session->rate_parts =
            tdmi_arena_alloc(&session->arena, (size_t)graph->n_params, sizeof *session->rate_parts);
    if (!session->rate_parts)
        return TDM_FAIL(err, TDM_E_MEMORY, "rates of %d tensors: out of memory", graph->n_params);
    for (int i = 0; i < graph->n_nodes; i++)
        for (int j = 0; j < graph->nodes[i].n_params; j++)
            session->rate_parts[graph->nodes[i].first_param + j] =
                (float)pow(decay, tdmi_freeze_depth(graph, session->head, i));
    tdmi_update_scale(session->update, session->rate_parts);
    return TDM_OK;
}

tdm_status tdmi_session_check_unfreezing(const struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->options;
    const int64_t before = options->unfreeze * session->steps_per_epoch;
    if (options->unfreeze == 0 || options->steps == 0 || options->steps > before)
        return TDM_OK;
    return TDM_FAIL(
        err, TDM_E_USAGE,
        "option --unfreeze is %d, but training ends after %lld steps and these are %lld "
        "an epoch: it would end before anything thaws; more than %lld --steps, or "
        "--freeze base in place of --unfreeze, is wanted",
        options->unfreeze, (long long)options->steps, (long long)session->steps_per_epoch,
        (long long)before);
}

int tdmi_session_layers_left(const struct tdmi_session *session)
{
    return session->options.unfreeze == 0
               ? 0
               : tdmi_freeze_layers(session->graph, session->last_freeze_point,
                                    session->first_trained);
}

void tdmi_session_report_unfreezing(struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    const double total = tdmi_rates_total_epochs(options, session->steps_per_epoch);
    if (options->unfreeze == 0 || !(total > 0.0))
        return;
    const int freeze_point = tdmi_session_freeze_point_at_end(session);
    const int n_left = tdmi_freeze_layers(session->graph, session->last_freeze_point, freeze_point);
    if (n_left > 0)
        tdmi_session_note(
            session,
            "--unfreeze-layers %d: of %d layers before the head %d thaw within these epochs%s",
            options->unfreeze_layers,
            tdmi_freeze_layers(session->graph, session->last_freeze_point,
                               session->first_freeze_point),
            tdmi_freeze_layers(session->graph, freeze_point, session->first_freeze_point),
            tdmi_stopping_patience(options) > 0
                ? "; --patience counts from the last move, so it ends nothing"
                : "");
}

void tdmi_session_report_left(struct tdmi_session *session)
{
    const int n_left = tdmi_session_layers_left(session);
    if (n_left > 0)
        tdmi_session_note(
            session,
            "--unfreeze %d: training ended in epoch %d (%s), and %d layers before the "
            "head never thawed",
            session->options.unfreeze, session->progress.epoch + (session->progress.position > 0),
            tdmi_session_ended_by(session), n_left);
}

static tdm_status open_anew(struct tdmi_session *session, tdm_error *err)
{
    tdm_status status = tdmi_session_begin_optimizer(session, err);
    if (status == TDM_OK)
        status = tdmi_session_plan_network(session, err);
    if (status == TDM_OK)
        status = tdmi_session_restore_norms(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_network(session, err);
    if (status == TDM_OK)
        status = tdmi_session_open_input(session, err);
    if (status == TDM_OK && session->mean_params)
        tdmi_update_average(session->update, session->mean_params, session->mean_states);
    return status;
}

tdm_status tdmi_session_unfreeze(struct tdmi_session *session, tdm_error *err)
{
    const int freeze_point = tdmi_session_freeze_point_at(session, session->progress.epoch);
    if (freeze_point == session->first_trained || session->progress.position > 0)
        return TDM_OK;
    /* What follows may take long, and the best epoch's copy gives way to it. */
    TDM_TRY(tdmi_session_checkpoint(session, err), err, "before thawing");
    const struct tdmi_features count = {.count = session->features.count};
    tdmi_session_clock_feed(session);
    tdmi_session_close_freeze_point(session);
    session->features.count = count.count;
    session->first_trained = freeze_point;
    TDM_TRY(open_anew(session, err), err, "thawing before epoch %d", session->progress.epoch + 1);
    const int n_layers =
        tdmi_freeze_layers(session->graph, freeze_point, session->first_freeze_point);
    tdmi_session_note(session,
                      "%d layers before the head are trained from here on, learning rate %g before "
                      "the schedule%s",
                      n_layers,
                      session->unfrozen_rate > 0.0 ? session->unfrozen_rate
                                                   : session->rates.learning_rate,
                      freeze_point > 0 ? "; the frozen part is computed in every epoch" : "");
    tdmi_session_report_norms(session);
    return TDM_OK;
}
