/*
 * Early stopping. The usual patience follows the planned epochs, because the schedule does: half a
 * cosine keeps its rate high for the first half, and what it gains comes when the rate falls.
 */
#include "train/stopping.h"

enum { least_epochs = 10, part_of_epochs = 4 };

static bool monitors_loss(const struct tdm_train_options *options)
{
    return options->monitor[0] == 'l';
}

bool tdmi_stopping_is_better(const struct tdm_train_options *options, const tdm_score *score,
                             const tdm_score *than)
{
    if (monitors_loss(options) && (score->loss < than->loss || score->loss > than->loss))
        return score->loss < than->loss;
    if (score->correct != than->correct)
        return score->correct > than->correct;
    return score->loss < than->loss;
}

void tdmi_stopping_take(const struct tdm_train_options *options, const tdm_score *score,
                        struct tdmi_progress *progress)
{
    const bool is_first = progress->best_epoch == 0;
    const bool is_improved = monitors_loss(options)
                                 ? progress->mark_loss - score->loss > options->min_delta
                                 : (double)(score->correct - progress->mark_correct) >
                                       options->min_delta * (double)score->n;
    progress->epochs_since_best++;
    if (!is_first && !is_improved)
        return;
    progress->epochs_since_best = 0;
    progress->mark_correct = score->correct;
    progress->mark_loss = score->loss;
}

int tdmi_stopping_patience(const struct tdm_train_options *options)
{
    if (options->patience >= 0)
        return options->patience;
    int epochs = (options->epochs + part_of_epochs - 1) / part_of_epochs;
    if (epochs < least_epochs)
        epochs = least_epochs;
    /* With --eval-every patience counts validations: at least two, since one may be chance. */
    const int validations = (epochs + options->eval_every - 1) / options->eval_every;
    return validations > 2 ? validations : 2;
}

bool tdmi_stopping_is_due(const struct tdm_train_options *options,
                          const struct tdmi_progress *progress)
{
    const int patience = tdmi_stopping_patience(options);
    return patience > 0 && progress->epochs_since_best >= patience;
}
