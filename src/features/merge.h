/* Merge many small files of rows into few: opening a key takes a descriptor and some reads for
 * each. */
#ifndef TANDEM_FEATURES_MERGE_H
#define TANDEM_FEATURES_MERGE_H

#include "features/file.h"

/* Fewest files that are merged. */
enum { TDMI_STORE_MANY_FILES = 64 };

/* Merge the files of a key whose lock is held exclusively. A merged file is durable before its
 * parts are removed. TDM_OK also where nothing is to be done or the disk has no room for both.
 * TDM_E_STOPPED on request. */
tdm_status tdmi_store_merge(const char *folder, const struct tdmi_store_form *form,
                            tdm_error *err) TDM_MUST_USE;

#endif
