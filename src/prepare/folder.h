/*
 * OUT: what stands there, whether it is ours to go on with, and what belongs to unfinished work.
 *
 *     OUT/part-….parquet    finished parts
 *     OUT/_prepare/         options.json, look, part-….json, lock: until the table is complete
 *     OUT/_delta_log/       and
 *     OUT/_dataset.json     complete: written last
 */
#ifndef TANDEM_DATA_PREPARE_FOLDER_H
#define TANDEM_DATA_PREPARE_FOLDER_H

#include "base/arena.h"
#include "prepare/look.h"
#include "prepare/form.h"

enum { TDMI_PREPARE_FORMAT_VERSION = 1 };

enum tdmi_prepare_state { TDMI_PREPARE_NEW, TDMI_PREPARE_BEGUN, TDMI_PREPARE_FINISHED };

typedef struct tdmi_prepare_folder tdmi_prepare_folder;

/* Looks, changes nothing. TDM_E_USAGE: something else stands there, or it was begun with other
 * options. */
tdm_status tdmi_prepare_folder_open(const char *path, const struct tdmi_prepare_form *form,
                                    tdmi_prepare_folder **folder, tdm_error *err) TDM_MUST_USE;
/* TDM_E_USAGE: it lies somewhere below the folder of pictures. */
tdm_status tdmi_prepare_folder_check_beside(const char *path, const char *source,
                                            tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_prepare_folder_close(tdmi_prepare_folder *folder);
enum tdmi_prepare_state tdmi_prepare_folder_state(const tdmi_prepare_folder *folder);
/* _dataset.json of a finished one. */
const tdm_json_value *tdmi_prepare_folder_dataset(const tdmi_prepare_folder *folder);

/* Makes what is missing and takes the lock: one process for the whole, or one for each slice. */
tdm_status tdmi_prepare_folder_begin(tdmi_prepare_folder *folder,
                                     const struct tdmi_prepare_form *form,
                                     tdm_error *err) TDM_MUST_USE;
/* What an earlier call saw, when the files are still the same: *is_known. Only their names, sizes
 * and times are compared. look has the listing. */
tdm_status tdmi_prepare_folder_read_look(const tdmi_prepare_folder *folder, int64_t n_items,
                                         tdmi_prepare_look *look, bool *is_known,
                                         tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_prepare_folder_write_look(const tdmi_prepare_folder *folder,
                                          const tdmi_prepare_look *look,
                                          tdm_error *err) TDM_MUST_USE;
/* Removes files named like parts that are none of the n names: made by a plan that changed. */
tdm_status tdmi_prepare_folder_keep_parts(const tdmi_prepare_folder *folder,
                                          const char *const *names, int n,
                                          tdm_error *err) TDM_MUST_USE;
/* _dataset.json appears, then what was kept for unfinished work goes. */
tdm_status tdmi_prepare_folder_finish(tdmi_prepare_folder *folder, const char *dataset,
                                      size_t length_bytes, tdm_error *err) TDM_MUST_USE;
/* Only the latter, of a call that was killed in between. */
tdm_status tdmi_prepare_folder_clean(tdmi_prepare_folder *folder, tdm_error *err) TDM_MUST_USE;

#endif
