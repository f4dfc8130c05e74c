/*
 * Looking back at the end: the epochs after the best one, their time, and what became of the
 * pictures in them that was not so before.
 */
#include "base/file/file.h"
#include "tandem/metrics.h"
#include "train/advice.h"
#include "train/report/review.h"
#include "train/session/session.h"

#include <stdio.h>

/* The best epoch's outcomes are on disk, the last epoch's at hand: the same pictures in the same
 * order, unless some could be read only once. */
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

static tdm_status compare_with_best(struct tdmi_session *session, struct tdm_after_best *after,
                                    tdm_error *err)
{
    tdmi_outcomes best = {0};
    tdmi_arena scratch;
    tdmi_arena_init(&scratch, 4096);
    const char *path = tdmi_path_join(&scratch, tdmi_run_path(session->run), TDMI_OUTCOMES_NAME);
    tdm_status status = TDM_OK;
    if (!path)
        status = TDM_FAIL(err, TDM_E_MEMORY, "naming outcomes: out of memory");
    else if (tdmi_file_kind_of(path) == TDMI_FILE_REGULAR) /* an older run kept none */
        status = tdmi_outcomes_load(path, &best, err);
    if (status == TDM_OK)
        pair_up(&best, &session->outcomes, after);
    tdmi_outcomes_release(&best);
    tdmi_arena_release(&scratch);
    return status;
}

static void measure(const struct tdmi_session *session, struct tdm_after_best *after)
{
    const struct tdmi_progress *progress = &session->progress;
    *after = (struct tdm_after_best){.p = 1.0};
    if (progress->evaluated_step == progress->best_step)
        return;
    after->epochs = progress->epoch - progress->best_epoch;
    if (progress->position > 0) /* a last one that a limit cut short */
        after->epochs++;
    if (session->best_seconds > 0.0)
        after->seconds = tdmi_session_seconds(session) - session->best_seconds;
}

tdm_status tdmi_session_account(struct tdmi_session *session, struct tdm_train_result *result,
                                tdm_error *err)
{
    struct tdm_after_best *after = &result->after_best;
    measure(session, after);
    return after->epochs > 0 ? compare_with_best(session, after, err) : TDM_OK;
}

/* ---- a run that had ended before --------------------------------------------------------------
 */

static double number(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_number(tdm_json_member(object, key), 0.0);
}

static int64_t whole(const tdm_json_value *object, const char *key)
{
    return tdm_json_as_integer(tdm_json_member(object, key), 0);
}

void tdmi_session_recall_tests(const struct tdmi_session *session, struct tdm_train_result *result)
{
    const tdm_json_value *recorded = tdmi_run_recorded(session->run, "result");
    const tdm_json_value *before = tdm_json_member(recorded, "tests_before");
    const size_t n = tdm_json_count(before);
    result->n_tests_before = 0;
    for (size_t i = 0; i < n && i < TDM_TESTS_BEFORE; i++) {
        const tdm_json_value *test = tdm_json_at(before, i);
        result->tests_before[result->n_tests_before++] =
            (struct tdm_test_before){(int)whole(test, "epoch"), tdmi_review_score(test)};
    }
}

/* A record of an older version has none: it is found now, from what is left. */
static void recall_next(const tdm_json_value *recorded, struct tdm_next *next)
{
    const tdm_json_value *told = tdm_json_member(recorded, "next");
    next->step = tdmi_advice_step(tdm_json_as_string(tdm_json_member(told, "step"), ""));
    snprintf(next->evidence, sizeof next->evidence, "%s",
             tdm_json_as_string(tdm_json_member(told, "evidence"), ""));
}

bool tdmi_session_recall(struct tdmi_session *session, struct tdm_train_result *result)
{
    const tdm_json_value *recorded = tdmi_run_recorded(session->run, "result");
    const tdm_json_value *after = tdm_json_member(recorded, "after_best");
    const tdm_json_value *features = tdm_json_member(recorded, "features");
    const tdm_json_value *cached = tdm_json_member(recorded, "cached");
    result->test = tdmi_review_score(tdm_json_member(recorded, "test"));
    if (tdmi_run_found(session->run) != TDMI_RUN_FINISHED || session->outcomes.n > 0 ||
        whole(recorded, "steps") != result->steps || (session->has_test && result->test.n == 0))
        return false;
    result->seconds = number(recorded, "seconds");
    result->images_per_second = number(recorded, "images_per_second");
    result->skipped = whole(recorded, "skipped");
    result->cached = tdm_json_as_bool(cached, false);
    result->features = (struct tdm_features){.rows = whole(features, "rows"),
                                             .reused = whole(features, "reused"),
                                             .checked = whole(features, "checked"),
                                             .remade = whole(features, "remade")};
    result->after_best = (struct tdm_after_best){
        .epochs = (int)whole(after, "epochs"),
        .seconds = number(after, "seconds"),
        .n = whole(after, "n"),
        .only_best = whole(after, "only_best"),
        .only_last = whole(after, "only_last"),
        .p = tdm_json_as_number(tdm_json_member(after, "p"), 1.0),
    };
    tdmi_session_recall_tests(session, result);
    recall_next(recorded, &result->next);
    return true;
}
