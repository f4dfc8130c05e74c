/*
 * Progress for people: a bar with rate and time left on a terminal, plain lines (at most one every
 * ten seconds) elsewhere. Always on the stream given, never standard output.
 */
#pragma once

#include "tandem/api.h"
#include <stdint.h>
#include <stdio.h>

typedef enum tdmi_progress_style {
    TDMI_PROGRESS_AUTO, /* bar when the stream is a terminal, lines otherwise */
    TDMI_PROGRESS_BAR,
    TDMI_PROGRESS_LINES
} tdmi_progress_style;

typedef struct tdmi_progress_display tdmi_progress_display;

/* unit is the plural that is counted ("images"); total 0 when unknown. NULL when out of memory:
 * every other call accepts NULL and does nothing. */
tdmi_progress_display *tdmi_progress_start(FILE *stream, tdmi_progress_style style,
                                           const char *title, const char *unit, int64_t total);
/* Any thread, as often as liked: draws at most ten times a second. note may be NULL. */
void tdmi_progress_update(tdmi_progress_display *progress, int64_t done, const char *note);
/* Clears the bar (or, after a second or more, writes the last line) and frees. */
void tdmi_progress_stop(tdmi_progress_display *progress);

/* ---- how it looks: text from numbers, apart from streams and clocks ---- */

struct tdmi_progress_view {
    const char *title, *unit, *note; /* note may be "" */
    int64_t done, total;             /* total 0: unknown */
    double seconds;                  /* since the start */
    double per_s;                    /* rate now; 0 unknown */
};

enum { TDMI_PROGRESS_BYTES = 1024 };

/* One line of at most columns characters, without line end. */
void tdmi_progress_bar(const struct tdmi_progress_view *view, int columns,
                       char text[TDMI_PROGRESS_BYTES]);
/* A sentence-like line for logs, without line end; is_last: with the time taken, not the time left.
 */
void tdmi_progress_line(const struct tdmi_progress_view *view, int is_last,
                        char text[TDMI_PROGRESS_BYTES]);
