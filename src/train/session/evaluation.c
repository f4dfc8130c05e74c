/*
 * Validation: the outcome for every image, the metrics of all, and the epochs after the best one.
 */
#include "base/file/file.h"
#include "tandem/event.h"
#include "tandem/metrics.h"
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

/* ---- the epochs after the best one: their time, and which images they changed ---------------- */

/* Both validations list the same images in the same order, unless some could be read only once. */
static void pair_up(const tdmi_outcomes *best, const tdmi_outcomes *last,
                    struct tdm_after_best *after)
{
    struct tdm_after_best paired = *after;
    if (best->n != last->n)
        return;
    for (int64_t i = 0; i < last->n; i++) {
        const bool was_right = best->ranks[i] == 0, is_right = last->ranks[i] == 0;
        if (best->contents[i] != last->contents[i] || best->labels[i] != last->labels[i])
            return;
        paired.only_best += was_right && !is_right;
        paired.only_last += is_right && !was_right;
    }
    paired.n = last->n;
    paired.p = tdm_mcnemar_exact(paired.only_best, paired.only_last);
    *after = paired;
}

static tdm_status compare_with_best(const struct tdmi_run_record *record,
                                    const struct tdmi_evaluation *evaluation,
                                    struct tdm_after_best *after, tdm_error *err)
{
    tdmi_outcomes best = {0};
    tdmi_arena scratch;
    tdmi_arena_init(&scratch, 4096);
    const char *path = tdmi_path_join(&scratch, tdmi_run_path(record->run), TDMI_OUTCOMES_NAME);
    tdm_status status = TDM_OK;
    if (!path)
        status = TDM_FAIL(err, TDM_E_MEMORY, "naming outcomes: out of memory");
    else if (tdmi_file_kind_of(path) == TDMI_FILE_REGULAR) /* an older run kept none */
        status = tdmi_outcomes_load(path, &best, err);
    if (status == TDM_OK)
        pair_up(&best, &evaluation->outcomes, after);
    tdmi_outcomes_release(&best);
    tdmi_arena_release(&scratch);
    return status;
}

tdm_status tdmi_evaluation_after_best(const struct tdmi_run_record *record,
                                      const struct tdmi_evaluation *evaluation,
                                      struct tdm_after_best *after, tdm_error *err)
{
    const struct tdmi_progress *progress = record->progress;
    *after = (struct tdm_after_best){.p = 1.0};
    if (progress->evaluated_step == progress->best_step)
        return TDM_OK;
    after->epochs = progress->epoch - progress->best_epoch;
    if (progress->position > 0) /* a last epoch that a limit cut short */
        after->epochs++;
    if (record->best_seconds > 0.0)
        after->seconds = tdmi_record_seconds(record) - record->best_seconds;
    return after->epochs > 0 ? compare_with_best(record, evaluation, after, err) : TDM_OK;
}
