/*
 * A run folder: the one place where a training leaves what it did. This file owns RUN/lock,
 * RUN/run.json (the record: rewritten whole, atomically) and RUN/metrics.jsonl (one line an event,
 * cut back on resume). Model files beside them belong to src/train. docs/reference/files.md has the
 * form.
 *
 *     tdmi_run_open(path, TDMI_RUN_RESUME, &run, err)    folder, lock, what was recorded before
 *     tdmi_run_set(run, "options", json, err)            … "machine", "data": facts
 *     tdmi_run_save(run, TDMI_RUN_RUNNING, err)          from here on it is an existing run
 *     tdmi_run_cut(run, step, err)                       when a checkpoint was found
 *     tdmi_run_line / tdmi_run_sync                      through src/track/track.h
 *     tdmi_run_set(run, "result", json, err), tdmi_run_save(run, TDMI_RUN_FINISHED, err)
 *     tdmi_run_close(run)
 *
 * One thread at a time. One process at a time per folder: see src/track/lock.h.
 */
#pragma once

#include "base/scope.h"
#include "tandem/error.h"
#include "tandem/json.h"
#include "track/lines.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Format version of run.json: newer ones are refused, older ones are read. */
#define TDMI_RUN_FORMAT_VERSION 1

enum tdmi_run_mode {
    TDMI_RUN_NEW,   /* the folder must be missing or empty: an existing run is TDM_E_USAGE */
    TDMI_RUN_RESUME /* resume an existing run; begin one where there is none */
};

enum tdmi_run_status {
    TDMI_RUN_NONE,    /* nothing recorded yet */
    TDMI_RUN_RUNNING, /* or killed: the lock is free then */
    TDMI_RUN_FINISHED,
    TDMI_RUN_STOPPED, /* on request; --resume continues it */
    TDMI_RUN_FAILED
};

typedef struct tdmi_run tdmi_run;

/* May a run be opened there, as far as can be seen without the lock? Touches nothing, and fails
 * as tdmi_run_open would. */
tdm_status tdmi_run_look(const char *path, enum tdmi_run_mode mode, tdm_error *err) TDM_MUST_USE;
/* Make the folder (parents too) where it is missing, lock it, and read its record.
 *   TDM_E_USAGE   NEW on an existing run; a folder with other files in it
 *   TDM_E_INPUT   run.json is damaged or of a newer format
 *   TDM_E_SYSTEM  the folder cannot be made or written; the run is in use by another process (the
 *                 message names its pid and host) */
tdm_status tdmi_run_open(const char *path, enum tdmi_run_mode mode, tdmi_run **run,
                         tdm_error *err) TDM_MUST_USE;
/* The run of another process, which owns the folder: what is set here goes nowhere. record: the
 * bytes of its run.json; NULL: it had none. */
tdm_status tdmi_run_follow(const char *path, const void *record, size_t record_bytes,
                           tdmi_run **run, tdm_error *err) TDM_MUST_USE;
/* Gives the lock back; what was saved stays, and a run that was never saved leaves nothing. Accepts
 * NULL. */
void tdmi_run_close(tdmi_run *run);
TDMI_POINTER_RELEASE(tdmi_run, tdmi_run_close)

const char *tdmi_run_path(const tdmi_run *run);
/* The folder in it of algorithms that GPUs chose by timing, so that a resumed run chooses the same
 * (backend.h, keep); it may be there before the record is. */
#define TDMI_RUN_KERNELS "kernels"
bool tdmi_run_is_followed(const tdmi_run *run);
/* Status recorded when the run was opened; NONE: this is its first sitting. */
enum tdmi_run_status tdmi_run_found(const tdmi_run *run);
/* A section as recorded when the run was opened ("options", "result", …); NULL when it is missing.
 * Lives as long as the run, and does not change when the section is set. */
const tdm_json_value *tdmi_run_recorded(const tdmi_run *run, const char *section);

/* ---- the record ------------------------------------------------------------------------- */

/* Give a section its value: any JSON text, copied. Sections not set keep what was recorded before.
 * Known names: "command", "options", "machine", "data", "exact", "clock", "validation", "result".
 * The run's own members ("format_version", "tandem", "status", "started", "ended", "sittings") are
 * TDM_E_BUG.
 */
tdm_status tdmi_run_set(tdmi_run *run, const char *section, const char *json,
                        tdm_error *err) TDM_MUST_USE;
/* From the next save on the record is without that section. */
void tdmi_run_forget(tdmi_run *run, const char *section);
/* Is the folder still the one that was opened? TDM_E_SYSTEM: it was removed, renamed or replaced.
 * It may be so a moment later, so files of a run are written by functions that never make a
 * folder. */
tdm_status tdmi_run_check(const tdmi_run *run, tdm_error *err) TDM_MUST_USE;
/* Write run.json with this status (not NONE). RUNNING clears "ended", the others set it. The first
 * save of a sitting counts it in "sittings". */
tdm_status tdmi_run_save(tdmi_run *run, enum tdmi_run_status status, tdm_error *err) TDM_MUST_USE;

/* ---- metrics.jsonl ---------------------------------------------------------------------- */

/* Append one JSON object (without newline) as one line, in one write call. On failure the file is
 * as before. */
tdm_status tdmi_run_line(tdmi_run *run, const char *json, size_t length_bytes,
                         tdm_error *err) TDM_MUST_USE;
/* Make the lines appended so far durable. */
tdm_status tdmi_run_sync(tdmi_run *run, tdm_error *err) TDM_MUST_USE;
/* Keep what was written before a checkpoint, atomically; a torn last line goes too. A line that
 * belongs to a checkpoint must be appended before the checkpoint is written, or a crash in between
 * loses it. */
tdm_status tdmi_run_cut(tdmi_run *run, struct tdmi_lines_end end, tdm_error *err) TDM_MUST_USE;

/* ---- looking from outside --------------------------------------------------------------- */

/* Read RUN/run.json without the lock. A missing folder or record is TDM_OK with NONE and *document
 * NULL. status and document may be NULL. */
tdm_status tdmi_run_read(const char *path, enum tdmi_run_status *status,
                         tdm_json_document **document, tdm_error *err) TDM_MUST_USE;

/* "running", "finished", …; "none". Static storage. */
const char *tdmi_run_status_name(enum tdmi_run_status status);
