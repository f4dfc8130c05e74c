/*
 * Validation: the outcome for every image, and the metrics of all.
 */
#include "tandem/event.h"
#include "train/evaluate/metrics.h"
#include "train/session/session.h"

tdm_status tdmi_evaluation_open(const struct tdmi_train_data *data,
                                const struct tdmi_train_network *network,
                                struct tdmi_evaluation *evaluation, tdmi_arena *arena,
                                tdm_error *err)
{
    const int n_classes = network->host.n_classes;
    evaluation->probabilities = tdmi_arena_alloc(arena, (size_t)data->max_batch * (size_t)n_classes,
                                                 sizeof *evaluation->probabilities);
    evaluation->judgements =
        tdmi_arena_alloc(arena, (size_t)data->max_batch, sizeof *evaluation->judgements);
    if (!evaluation->probabilities || !evaluation->judgements)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to validate: out of memory");
    TDM_TRY(tdmi_outcomes_open(&evaluation->outcomes, n_classes, data->split.n_val, err), err,
            "preparing to validate");
    evaluation->outcomes.classes = network->host.classes;
    evaluation->outcomes.network = network->host.network;
    return TDM_OK;
}

void tdmi_evaluation_close(struct tdmi_evaluation *evaluation)
{
    tdm_metrics_release(&evaluation->metrics);
    tdmi_outcomes_release(&evaluation->best_outcomes);
    tdmi_outcomes_release(&evaluation->outcomes);
}

tdm_status tdmi_evaluation_count(const struct tdmi_train_network *network,
                                 struct tdmi_evaluation *evaluation, tdm_error *err)
{
    tdm_metrics_release(&evaluation->metrics);
    return tdmi_metrics_of(&evaluation->outcomes, network->host.classes, &evaluation->metrics, err);
}

static tdm_status evaluate_batches(struct tdmi_session *session, tdmi_feed *feed, int64_t n_items,
                                   tdmi_outcomes *outcomes, int64_t *seen, tdm_error *err)
{
    double loss = 0.0;
    while (!tdm_stop_is_requested()) {
        const struct tdmi_batch *batch;
        const int64_t before = outcomes->n;
        tdm_status status = tdmi_feed_next(feed, &batch, err);
        if (status == TDM_E_STOPPED)
            return TDM_OK;
        if (status != TDM_OK || !batch)
            return status;
        TDM_TRY(tdmi_evaluator_feed(session->evaluation.evaluator, feed, batch,
                                    session->evaluation.judgements,
                                    session->evaluation.probabilities, err),
                err, "judging");
        TDM_TRY(tdmi_data_check_batch(&session->config, batch, err), err, "judging");
        tdmi_outcomes_add_batch(outcomes, batch, session->evaluation.judgements,
                                session->evaluation.probabilities, session->data.contents.hashes);
        for (int64_t i = before; i < outcomes->n; i++)
            loss += (double)outcomes->losses[i];
        *seen += batch->n;
        tdmi_track_event(
            session->record.track,
            &(tdm_event){.kind = TDM_EVENT_PROGRESS,
                         .done = *seen,
                         .total = n_items,
                         .step = session->progress.step,
                         .loss = loss / (outcomes->n > 0 ? (double)outcomes->n : 1.0)});
    }
    return TDM_OK;
}

tdm_status tdmi_session_evaluate(struct tdmi_session *session, tdmi_feed *feed, int64_t n_items,
                                 const char *what, tdmi_outcomes *outcomes, int64_t *skipped,
                                 tdm_error *err)
{
    int64_t seen = 0;
    outcomes->n = 0;
    TDM_TRY(tdmi_feed_seek(feed, 0, 0, err), err, "reading the pictures that judge");
    tdmi_track_event(session->record.track,
                     &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN, .total = n_items, .text = what});
    tdm_status status = evaluate_batches(session, feed, n_items, outcomes, &seen, err);
    const tdm_status settled =
        tdmi_evaluator_settle(session->evaluation.evaluator, status == TDM_OK ? err : NULL);
    status = status == TDM_OK ? settled : status;
    tdmi_track_event(session->record.track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    *skipped = seen - outcomes->n;
    return TDM_WRAP(err, status, "reading the pictures that judge");
}

tdm_status tdmi_evaluation_record(const struct tdmi_run_record *record,
                                  const struct tdmi_evaluation *evaluation, tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "epoch", evaluation->outcomes.epoch);
    tdm_metrics_to_json(&evaluation->metrics, writer);
    tdm_json_object_end(writer);
    return tdmi_record_set(record, "validation", writer, err);
}
