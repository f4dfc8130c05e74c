/*
 * The third part of the split: images that neither trained nor chose an epoch. They are evaluated
 * once training is over, with the best weights. A resumed run evaluates them again and keeps
 * earlier scores.
 */
#include "base/file/file.h"
#include "base/scope.h"
#include "tandem/event.h"
#include "train/evaluate/metrics.h"
#include "train/evaluate/score.h"
#include "train/session/session.h"

#include <math.h>

/* Replaces the newest weights by the best ones. */
static tdm_status load_best(struct tdmi_session *session, tdm_error *err)
{
    const struct tdmi_train_network *network = &session->network;
    const tdmi_graph *graph = network->graph;
    TDMI_AT_END(tdmi_model_file_release) struct tdmi_model_file best = {0};
    const char *path =
        tdmi_path_join(&session->arena, tdmi_run_path(session->record.run), "best.safetensors");
    TDMI_CHECK_MEMORY(path, err);
    TDM_TRY(tdmi_model_file_load(path, &best, err), err, "taking the best weights");
    if (best.graph->param_values != graph->param_values ||
        best.graph->state_values != graph->state_values)
        return TDM_FAIL(err, TDM_E_INPUT, "%s holds another network than the run's", path);
    return TDM_WRAP(
        err,
        tdmi_values_upload(session, network->mean_params != NULL, best.params, best.states, err),
        "placing the best weights");
}

static tdm_status place_best(struct tdmi_session *session, tdm_error *err)
{
    if (session->progress.best_step == session->progress.step)
        return TDM_OK;
    if (!tdmi_ranks_is_follower(session))
        TDMI_TRY(load_best(session, err));
    return tdmi_ranks_share_evaluated(session, err);
}

static tdm_status evaluator(struct tdmi_session *session, tdmi_feed *feed, tdmi_outcomes *outcomes,
                            struct tdm_train_result *result, tdm_error *err)
{
    struct tdm_metrics metrics = {0};
    int64_t skipped = 0;
    TDMI_TRY(place_best(session, err));
    TDMI_TRY(tdmi_evaluator_take(session->evaluation.evaluator,
                                 tdmi_values_evaluated(&session->network), err));
    TDM_TRY(tdmi_session_evaluate(session, feed, session->data.split.n_test, "testing", outcomes,
                                  &skipped, err),
            err, "testing");
    TDMI_TRY(tdmi_ranks_agree(session, err));
    if (tdmi_ranks_is_stopping(session))
        return TDM_FAIL(err, TDM_E_STOPPED,
                        "training was over, and the test was stopped on request; --resume runs the "
                        "test and ends");
    const bool is_shared = tdmi_ranks_share_steps(session);
    int64_t first = 0, end;
    if (is_shared)
        tdmi_ranks_part_of(session, session->data.split.n_test, &first, &end);
    TDMI_TRY(tdmi_data_report_skipped(session, feed, first, is_shared, err));
    if (tdmi_ranks_is_follower(session))
        return TDM_OK;
    TDMI_TRY(tdmi_metrics_of(outcomes, session->network.host.classes, &metrics, err));
    result->test = metrics.score;
    result->skipped += skipped;
    tdm_metrics_release(&metrics);
    return TDM_OK;
}

/* Choosing the better of two scores would be optimistic, so both are kept. */
static void keep_before(const struct tdmi_run_record *record, tdm_score before, int best_before,
                        struct tdm_train_result *result)
{
    tdmi_record_note(record,
                     "the test was evaluated before, after epoch %d, and now other weights are the "
                     "best: choosing between the two numbers makes the better one optimistic, so "
                     "the result keeps both",
                     best_before);
    if (result->n_tests_before < TDM_TESTS_BEFORE)
        result->tests_before[result->n_tests_before++] =
            (struct tdm_test_before){best_before, before};
}

/* An epoch that a limit had cut short may become the best twice, with other weights. */
static bool is_same_best(const tdm_json_value *recorded, int best_before,
                         const struct tdm_train_result *result)
{
    const tdm_score val = tdmi_score_from_json(tdm_json_member(recorded, "val"));
    return best_before == result->best_epoch && val.correct == result->val.correct &&
           !(fabs(val.loss - result->val.loss) > 0.0);
}

tdm_status tdmi_session_test(struct tdmi_session *session, struct tdm_train_result *result,
                             tdm_error *err)
{
    const tdm_json_value *recorded = tdmi_run_recorded(session->record.run, "result");
    const tdm_score before = tdmi_score_from_json(tdm_json_member(recorded, "test"));
    const int best_before = (int)tdm_json_as_integer(tdm_json_member(recorded, "best_epoch"), 0);
    TDMI_AT_END(tdmi_outcomes_release) tdmi_outcomes outcomes = {0};
    TDMI_AT_END(tdmi_feed_close_at) tdmi_feed *feed = NULL;
    tdmi_record_recall_tests(&session->record, result);
    if (before.n > 0 && is_same_best(recorded, best_before, result)) {
        result->test = before;
        return TDM_OK;
    }
    if (before.n > 0)
        keep_before(&session->record, before, best_before, result);
    tdmi_feed_close(session->data.train_feed); /* its memory is free for the test's */
    session->data.train_feed = NULL;
    TDMI_TRY(tdmi_outcomes_open(&outcomes, session->network.host.n_classes,
                                session->data.split.n_test, err));
    TDMI_TRY(tdmi_session_open_test(session, &feed, err));
    return evaluator(session, feed, &outcomes, result, err);
}
