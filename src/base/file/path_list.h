/* A list of paths as other programs write it: one a line, or ended by zeros. */
#pragma once

#include "tandem/error.h"
#include <stddef.h>

/* Cuts bytes, of which one more than length_bytes is there, into paths, in place; *paths is of
 * tdmi_alloc. The rules are those of tdmi_input_paths. name is what messages call the list. */
tdm_status tdmi_path_list_cut(char *bytes, size_t length_bytes, const char *name,
                              const char ***paths, size_t *n_paths, tdm_error *err) TDM_MUST_USE;
