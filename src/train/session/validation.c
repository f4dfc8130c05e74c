/*
 * What validation leaves behind: what became of every picture, and what follows from it.
 */
#include "tandem/event.h"
#include "train/evaluate/metrics.h"
#include "train/session/session.h"

tdm_status tdmi_session_open_evaluator(struct tdmi_session *session, tdm_error *err)
{
    const int n_classes = session->snapshot.n_classes;
    session->probabilities =
        tdmi_arena_alloc(&session->arena, (size_t)session->batch * (size_t)n_classes,
                         sizeof *session->probabilities);
    if (!session->probabilities)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to validate: out of memory");
    TDM_TRY(tdmi_outcomes_open(&session->outcomes, n_classes, session->split.n_val, err), err,
            "preparing to validate");
    session->outcomes.classes = session->snapshot.classes;
    session->outcomes.network = session->snapshot.network;
    return TDM_OK;
}

void tdmi_session_close_evaluator(struct tdmi_session *session)
{
    tdm_metrics_release(&session->metrics);
    tdmi_outcomes_release(&session->best_outcomes);
    tdmi_outcomes_release(&session->outcomes);
}

tdm_status tdmi_session_count(struct tdmi_session *session, tdm_error *err)
{
    tdm_metrics_release(&session->metrics);
    return tdmi_metrics_of(&session->outcomes, session->snapshot.classes, &session->metrics, err);
}

/* With strict the first picture that cannot be read ends the training. */
tdm_status tdmi_session_refuse(const struct tdmi_session *session, const struct tdmi_batch *batch,
                               tdm_error *err)
{
    for (int p = 0; session->options.strict && p < batch->n; p++)
        if (batch->problems && batch->problems[p][0])
            return TDM_FAIL(err, TDM_E_INPUT, "a picture cannot be used, and --strict is on: %s",
                            batch->problems[p]);
    return TDM_OK;
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
        TDM_TRY(tdmi_evaluator_feed(session->evaluator, feed, batch, session->judgements,
                                    session->probabilities, err),
                err, "judging");
        TDM_TRY(tdmi_session_refuse(session, batch, err), err, "judging");
        tdmi_outcomes_add_batch(outcomes, batch, session->judgements, session->probabilities,
                                session->contents.hashes);
        for (int64_t i = before; i < outcomes->n; i++)
            loss += (double)outcomes->losses[i];
        *seen += batch->n;
        tdmi_track_event(
            session->track,
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
    tdmi_track_event(session->track,
                     &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN, .total = n_items, .text = what});
    tdm_status status = evaluate_batches(session, feed, n_items, outcomes, &seen, err);
    const tdm_status settled =
        tdmi_evaluator_settle(session->evaluator, status == TDM_OK ? err : NULL);
    status = status == TDM_OK ? settled : status;
    tdmi_track_event(session->track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    *skipped = seen - outcomes->n;
    return TDM_WRAP(err, status, "reading the pictures that judge");
}

tdm_status tdmi_session_record_validation(struct tdmi_session *session, tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "epoch", session->outcomes.epoch);
    tdm_metrics_to_json(&session->metrics, writer);
    tdm_json_object_end(writer);
    return tdmi_session_set(session, "validation", writer, err);
}
