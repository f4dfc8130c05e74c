/*
 * Checkpoints: the state of a Delta table at a version, as Parquet files of actions.
 */
#ifndef TANDEM_DATA_DELTA_CHECKPOINT_H
#define TANDEM_DATA_DELTA_CHECKPOINT_H

#include "data/delta/replay.h"

/* Every action of the file at path; origin is what messages call it. TDM_E_INPUT: missing, damaged,
 * no checkpoint. TDM_E_ABSENT: a build without Arrow. */
tdm_status tdmi_delta_checkpoint_read(tdmi_delta_replay *replay, const char *path,
                                      const char *origin, tdm_error *err) TDM_MUST_USE;

#endif
