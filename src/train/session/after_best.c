/* The epochs after the best one: their time, and which images they changed. */
#include "base/file/file.h"
#include "tandem/metrics.h"
#include "train/session/evaluation.h"

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
