/*
 * Display of the work of a command: the library's events as a progress bar, notes and a table of
 * epochs, all on standard error, nothing under --quiet.
 */
#pragma once

#include "cli/command.h"
#include "tandem/event.h"
#include "base/progress.h"

struct tdmi_watch { /* zeroed but for the first members */
    bool is_quiet, is_verbose, has_color;
    const char *unit; /* plural that is counted: "images" */
    bool has_header;  /* the epoch table has its header line already */
    tdmi_progress_display *progress;
};

/* Valid until tdmi_watch_stop. */
tdm_sink tdmi_watch_sink(struct tdmi_watch *watch);
void tdmi_watch_stop(struct tdmi_watch *watch);

/* "0.9123 (0.8890 to 0.9311, n = 600)" */
const char *tdmi_format_score(const tdm_score *score, char *text, size_t text_bytes);
