/* How progress looks: text from numbers, apart from streams and clocks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
