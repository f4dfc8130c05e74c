/*
 * The record of a training: its run folder, events, clocks, and which checkpoint is on disk.
 */
#pragma once

#include "track/track.h"
#include "train/copies/copies.h"
#include "train/model/model_file.h"
#include "train/session/config.h"
#include "train/step/feed.h"

struct tdmi_session;

struct tdmi_run_record {
    tdmi_run *run;
    tdmi_track *track;
    tdmi_copies *copies;                  /* of checkpoints elsewhere; NULL: none */
    tdm_sink sink;                        /* who listens to events */
    const struct tdmi_progress *progress; /* of the session, for the step of an event */
    int64_t started_ns;
    double seconds_before;              /* of earlier sessions of the run */
    double training_seconds;            /* inside epochs, of all sessions */
    double best_seconds;                /* when the best epoch was evaluated */
    double fed_seconds, waited_seconds; /* this session: images were loaded; training waited */

    struct tdmi_progress saved; /* of the newest checkpoint; best_epoch -1: there is none yet */
    int64_t saved_ns;           /* when it was written, or training began */
    bool is_fallen_back;        /* last.safetensors is damaged and was not replaced yet */
    bool is_best_unwritten;     /* the host's copy is the best epoch's, not written yet */
    int64_t looks;              /* of the communicator at the ranks, which ranks.json holds */
};

/* Since the run was started, all sessions together. */
double tdmi_record_seconds(const struct tdmi_run_record *record);
/* Sends a sentence to every listener. */
void tdmi_record_note(const struct tdmi_run_record *record, const char *format, ...)
    TDM_PRINTF(2, 3);
/* The same for a figure that few look for: recorded, and shown under --verbose. */
void tdmi_record_detail(const struct tdmi_run_record *record, const char *format, ...)
    TDM_PRINTF(2, 3);
/* Is this the first session of the run? */
bool tdmi_record_is_new(const struct tdmi_run_record *record);

/* A member of the section "data" that the run recorded when it was started. */
int64_t tdmi_record_integer(const struct tdmi_run_record *record, const char *name,
                            int64_t otherwise);
double tdmi_record_number(const struct tdmi_run_record *record, const char *name);
const char *tdmi_record_string(const struct tdmi_run_record *record, const char *name);

/* Sets a section of the record and frees the writer; not saved yet. */
tdm_status tdmi_record_set(const struct tdmi_run_record *record, const char *section,
                           tdm_json_writer *writer, tdm_error *err) TDM_MUST_USE;
/* Before long work: saves the options, so that a run that is stopped or killed resumes with them.
 */
tdm_status tdmi_record_begin(const struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* When that work failed. */
void tdmi_record_end(const struct tdmi_run_record *record, tdm_status status);
/* Sets the section "loader": the rates of the training images' loader in this session so far. A
 * feed of rows, or none, leaves the section as it is. */
tdm_status tdmi_record_loader(const struct tdmi_run_record *record, const tdmi_feed *feed,
                              tdm_error *err) TDM_MUST_USE;
/* Saves a run that was stopped while it was opened. TDM_E_STOPPED, with what to do. */
tdm_status tdmi_record_stop(const struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;

/* Tests that the run recorded before. */
void tdmi_record_recall_tests(const struct tdmi_run_record *record,
                              struct tdm_train_result *result);
/* The result of a finished run; the steps of `result` must be set. false: none is recorded, or it
 * has another number of steps, or lacks the test although has_test. */
bool tdmi_record_recall_result(const struct tdmi_run_record *record, bool has_test,
                               struct tdm_train_result *result);
