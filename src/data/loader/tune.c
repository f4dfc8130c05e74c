/*
 * The caller must not wait; that comes first. If it waits while every thread works, one more thread
 * is tried; if it waits although threads idle at other times, batches are taken in bursts, and one
 * more slot bridges them. If it does not wait and more than one whole thread idles, one thread is
 * stopped to free its CPU for the step. A thread that had to be started again is never stopped
 * again, so the choice converges.
 */
#include "data/loader/internal.h"

static const double waits_much = 0.02, waits_little = 0.005, idles_much = 1.2, idles_some = 0.5;

const char *tdmi_tuning_step(struct tdmi_tuning *tuning, const struct tdmi_tuning_sample *sample)
{
    if (!(sample->seconds > 0.0))
        return NULL;
    double waits = sample->consumer_waits / sample->seconds;
    double idle = sample->ring_waits / sample->seconds;
    if (waits > waits_much) {
        if (idle > idles_some && tuning->depth < tuning->most_depth) {
            tuning->depth++;
            return "batches are taken in bursts";
        }
        if (tuning->threads < tuning->most_threads) {
            if (++tuning->threads == tuning->given_back)
                tuning->floor = tuning->threads;
            return "batches were waited for";
        }
        return NULL;
    }
    if (waits < waits_little && idle > idles_much && tuning->threads > 1 &&
        tuning->threads > tuning->floor) {
        tuning->given_back = tuning->threads--;
        return "the ring was full";
    }
    return NULL;
}
