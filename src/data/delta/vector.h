/*
 * Deletion vectors: the numbers of rows of a data file that are no longer part of the table, as
 * compressed bitmaps in a file beside the data or in the log itself.
 */
#pragma once

#include "base/text/text.h"
#include "data/delta/replay.h"

/* The numbers, ascending and each once, in memory of tdmi_alloc (n_rows of the file's place of
 * them). A file without a vector is a mistake of the caller. TDM_E_INPUT: missing, damaged, or not
 * as many rows, within the file, as the log says. */
tdm_status tdmi_delta_vector_read(const struct tdmi_delta_table *table,
                                  const struct tdmi_delta_file *file, int64_t **rows,
                                  tdm_error *err) TDM_MUST_USE;

/* The bitmap alone: exactly n_expected rows, all below n_rows. name is what messages call it. */
tdm_status tdmi_delta_vector_decode(const void *bytes, size_t n_bytes, const char *name,
                                    int64_t n_expected, int64_t n_rows, int64_t **rows,
                                    tdm_error *err) TDM_MUST_USE;

/* Z85 (five characters for four bytes) into bytes, replacing what that held. false: a length or a
 * character that is none of it, or no memory (bytes is then broken). */
bool tdmi_delta_z85(const char *text, tdmi_text *bytes) TDM_MUST_USE;
