/*
 * Input through a file or standard input: one image's bytes, or the list of paths that another
 * program (find, git ls-files) made.
 */
#pragma once

#include "base/scope.h"
#include "tandem/error.h"
#include <stddef.h>

typedef struct tdmi_input tdmi_input;

/* Reads all there is, up to 1 GiB, of the file or pipe at path; "-" is standard input. A request to
 * stop ends the waiting for a pipe, too. */
tdm_status tdmi_input_open(const char *path, tdmi_input **input, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_input_close(tdmi_input *input);
TDMI_POINTER_RELEASE(tdmi_input, tdmi_input_close)

/* The bytes read, followed by a zero; lives as long as the input. Not after tdmi_input_paths. */
const void *tdmi_input_bytes(const tdmi_input *input, size_t *length_bytes);

/* The same as a list of paths: one a line, or, where a zero byte is in it (find -print0), one
 * before each zero, which lets names have line breaks. Empty ones are passed over, and so is the
 * carriage return before a line's end. Live as long as the input; asked for once. TDM_E_INPUT:
 * there is none. */
tdm_status tdmi_input_paths(tdmi_input *input, const char *const **paths, size_t *n_paths,
                            tdm_error *err) TDM_MUST_USE;

/* Cut bytes, of which one more than length_bytes is there, into paths, in place; *paths is of
 * tdmi_alloc. The rules are those of tdmi_input_paths: no path holds a zero byte, so a single one
 * shows that the list is of the kind that find -print0 writes. name is what messages call it. */
tdm_status tdmi_path_list_cut(char *bytes, size_t length_bytes, const char *name,
                              const char ***paths, size_t *n_paths, tdm_error *err) TDM_MUST_USE;
