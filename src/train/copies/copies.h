/*
 * Copies of a run at another place, a folder or an object store, for machines whose disks do not
 * survive. After each checkpoint a thread puts there what resuming needs:
 *
 *     URL/0123456789abcdef-last.safetensors   a file, named by the hash of its bytes; never changed
 *     URL/checkpoint.json                     names, sizes and hashes of the files; written last
 *
 * A reader of checkpoint.json therefore finds every file that it names, whole, and can prove each.
 * Files that neither it nor the one before names are then removed. A kill leaves at most files
 * without mention, which the next copy removes.
 *
 * Training never waits: the files of a checkpoint are opened when it is written, and an open file
 * stays as it is, whatever takes its name. While a checkpoint is copied the next one waits, and a
 * newer one takes its place. At the end the caller waits for the newest.
 *
 * One process at a time writes to a place.
 */
#pragma once

#include "base/scope.h"
#include "tandem/json.h"

#include <stdint.h>

typedef struct tdmi_copies tdmi_copies;

/* Refused: a place that cannot be written to, one that holds the copies of another run, and the run
 * folder itself. started: of the run's record; NULL: the run is new. url and run are lent. */
tdm_status tdmi_copies_open(const char *url, const char *run, const char *started,
                            tdmi_copies **copies, tdm_error *err) TDM_MUST_USE;
/* After a checkpoint was written. What fails is a warning: the next checkpoint tries again. */
void tdmi_copies_take(tdmi_copies *copies, int64_t step);
/* Copies the run as it is now, and waits until it lies there. */
tdm_status tdmi_copies_finish(tdmi_copies *copies, int64_t step, tdm_error *err) TDM_MUST_USE;
/* Drops a checkpoint that waits, and waits for one that is being copied. Accepts NULL. */
void tdmi_copies_close(tdmi_copies *copies);
TDMI_POINTER_RELEASE(tdmi_copies, tdmi_copies_close)

/* Copies the newest state at url into the folder run; each file is proved by its hash. Nothing is
 * done where that folder holds a run already or other files, or where url holds no copies. */
tdm_status tdmi_copies_fetch(const char *url, const char *run, tdm_error *err) TDM_MUST_USE;
/* The record of the run whose copies lie at url, which is not fetched; NULL: there is none. */
tdm_status tdmi_copies_record(const char *url, tdm_json_document **document,
                              tdm_error *err) TDM_MUST_USE;
