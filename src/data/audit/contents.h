/*
 * A hash of the bytes of every image of a source, for splitting, finding copies and recognizing an
 * image; and the sweep that computes it: every item of a source once, on a pool's threads, with
 * progress events and a stop on request.
 */
#pragma once

#include "base/thread.h"
#include "data/source/source.h"
#include "tandem/event.h"

struct tdmi_sweep {
    const tdmi_source *source;
    const char *what; /* "checking images": text of the progress events */
    /* worker is in [0, threads of pool). A failure ends the sweep. */
    tdm_status (*item)(void *self, int64_t index, int worker, tdm_error *err);
    void *self;
    tdm_sink sink; /* called on the caller's thread only */
};

/* TDM_E_STOPPED when a stop was requested. */
tdm_status tdmi_sweep_run(const struct tdmi_sweep *sweep, tdmi_pool *pool,
                          tdm_error *err) TDM_MUST_USE;

typedef struct tdmi_contents { /* start from a zeroed object */
    uint64_t *hashes;          /* by item: XXH64 of its bytes, seed 0; 0: unreadable */
    int64_t n_items, n_unreadable;
} tdmi_contents;

/* Reads every image once, on the threads of pool, except those whose hash the source knows.
 * Unreadable images are logged as warnings by path, the first 20 in the source's order; too many of
 * one file are an error (tdmi_lost_rows_add). what: text of the progress events. */
tdm_status tdmi_contents_read(const tdmi_source *source, tdmi_pool *pool, const char *what,
                              tdm_sink sink, tdmi_contents *contents, tdm_error *err) TDM_MUST_USE;
/* The same of the items [first, end) only; the hashes of the others stay 0, and n_unreadable counts
 * the part. Nothing is logged: unreadable gets a line for each of the first 20 unreadable ones, to
 * be given to tdmi_contents_log. */
struct tdmi_contents_part {
    int64_t first, end;
    bool is_strict; /* unreadable is also what no decoder takes, as far as the bytes that are read
                       show without decoding */
};
tdm_status tdmi_contents_read_part(const tdmi_source *source, struct tdmi_contents_part part,
                                   tdmi_pool *pool, const char *what, tdm_sink sink,
                                   tdmi_contents *contents, tdmi_text *unreadable,
                                   tdm_error *err) TDM_MUST_USE;
/* Warns of the first 20 lines, and says how many of n_unreadable images have none. is_strict: they
 * are refused, so they are not said to be left out. */
void tdmi_contents_log(const tdmi_text *unreadable, int64_t n_unreadable, bool is_strict);
/* TDM_E_INPUT when too many images of one file are unreadable. */
tdm_status tdmi_contents_check(const tdmi_contents *contents, const tdmi_source *source,
                               tdm_error *err) TDM_MUST_USE;
/* Hash of the bytes of one image. Never 0. */
uint64_t tdmi_contents_hash(const void *bytes, size_t length_bytes);
void tdmi_contents_release(tdmi_contents *contents);
