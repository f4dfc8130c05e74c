/*
 * One hash of the bytes of every image of a source: splitting, finding copies and recognizing an
 * image depend on it.
 */
#ifndef TANDEM_DATA_AUDIT_CONTENTS_H
#define TANDEM_DATA_AUDIT_CONTENTS_H

#include "base/thread.h"
#include "data/source/source.h"
#include "tandem/event.h"

typedef struct tdmi_contents { /* start from a zeroed object */
    uint64_t *hashes;          /* by item: XXH64 of its bytes, seed 0; 0: unreadable */
    int64_t n_items, n_unreadable;
} tdmi_contents;

/* Reads every picture once, on the threads of pool, but those whose hash the source knows. What is
 * unreadable is logged as a warning by path, the first 20 in the source's order; too much of one
 * file is an error (lost_rows.h). what: of the progress. */
tdm_status tdmi_contents_read(const tdmi_source *source, tdmi_pool *pool, const char *what,
                              tdm_sink sink, tdmi_contents *contents, tdm_error *err) TDM_MUST_USE;
/* Hash of the bytes of one image. Never 0. */
uint64_t tdmi_contents_hash(const void *bytes, size_t length_bytes);
void tdmi_contents_release(tdmi_contents *contents);

#endif
