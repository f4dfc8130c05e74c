/*
 * The folder OUT: whether its content is a table of prepare that can be resumed, and the files of
 * unfinished work.
 *
 *     OUT/part-….parquet    finished parts
 *     OUT/_prepare/         options.json, look, part-….json, lock: until the table is complete
 *     OUT/_delta_log/       and
 *     OUT/_dataset.json     complete: written last
 */
#pragma once

#include "base/text/json.h"
#include "prepare/form.h"
#include "prepare/look.h"
#include "track/lock.h"

enum { TDMI_PREPARE_FORMAT_VERSION = 1 };

enum tdmi_prepare_state { TDMI_PREPARE_NEW, TDMI_PREPARE_BEGUN, TDMI_PREPARE_FINISHED };

typedef struct tdmi_prepare_folder { /* start from a zeroed object; released by close */
    tdmi_arena arena;
    const char *path, *work, *options, *look, *dataset; /* in the arena */
    enum tdmi_prepare_state state;
    tdm_json_document *document; /* _dataset.json of a finished one */
    tdmi_lock *lock;
} tdmi_prepare_folder;

/* Changes nothing. TDM_E_USAGE: the folder holds other files, or was begun with other options. */
tdm_status tdmi_prepare_folder_open(tdmi_prepare_folder *folder, const char *path,
                                    const struct tdmi_prepare_form *form,
                                    tdm_error *err) TDM_MUST_USE;
/* TDM_E_USAGE: it is somewhere below the folder of images. */
tdm_status tdmi_prepare_folder_check_beside(const char *path, const char *source,
                                            tdm_error *err) TDM_MUST_USE;
void tdmi_prepare_folder_close(tdmi_prepare_folder *folder);

/* Create missing folders and files and take the lock: one process for the whole, or one for each
 * slice. */
tdm_status tdmi_prepare_folder_begin(tdmi_prepare_folder *folder,
                                     const struct tdmi_prepare_form *form,
                                     tdm_error *err) TDM_MUST_USE;
/* Read the look of an earlier call; *is_known: the files are still the same by name, size and time.
 * look holds the current listing. */
tdm_status tdmi_prepare_folder_read_look(const tdmi_prepare_folder *folder, int64_t n_items,
                                         tdmi_prepare_look *look, bool *is_known,
                                         tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_prepare_folder_write_look(const tdmi_prepare_folder *folder,
                                          const tdmi_prepare_look *look,
                                          tdm_error *err) TDM_MUST_USE;
/* Remove files named like parts that are none of the n names: those of an earlier plan. */
tdm_status tdmi_prepare_folder_keep_parts(const tdmi_prepare_folder *folder,
                                          const char *const *names, int n,
                                          tdm_error *err) TDM_MUST_USE;
/* Remove the files of unfinished work, once _dataset.json is written. */
tdm_status tdmi_prepare_folder_clean(tdmi_prepare_folder *folder, tdm_error *err) TDM_MUST_USE;
