/*
 * Validation: the outcome for every image, the metrics of all, and the epochs after the best one.
 */
#include "base/file/file.h"
#include "base/scope.h"
#include "tandem/event.h"
#include "tandem/metrics.h"
#include "train/evaluate/metrics.h"
#include "train/evaluate/pairs.h"
#include "train/evaluate/score.h"
#include "train/session/session.h"

tdm_status tdmi_evaluation_open(struct tdmi_session *session, tdm_error *err)
{
    struct tdmi_evaluation *it = &session->evaluation;
    const struct tdmi_model_file *host = &session->network.host;
    const size_t batch = (size_t)session->data.max_batch, n_classes = (size_t)host->n_classes;
    it->probabilities =
        tdmi_arena_alloc(&session->arena, batch * n_classes, sizeof *it->probabilities);
    it->judgements = tdmi_arena_alloc(&session->arena, batch, sizeof *it->judgements);
    TDMI_CHECK_MEMORY(it->probabilities && it->judgements, err);
    TDM_TRY(tdmi_outcomes_open(&it->outcomes, host->n_classes, session->data.split.n_val, err), err,
            "preparing to validate");
    it->outcomes.classes = host->classes;
    it->outcomes.network = host->network;
    return TDM_OK;
}

void tdmi_evaluation_close(struct tdmi_evaluation *evaluation)
{
    tdm_metrics_release(&evaluation->metrics);
    tdmi_outcomes_release(&evaluation->best_outcomes);
    tdmi_outcomes_release(&evaluation->outcomes);
}

tdm_status tdmi_evaluation_count(struct tdmi_session *session, tdm_error *err)
{
    tdm_metrics_release(&session->evaluation.metrics);
    return tdmi_metrics_of(&session->evaluation.outcomes, session->network.host.classes,
                           &session->evaluation.metrics, err);
}

tdm_score tdmi_evaluation_of_training(const struct tdmi_session *session)
{
    const struct tdmi_progress *progress = &session->progress;
    const int64_t n = progress->epoch_n, correct = progress->epoch_correct;
    const int64_t distinct = session->data.n_train_distinct, all = session->data.split.n_train;
    tdm_score score = tdmi_score_of(n, correct, progress->epoch_loss);
    if (distinct < all)
        tdmi_score_count_distinct(&score, n * distinct / all, correct * distinct / all);
    return score;
}

static tdm_status evaluate_batches(struct tdmi_session *session, tdmi_feed *feed, int64_t n_items,
                                   tdmi_outcomes *outcomes, int64_t *seen, tdm_error *err)
{
    double loss = 0.0;
    while (tdmi_ranks_share_steps(session) || !tdm_stop_is_requested()) {
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
                err, "evaluating");
        TDM_TRY(tdmi_data_check_batch(&session->config, batch, err), err, "evaluating");
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
    tdmi_lane *lane = tdmi_compute_lane(&session->compute);
    const int64_t begin_ns = tdmi_lane_begin(lane);
    outcomes->n = 0;
    TDM_TRY(tdmi_feed_seek(feed, 0, 0, err), err, "reading validation images");
    tdmi_track_event(session->record.track,
                     &(tdm_event){.kind = TDM_EVENT_PHASE_BEGIN, .total = n_items, .text = what});
    tdm_status status = evaluate_batches(session, feed, n_items, outcomes, &seen, err);
    const tdm_status settled =
        tdmi_evaluator_settle(session->evaluation.evaluator, status == TDM_OK ? err : NULL);
    status = status == TDM_OK ? settled : status;
    tdmi_track_event(session->record.track, &(tdm_event){.kind = TDM_EVENT_PHASE_END});
    if (status == TDM_OK)
        status = tdmi_ranks_gather_outcomes(session, outcomes, err);
    tdmi_lane_end(lane, TDMI_TRACE_VALIDATION, 0, begin_ns);
    *skipped = (tdmi_ranks_share_steps(session) ? n_items : seen) - outcomes->n;
    return TDM_WRAP(err, status, "reading validation images");
}

tdm_status tdmi_evaluation_record(const struct tdmi_session *session, tdm_error *err)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "epoch", session->evaluation.outcomes.epoch);
    tdm_metrics_to_json(&session->evaluation.metrics, writer);
    tdm_json_object_end(writer);
    return tdmi_record_set(&session->record, "validation", writer, err);
}

/* ---- the epochs after the best one -------------------------------------------------------- */

tdm_status tdmi_evaluation_load_best(const struct tdmi_session *session, tdmi_outcomes *best,
                                     tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    const char *path =
        tdmi_path_join(&scratch, tdmi_run_path(session->record.run), TDMI_OUTCOMES_NAME);
    TDMI_CHECK_MEMORY(path, err);
    return tdmi_file_kind_of(path) == TDMI_FILE_REGULAR ? tdmi_outcomes_load(path, best, err)
                                                        : TDM_OK;
}

static tdm_status compare_with_best(const struct tdmi_session *session,
                                    struct tdm_after_best *after, tdm_error *err)
{
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes best = {0};
    struct tdmi_pairs pairs;
    bool are_same;
    TDMI_TRY(tdmi_evaluation_load_best(session, &best, err));
    if (best.n == 0)
        return TDM_OK;
    TDMI_TRY(tdmi_outcomes_pair(&best, &session->evaluation.outcomes, &pairs, &are_same, err));
    if (!are_same) /* some images could be read only once */
        return TDM_OK;
    after->n = best.n;
    after->n_distinct = pairs.both + pairs.only_a + pairs.only_b + pairs.neither;
    after->only_best = pairs.only_a;
    after->only_last = pairs.only_b;
    after->p = tdm_mcnemar_exact(pairs.only_a, pairs.only_b);
    return TDM_OK;
}

tdm_status tdmi_evaluation_after_best(const struct tdmi_session *session,
                                      struct tdm_after_best *after, tdm_error *err)
{
    const struct tdmi_progress *progress = session->record.progress;
    *after = (struct tdm_after_best){.p = 1.0};
    if (progress->evaluated_step == progress->best_step)
        return TDM_OK;
    after->epochs = progress->epoch - progress->best_epoch;
    if (progress->position > 0) /* a last epoch that a limit cut short */
        after->epochs++;
    if (session->record.best_seconds > 0.0)
        after->seconds = tdmi_record_seconds(&session->record) - session->record.best_seconds;
    return after->epochs > 0 ? compare_with_best(session, after, err) : TDM_OK;
}
