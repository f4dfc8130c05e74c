/* Many small files of rows become few: opening a key takes a descriptor and some reads for each. */
#ifndef TANDEM_DATA_STORE_MERGE_H
#define TANDEM_DATA_STORE_MERGE_H

#include "features/file.h"

/* From so many files on there is something to merge. */
enum { TDMI_STORE_MANY_FILES = 64 };

/* Of a key whose lock is held alone. A merged file is complete and durable before those it was made
 * of are removed. Nothing to do is TDM_OK; so is a disk without room for both. TDM_E_STOPPED when
 * asked to end. */
tdm_status tdmi_store_merge(const char *folder, const struct tdmi_store_form *form,
                            tdm_error *err) TDM_MUST_USE;

#endif
