/*
 * A file of JSON lines with one writer. Lines are written at an offset kept here, not appended:
 * network file systems do not append atomically, and a line that did not fit can be removed again.
 */
#pragma once

#include "base/text/text.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Position of a checkpoint among the lines. An epoch ends at its last step, so one that was
 * interrupted in its validation stands at that step too, before the epoch's line. */
struct tdmi_lines_end {
    int64_t step;
    bool is_inside_epoch; /* the line of the epoch that ends with that step is still to come */
};

typedef struct tdmi_lines {
    const char *path; /* lent */
    int file;         /* -1 until something is written */
    uint64_t end_bytes;
    tdmi_text line;
} tdmi_lines;

/* Touches no file. */
void tdmi_lines_init(tdmi_lines *lines, const char *path);
void tdmi_lines_release(tdmi_lines *lines);

/* Opens (makes) the file first where needed, and takes a torn last line off it. */
tdm_status tdmi_lines_add(tdmi_lines *lines, const char *json, size_t length_bytes,
                          tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_lines_sync(tdmi_lines *lines, tdm_error *err) TDM_MUST_USE;
/* Keep lines whose "step" is at most the end's, or that have none; remove lines that are no JSON
 * objects. At that very step, remove the epoch's line and those after it where it will be written
 * again. */
tdm_status tdmi_lines_cut(tdmi_lines *lines, struct tdmi_lines_end end,
                          tdm_error *err) TDM_MUST_USE;
