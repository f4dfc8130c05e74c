/*
 * When a training ends: at a limit inside an epoch or after one, or because nothing improves.
 */
#include "train/session/session.h"
#include "train/stopping.h"

bool tdmi_limits_is_cut(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->config.options;
    const int64_t step = session->record.progress->step;
    if (step == 0) /* at least one step is taken */
        return false;
    return (options->steps > 0 && step >= options->steps) || tdmi_ranks_is_out_of_time(session);
}

/* Never before the last move of the freeze point, and not because of epochs before --epochs was
 * raised: the schedule follows --epochs, so the rate is higher again. */
static bool is_out_of_patience(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->config.options;
    const struct tdmi_progress *progress = session->record.progress;
    const int from = session->config.patience_from;
    return session->network.first_trained == session->network.unfreeze.last &&
           tdmi_stopping_is_due(options, progress) &&
           (from == 0 ||
            (progress->epoch - from) / options->eval_every >= tdmi_stopping_patience(options));
}

bool tdmi_limits_is_done(const struct tdmi_session *session, int epochs)
{
    const struct tdm_train_options *options = &session->config.options;
    return tdmi_limits_is_cut(session) || (options->epochs > 0 && epochs >= options->epochs) ||
           is_out_of_patience(session);
}

/* A run that was interrupted between its last step and the validation is not over. */
bool tdmi_limits_is_over(const struct tdmi_session *session)
{
    const struct tdmi_progress *progress = session->record.progress;
    return progress->best_epoch > 0 && progress->evaluated_step == progress->step &&
           tdmi_limits_is_done(session, progress->epoch);
}

const char *tdmi_limits_ended_by(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->config.options;
    const struct tdmi_progress *progress = session->record.progress;
    if (options->epochs > 0 && progress->epoch >= options->epochs)
        return "epochs";
    if (options->steps > 0 && progress->step >= options->steps)
        return "steps";
    return is_out_of_patience(session) ? "patience" : "minutes";
}
