/*
 * The freeze point of a training: chosen by --freeze and --unfreeze, recorded, and moved between
 * epochs (the schedule itself is in freeze.h).
 */
#include "base/scope.h"
#include "graph/norms.h"
#include "train/session/session.h"
#include "train/stopping.h"

/* ---- where it is ----------------------------------------------------------------------------- */

/* A checkpoint's graph does not name the head, so the record does. */
static void take_recorded_freeze_point(struct tdmi_session *session)
{
    const int n = session->network.graph->n_nodes;
    const int64_t first = tdmi_record_integer(&session->record, "first_trained", 0);
    const int64_t last = tdmi_record_integer(&session->record, "thaws_to", first);
    const int64_t head = tdmi_record_integer(&session->record, "head", 0);
    struct tdmi_unfreeze *unfreeze = &session->network.unfreeze;
    unfreeze->first = first > 0 && first < n ? (int)first : 0;
    unfreeze->last = last > 0 && last < unfreeze->first ? (int)last : 0;
    if (session->config.options.unfreeze == 0)
        unfreeze->last = unfreeze->first;
    session->network.head =
        head > 0 && head < n ? (int)head : tdmi_freeze_head(session->network.graph);
}

/* Refuses options about trained layers before the head where there are none. */
static tdm_status check_idle(const struct tdmi_session *session, tdm_error *err)
{
    const struct tdm_train_options *options = &session->config.options;
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_train_network *network = &session->network;
    const int n_norms = tdmi_norms_count(network->graph, 0);
    if (config->shares_statistics && n_norms == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --bn batch is about batch norms, and %s has none; leave it out",
                        network->definition.name);
    if ((config->shares_statistics || config->keeps_statistics) &&
        tdmi_norms_count(network->graph, network->unfreeze.last) == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --bn %s is about batch norms that are trained, and of the %d of "
                        "%s none is (--freeze %s); leave it out, or freeze less",
                        options->bn, n_norms, network->definition.name, options->freeze);
    if (options->layer_decay < 1.0 && network->unfreeze.last >= network->head)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --layer-decay is %g, but no layer before the head is trained "
                        "(--freeze %s); leave it out, or freeze less",
                        options->layer_decay, options->freeze);
    return TDM_OK;
}

static tdm_status choose_freeze_point(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_train_network *network = &session->network;
    struct tdmi_unfreeze *unfreeze = &network->unfreeze;
    const struct tdmi_pretrained *pretrained = &session->pretrained;
    const char *word = session->config.options.freeze;
    const bool unfreezes = session->config.options.unfreeze > 0;
    if (session->config.is_freeze_auto)
        word = pretrained->path && pretrained->import.has_new_head && !unfreezes ? "base" : "none";
    TDM_TRY(tdmi_freeze_point(network->graph, word, &unfreeze->last, err), err, "option --freeze");
    network->head = tdmi_freeze_head(network->graph);
    unfreeze->first = unfreezes ? network->head : unfreeze->last;
    if (unfreezes && unfreeze->last >= unfreeze->first)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "option --unfreeze: --freeze %s leaves nothing before the head to unfreeze",
                        session->config.options.freeze);
    return TDM_OK;
}

/* Without a checkpoint the graph is built again, and another version of tandem may number its nodes
 * differently: the recorded freeze point would then be another layer. */
static tdm_status check_recorded_freeze_point(const struct tdmi_session *session, tdm_error *err)
{
    const int64_t first = tdmi_record_integer(&session->record, "first_trained", 0);
    const int64_t last = tdmi_record_integer(&session->record, "thaws_to", first);
    const int64_t head = tdmi_record_integer(&session->record, "head", session->network.head);
    if (first == session->network.unfreeze.first && head == session->network.head &&
        (session->config.options.unfreeze == 0 || last == session->network.unfreeze.last))
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "resuming the run %s: tandem %s began it with node %lld as the first that is "
                    "trained (in the end %lld, head %lld), and this tandem %s would with %d (%d, "
                    "%d); there is no checkpoint in it yet, so nothing is lost: another -o begins "
                    "anew",
                    tdmi_run_path(session->record.run),
                    tdm_json_as_string(tdmi_run_recorded(session->record.run, "tandem"), "?"),
                    (long long)first, (long long)last, (long long)head, tdm_version(),
                    session->network.unfreeze.first, session->network.unfreeze.last,
                    session->network.head);
}

tdm_status tdmi_session_find_freeze_point(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_run_record *record = &session->record;
    struct tdmi_train_network *network = &session->network;
    /* A run that was stopped early recorded its options only: they decide again. */
    const bool is_recorded = record->run && tdmi_run_recorded(record->run, "data");
    const bool has_checkpoint = is_recorded && session->resumed;
    network->unfreeze.every = config->options.unfreeze;
    network->unfreeze.layers = config->options.unfreeze_layers;
    if (has_checkpoint)
        take_recorded_freeze_point(session);
    else
        TDMI_TRY(choose_freeze_point(session, err));
    if (!is_recorded)
        TDMI_TRY(check_idle(session, err));
    else if (!has_checkpoint)
        TDMI_TRY(check_recorded_freeze_point(session, err));
    network->first_trained = network->unfreeze.first;
    return TDM_OK;
}

/* ---- moves ----------------------------------------------------------------------------------- */

int tdmi_network_final_freeze_point(const struct tdmi_session *session)
{
    return tdmi_unfreeze_final_point(
        &session->network.unfreeze, session->network.graph,
        tdmi_rates_total_epochs(&session->config.options, session->data.steps_per_epoch));
}

int tdmi_network_layers_left(const struct tdmi_train_network *network)
{
    return tdmi_freeze_layers(network->graph, network->unfreeze.last, network->first_trained);
}

void tdmi_network_report_unfreezing(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->config.options;
    const double total = tdmi_rates_total_epochs(options, session->data.steps_per_epoch);
    if (options->unfreeze == 0 || !(total > 0.0))
        return;
    const int freeze_point = tdmi_network_final_freeze_point(session);
    const int n_left =
        tdmi_freeze_layers(session->network.graph, session->network.unfreeze.last, freeze_point);
    if (n_left > 0)
        tdmi_record_note(&session->record,
                         "--unfreeze-layers %d: of %d layers before the head %d are unfrozen "
                         "within these epochs%s",
                         options->unfreeze_layers,
                         tdmi_freeze_layers(session->network.graph, session->network.unfreeze.last,
                                            session->network.unfreeze.first),
                         tdmi_freeze_layers(session->network.graph, freeze_point,
                                            session->network.unfreeze.first),
                         tdmi_stopping_patience(options) > 0
                             ? "; --patience counts from the last move, so it has no effect"
                             : "");
}

void tdmi_network_report_left(const struct tdmi_session *session)
{
    const struct tdmi_progress *progress = session->record.progress;
    const int n_left = tdmi_network_layers_left(&session->network);
    if (n_left > 0)
        tdmi_record_note(
            &session->record,
            "--unfreeze %d: training ended in epoch %d (%s), and %d layer%s before the "
            "head %s never unfrozen",
            session->config.options.unfreeze, progress->epoch + (progress->position > 0),
            tdmi_limits_ended_by(session), n_left, n_left == 1 ? "" : "s",
            n_left == 1 ? "was" : "were");
}

tdm_status tdmi_session_unfreeze(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_train_network *network = &session->network;
    const struct tdmi_train_config *config = &session->config;
    const struct tdmi_progress *progress = &session->progress;
    const int freeze_point =
        tdmi_unfreeze_point(&network->unfreeze, network->graph, progress->epoch);
    if (freeze_point == network->first_trained || progress->position > 0)
        return TDM_OK;
    /* Opening again may take long, and overwrites the host's copy of the best weights. */
    TDM_TRY(tdmi_session_checkpoint(session, err), err, "before unfreezing");
    if (session->cache.is_used && !tdmi_ranks_is_follower(session))
        TDM_TRY(tdmi_features_dismiss(session, true, false, err), err, "before unfreezing");
    network->first_trained = freeze_point;
    TDM_TRY(tdmi_session_open_again(session, err), err, "unfreezing before epoch %d",
            progress->epoch + 1);
    const int n = tdmi_freeze_layers(network->graph, freeze_point, network->unfreeze.first);
    tdmi_record_note(&session->record,
                     "%d layer%s before the head %s trained from here on, learning rate %g before "
                     "the schedule%s",
                     n, n == 1 ? "" : "s", n == 1 ? "is" : "are",
                     config->unfrozen_rate > 0.0 ? config->unfrozen_rate
                                                 : config->rates.learning_rate,
                     freeze_point > 0 ? "; the frozen layers are computed in every epoch" : "");
    tdmi_network_report_norms(session);
    if (freeze_point == tdmi_network_final_freeze_point(session))
        tdmi_estimate_begin(session, "");
    return TDM_OK;
}
