/*
 * When a training ends: limits that are reached inside an epoch, after one, or because nothing
 * improves any more.
 */
#include "train/session/session.h"
#include "train/stopping.h"

bool tdmi_session_is_cut(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    if (session->progress.step == 0) /* at least one step is taken */
        return false;
    return (options->steps > 0 && session->progress.step >= options->steps) ||
           (options->minutes > 0.0 && tdmi_session_seconds(session) >= 60.0 * options->minutes);
}

/* Not before the last layer that is to learn does. */
static bool is_out_of_patience(const struct tdmi_session *session)
{
    return session->first_trained == session->last_freeze_point &&
           tdmi_stopping_is_due(&session->options, &session->progress);
}

bool tdmi_session_is_done(const struct tdmi_session *session, int epochs)
{
    const struct tdm_train_options *options = &session->options;
    return tdmi_session_is_cut(session) || (options->epochs > 0 && epochs >= options->epochs) ||
           is_out_of_patience(session);
}

/* Who was interrupted between the last step and its validation still owes that one. */
bool tdmi_session_is_over(const struct tdmi_session *session)
{
    const struct tdmi_progress *progress = &session->progress;
    return progress->best_epoch > 0 && progress->evaluated_step == progress->step &&
           tdmi_session_is_done(session, progress->epoch);
}

const char *tdmi_session_ended_by(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->options;
    const struct tdmi_progress *progress = &session->progress;
    if (options->epochs > 0 && progress->epoch >= options->epochs)
        return "epochs";
    if (options->steps > 0 && progress->step >= options->steps)
        return "steps";
    return is_out_of_patience(session) ? "patience" : "minutes";
}
