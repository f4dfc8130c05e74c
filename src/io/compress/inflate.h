/*
 * Decompression of zip and gzip, behind a table that builds without zlib leave out.
 */
#pragma once

#include "io/storage/storage.h"

/* No deflated byte stands for more than this many. */
#define TDMI_DEFLATE_MOST_RATIO 1032

struct tdmi_inflate_table {
    /* A raw deflate stream that fills out exactly and ends there. name is for sentences. */
    tdm_status (*raw)(const void *bytes, size_t length_bytes, void *out, size_t out_bytes,
                      const char *name, tdm_error *err);
    /* The gzip members of a file, one after the other, appended to text. Stops without an error
     * after limit_bytes when is_beginning, else refuses to grow larger. */
    tdm_status (*gunzip)(const tdmi_storage_file *file, int64_t limit_bytes, bool is_beginning,
                         tdmi_text *text, tdm_error *err);
};

/* NULL in a build without zlib: src/data/source/registry.c. */
const struct tdmi_inflate_table *tdmi_inflate_best(void);

/* The calls of the table, or one sentence where there is none. */
tdm_status tdmi_inflate_raw(const void *bytes, size_t length_bytes, void *out, size_t out_bytes,
                            const char *name, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_gunzip(const tdmi_storage_file *file, int64_t limit_bytes, bool is_beginning,
                       tdmi_text *text, tdm_error *err) TDM_MUST_USE;
