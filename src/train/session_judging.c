/*
 * What validation leaves behind: what became of every picture, what follows from it, and both of
 * the best epoch on disk.
 */
#include "base/file.h"
#include "train/metrics.h"
#include "train/session.h"

tdm_status tdmi_session_open_judging(struct tdmi_session *session, tdm_error *err)
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

void tdmi_session_close_judging(struct tdmi_session *session)
{
    tdm_metrics_release(&session->metrics);
    tdmi_outcomes_release(&session->outcomes);
}

tdm_status tdmi_session_count(struct tdmi_session *session, tdm_error *err)
{
    tdm_metrics_release(&session->metrics);
    return tdmi_metrics_of(&session->outcomes, session->snapshot.classes, &session->metrics, err);
}

static tdm_status record(struct tdmi_session *session, tdm_error *err)
{
    const char *text;
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_object_begin(writer, NULL);
    tdm_json_integer(writer, "epoch", session->outcomes.epoch);
    tdm_metrics_to_json(&session->metrics, writer);
    tdm_json_object_end(writer);
    tdm_status status = tdm_json_finish(writer, &text, NULL, err);
    if (status == TDM_OK)
        status = tdmi_run_set(session->run, "validation", text, err);
    tdm_json_writer_free(writer);
    return status;
}

tdm_status tdmi_session_keep_outcomes(struct tdmi_session *session, int epoch, tdm_error *err)
{
    tdmi_arena scratch;
    tdmi_arena_init(&scratch, 4096);
    session->outcomes.epoch = epoch;
    session->outcomes.step = session->progress.step;
    char *path = tdmi_path_join(&scratch, tdmi_run_path(session->run), TDMI_OUTCOMES_NAME);
    tdm_status status = path ? tdmi_outcomes_save(&session->outcomes, path, err)
                             : TDM_FAIL(err, TDM_E_MEMORY, "naming outcomes: out of memory");
    if (status == TDM_OK)
        status = record(session, err);
    tdmi_arena_release(&scratch);
    return status;
}
