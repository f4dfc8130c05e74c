/* A list of paths as other programs write it: one a line, or each ended by a zero byte. */
#ifndef TANDEM_DATA_SOURCE_PATH_LIST_H
#define TANDEM_DATA_SOURCE_PATH_LIST_H

#include "tandem/error.h"
#include <stddef.h>

/* Split bytes, which has room for one byte more than length_bytes, into paths, in place; *paths is
 * of tdmi_alloc. The rules are those of tdm_input_paths. name is the list's name in messages. */
tdm_status tdmi_path_list_cut(char *bytes, size_t length_bytes, const char *name,
                              const char ***paths, size_t *n_paths, tdm_error *err) TDM_MUST_USE;

#endif
