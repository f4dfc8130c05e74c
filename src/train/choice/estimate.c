/* The rest is taken to be as slow as the part that was timed. */
#include "train/choice/estimate.h"
#include "train/session/session.h"

#include <stdio.h>

/* Shorter times say little: the first batches wait for their images. */
#define LEAST_SECONDS 1.0
#define LEAST_PART 0.02

static const char advice[] = "--model and --weights choose otherwise";

const char *tdmi_estimate_words(double seconds, char text[TDMI_DURATION_BYTES])
{
    if (seconds < 90.0)
        snprintf(text, TDMI_DURATION_BYTES, "%.0f s", seconds < 1.0 ? 1.0 : seconds);
    else
        snprintf(text, TDMI_DURATION_BYTES, "%.0f min", seconds / 60.0);
    return text;
}

/* seconds: as the result counts them, of the whole run. */
static void print(struct tdmi_session *session, double seconds)
{
    struct tdmi_estimate *it = &session->estimate;
    char whole[TDMI_DURATION_BYTES], probe[TDMI_DURATION_BYTES], of_probe[80] = "";
    if (it->probe_seconds > 0.0)
        snprintf(of_probe, sizeof of_probe, ", of which the probe took %s",
                 tdmi_estimate_words(it->probe_seconds, probe));
    tdmi_record_note(&session->record, "%s; the training takes about %s%s (%s)", it->reason,
                     tdmi_estimate_words(seconds, whole), of_probe, advice);
    it->reason[0] = '\0';
}

void tdmi_estimate_begin(struct tdmi_session *session, const char *reason)
{
    const struct tdm_train_options *options = &session->config.options;
    if (!*reason)
        return;
    if (options->epochs == 0 || options->steps > 0 || options->minutes > 0.0 ||
        options->unfreeze > 0)
        tdmi_record_note(&session->record, "%s (%s)", reason, advice);
    else
        snprintf(session->estimate.reason, sizeof session->estimate.reason, "%s", reason);
}

void tdmi_estimate_by_features(struct tdmi_session *session, int64_t done, int64_t total,
                               double seconds)
{
    if (!session->estimate.reason[0] || seconds < LEAST_SECONDS ||
        (double)done < LEAST_PART * (double)total)
        return;
    print(session,
          tdmi_record_seconds(&session->record) + seconds * (double)(total - done) / (double)done);
}

void tdmi_estimate_by_steps(struct tdmi_session *session, double seconds)
{
    const int64_t n_train = session->data.split.n_train, n_val = session->data.split.n_val;
    const struct tdmi_progress *progress = &session->progress;
    struct tdmi_estimate *it = &session->estimate;
    if (!it->reason[0] || progress->position == 0)
        return;
    if (it->first_position == 0 && progress->position < n_train) {
        it->first_position = progress->position;
        it->first_seconds = seconds;
        return;
    }
    const double timed = seconds - it->first_seconds;
    if (timed < LEAST_SECONDS && progress->position < n_train)
        return;
    const int epochs = session->config.options.epochs - progress->epoch;
    const double images = (double)n_train * epochs - (double)progress->position +
                          TDMI_FORWARD_PART * (double)n_val * epochs;
    print(session, tdmi_record_seconds(&session->record) +
                       images * timed / (double)(progress->position - it->first_position));
}
