/*
 * Checkpoints of a run folder, their names, and when one is due.
 */
#pragma once

#include "train/session/evaluation.h"

/* Is there one to resume from? */
bool tdmi_checkpoint_exists(tdmi_arena *arena, const char *run);
/* After a kill between record and rename: names a checkpoint that was recorded, and removes one
 * that was not. Before tdmi_checkpoint_exists is asked of an open run. */
tdm_status tdmi_checkpoint_finish_rename(const struct tdmi_run_record *record, tdmi_arena *arena,
                                         tdm_error *err) TDM_MUST_USE;
/* Loads the newest that is whole; warns where it is the one before. */
tdm_status tdmi_checkpoint_load(struct tdmi_run_record *record, tdmi_arena *arena,
                                struct tdmi_model_file *stored, tdm_error *err) TDM_MUST_USE;
/* The lines of the run's metrics that belong to the checkpoint. */
struct tdmi_lines_end tdmi_checkpoint_lines_end(const struct tdmi_progress *progress);

/* Writes best.safetensors and outcomes.safetensors, if they are not written yet. */
tdm_status tdmi_checkpoint_write_best(struct tdmi_session *session, tdm_error *err) TDM_MUST_USE;
/* Copies the state that the run ended in to --checkpoint-to, and waits for it. A run that ended
 * with TDM_OK is complete, whatever becomes of its copy, whose failure is the result then; another
 * status is kept. */
tdm_status tdmi_checkpoint_end_copies(const struct tdmi_session *session, tdm_status status,
                                      tdm_error *err) TDM_MUST_USE;
/* Sets the section "clock" of the record; not saved yet. */
tdm_status tdmi_checkpoint_record_clock(const struct tdmi_run_record *record,
                                        const struct tdmi_progress *progress,
                                        tdm_error *err) TDM_MUST_USE;

/* At the end of an epoch: there is none yet, or the newest is a second old. */
bool tdmi_checkpoint_is_due_after_epoch(const struct tdmi_session *session);
/* Inside an epoch: as --checkpoint-every and --checkpoint-minutes ask, and soon after an epoch
 * whose end wrote none. */
bool tdmi_checkpoint_is_due_inside_epoch(const struct tdmi_session *session);
