/*
 * Progress for people: a bar with rate and time left on a terminal, plain lines (at most one every
 * ten seconds) elsewhere, nothing when quiet. Always on the stream given, never standard output.
 */
#ifndef TANDEM_PROGRESS_H
#define TANDEM_PROGRESS_H

#include "tandem/api.h"
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tdm_progress_style {
    TDM_PROGRESS_AUTO, /* bar when the stream is a terminal, lines otherwise */
    TDM_PROGRESS_BAR,
    TDM_PROGRESS_LINES,
    TDM_PROGRESS_QUIET
} tdm_progress_style;

typedef struct tdm_progress tdm_progress;

/* unit is the plural that is counted ("images"); total 0 when unknown. NULL when out of memory:
 * every other call accepts NULL and does nothing. */
TDM_API tdm_progress *tdm_progress_start(FILE *stream, tdm_progress_style style, const char *title,
                                         const char *unit, int64_t total);
/* Any thread, as often as liked: draws at most ten times a second. note may be NULL. */
TDM_API void tdm_progress_update(tdm_progress *progress, int64_t done, const char *note);
/* Clears the bar (or, after a second or more, writes the last line) and frees. */
TDM_API void tdm_progress_stop(tdm_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
