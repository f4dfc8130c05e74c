/* The rest is taken to be as slow as the part that was timed. */
#include "train/choice/estimate.h"
#include "train/session/session.h"
#include "train/stopping.h"

#include <stdio.h>

/* Shorter times say little: the first batches wait for their images. */
#define LEAST_SECONDS 1.0
#define LEAST_PART 0.02

/* Shorter trainings of networks that the user chose are over before somebody would plan by it. */
#define LONG_SECONDS 60.0

static const char advice[] = "--model and --weights choose otherwise";

const char *tdmi_estimate_words(double seconds, char text[TDMI_DURATION_BYTES])
{
    if (seconds < 90.0)
        snprintf(text, TDMI_DURATION_BYTES, "%.0f s", seconds < 1.0 ? 1.0 : seconds);
    else
        snprintf(text, TDMI_DURATION_BYTES, "%.0f min", seconds / 60.0);
    return text;
}

/* left: seconds until the end; early: what else may be. With a reason the time is that of the
 * result, of the whole run. */
static void print(struct tdmi_session *session, double left, const char *early)
{
    struct tdmi_estimate *it = &session->estimate;
    const double whole = tdmi_record_seconds(&session->record) + left;
    const int before = session->progress.epoch, epochs = session->config.options.epochs - before;
    char time[TDMI_DURATION_BYTES], probe[TDMI_DURATION_BYTES], of_probe[80] = "";
    if (it->probe_seconds > 0.0)
        snprintf(of_probe, sizeof of_probe, ", of which the probe took %s",
                 tdmi_estimate_words(it->probe_seconds, probe));
    if (it->reason[0])
        tdmi_record_note(&session->record, "%s; the training takes about %s%s%s (%s)", it->reason,
                         tdmi_estimate_words(whole, time), of_probe, early, advice);
    else if (left >= LONG_SECONDS)
        tdmi_record_note(&session->record, "%d epoch%s%s take%s about %s%s", epochs,
                         epochs == 1 ? "" : "s", before > 0 ? " more" : "", epochs == 1 ? "s" : "",
                         tdmi_estimate_words(left, time), early);
    it->is_due = false;
    it->reason[0] = '\0';
}

/* Do only epochs end the training, all at the speed of those that come first? */
static bool is_countable(const struct tdmi_session *session)
{
    const struct tdm_train_options *options = &session->config.options;
    const bool is_frozen_at_first = options->unfreeze > 0 && session->progress.epoch == 0;
    return options->epochs > 0 && options->steps == 0 && options->minutes <= 0.0 &&
           !is_frozen_at_first;
}

void tdmi_estimate_begin(struct tdmi_session *session, const char *reason)
{
    struct tdmi_estimate *it = &session->estimate;
    it->is_due = is_countable(session);
    it->first_position = 0;
    if (it->is_due)
        snprintf(it->reason, sizeof it->reason, "%s", reason);
    else if (*reason)
        tdmi_record_note(&session->record, "%s (%s)", reason, advice);
}

void tdmi_estimate_by_features(struct tdmi_session *session, int64_t done, int64_t total,
                               double seconds)
{
    if (session->estimate.is_due && seconds >= LEAST_SECONDS &&
        (double)done >= LEAST_PART * (double)total)
        print(session, seconds * (double)(total - done) / (double)done, "");
}

void tdmi_estimate_by_steps(struct tdmi_session *session, double seconds)
{
    const int64_t n_train = session->data.split.n_train, n_val = session->data.split.n_val;
    const struct tdmi_progress *progress = &session->progress;
    struct tdmi_estimate *it = &session->estimate;
    if (!it->is_due || progress->position == 0)
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
    const int patience = tdmi_stopping_patience(&session->config.options);
    print(session, images * timed / (double)(progress->position - it->first_position),
          patience > 0 && patience < epochs ? ", less if it stops early" : "");
}
