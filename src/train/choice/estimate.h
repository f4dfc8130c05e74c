/*
 * The one line that says which network was chosen and how long its training takes. It waits until
 * a little of the work was timed. The time is that of the result: it counts the whole run, with
 * the probe and all seconds before the line. Where the user chose, and after layers were unfrozen,
 * a line says how long the epochs take, if that is a minute or more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tdmi_session;

enum { TDMI_REASON_BYTES = 320 };

struct tdmi_estimate {
    int64_t first_position;         /* images of the first step, which waits for them, … */
    double first_seconds;           /* … and its time: the others tell how long the rest takes */
    double probe_seconds;           /* time of the probe; 0: there was none */
    bool is_due;                    /* a time is to be printed */
    char reason[TDMI_REASON_BYTES]; /* why this network was chosen; "": the user chose, or the line
                                       is printed */
};

enum { TDMI_DURATION_BYTES = 40 };
/* "12 s", "3 min" */
const char *tdmi_estimate_words(double seconds, char text[TDMI_DURATION_BYTES]);
/* Time of a forward pass, as a part of that of a training step, per image. */
#define TDMI_FORWARD_PART 0.33

/* reason: "" where the user chose. Prints the line without a time where limits other than --epochs
 * end the training, and before an unfreeze, whose epochs take far longer than those that could be
 * timed. */
void tdmi_estimate_begin(struct tdmi_session *session, const char *reason);
/* After done of total feature rows, and seconds for them. */
void tdmi_estimate_by_features(struct tdmi_session *session, int64_t done, int64_t total,
                               double seconds);
/* After a step of an epoch, whose steps so far took seconds. */
void tdmi_estimate_by_steps(struct tdmi_session *session, double seconds);
