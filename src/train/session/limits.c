/*
 * When a training ends: at a limit inside an epoch or after one, or because nothing improves.
 */
#include "train/session/session.h"
#include "train/stopping.h"

bool tdmi_limits_is_cut(const struct tdmi_train_config *config,
                        const struct tdmi_run_record *record)
{
    const struct tdm_train_options *options = &config->options;
    const int64_t step = record->progress->step;
    if (step == 0) /* at least one step is taken */
        return false;
    return (options->steps > 0 && step >= options->steps) ||
           (options->minutes > 0.0 && tdmi_record_seconds(record) >= 60.0 * options->minutes);
}

/* Never before the last move of the freeze point. */
static bool is_out_of_patience(const struct tdmi_train_config *config,
                               const struct tdmi_run_record *record,
                               const struct tdmi_train_network *network)
{
    return network->first_trained == network->unfreeze.last &&
           tdmi_stopping_is_due(&config->options, record->progress);
}

bool tdmi_limits_is_done(const struct tdmi_train_config *config,
                         const struct tdmi_run_record *record,
                         const struct tdmi_train_network *network, int epochs)
{
    const struct tdm_train_options *options = &config->options;
    return tdmi_limits_is_cut(config, record) ||
           (options->epochs > 0 && epochs >= options->epochs) ||
           is_out_of_patience(config, record, network);
}

/* A run that was interrupted between its last step and the validation is not over. */
bool tdmi_limits_is_over(const struct tdmi_train_config *config,
                         const struct tdmi_run_record *record,
                         const struct tdmi_train_network *network)
{
    const struct tdmi_progress *progress = record->progress;
    return progress->best_epoch > 0 && progress->evaluated_step == progress->step &&
           tdmi_limits_is_done(config, record, network, progress->epoch);
}

const char *tdmi_limits_ended_by(const struct tdmi_train_config *config,
                                 const struct tdmi_run_record *record,
                                 const struct tdmi_train_network *network)
{
    const struct tdm_train_options *options = &config->options;
    const struct tdmi_progress *progress = record->progress;
    if (options->epochs > 0 && progress->epoch >= options->epochs)
        return "epochs";
    if (options->steps > 0 && progress->step >= options->steps)
        return "steps";
    return is_out_of_patience(config, record, network) ? "patience" : "minutes";
}
