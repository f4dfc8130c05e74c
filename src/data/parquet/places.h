/*
 * Positions of a page's values (in the file, in a Snappy body or in the dictionary), so that a
 * large value is read on its own and the page is never whole in memory.
 */
#pragma once

#include "data/parquet/pages.h"

/* ---- the body of a page, read at any place: parquet/body.c ------------------------------------
 */

/* Stored as it is, or packed by Snappy: then no more than the blocks around are unpacked. */
struct tdmi_body {   /* start from a zeroed object */
    int64_t at;      /* in the file, of a stored one */
    int64_t n_bytes; /* unpacked */
    int64_t n_blocks;
    int64_t *blocks;           /* (n_blocks + 1), in the file; NULL: stored as it is */
    int64_t most_packed_bytes; /* of a block */
};

/* A packed body in [at, at + n_packed) of the file, which unpacks to n_bytes. All of it is read and
 * unpacked once, a block at a time. *can_read false: it is damaged, or blocks do not stand alone;
 * unpacking it whole tells which. */
tdm_status tdmi_body_index(const tdmi_storage_file *file, int64_t at, int64_t n_packed,
                           int64_t n_bytes, struct tdmi_body *body, bool *can_read,
                           tdm_error *err) TDM_MUST_USE;
void tdmi_body_release(struct tdmi_body *body);
/* Reads here and there in one body and keeps the block it was in. One thread at a time. Start with
 * body and file and release it at the end. */
struct tdmi_body_reader {
    const struct tdmi_body *body;
    const tdmi_storage_file *file;
    uint8_t *packed, *block;
    int64_t held;     /* index of the block that is unpacked */
    size_t n_held;    /* number of its bytes that are unpacked; 0: none is held */
    bool goes_onward; /* the next read continues in the same block */
};
void tdmi_body_reader_release(struct tdmi_body_reader *reader);
/* n_bytes from `from` on, all of which are the body's. */
tdm_status tdmi_body_read(struct tdmi_body_reader *reader, int64_t from, void *to, size_t n_bytes,
                          tdm_error *err) TDM_MUST_USE;

/* ---- positions of values ----------------------------------------------------------------- */

struct tdmi_page_span {
    int64_t first;   /* byte of the body */
    int32_t n_bytes; /* -1: null */
};

struct tdmi_page_places {         /* start from a zeroed object */
    struct tdmi_page_span *spans; /* one a row; NULL: the page must be loaded */
    int32_t n_spans;
    struct tdmi_body body;
};

/* All of the page, or of the dictionary, is read once, to compare the checksum where there is one
 * and to look into what is packed. Without spans: the values are small, or neither plain nor by a
 * dictionary, or packed so that they cannot be had one by one. */
tdm_status tdmi_places_find(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                            int64_t page, struct tdmi_page_places *places,
                            tdm_error *err) TDM_MUST_USE;
void tdmi_places_release(struct tdmi_page_places *places);
int64_t tdmi_places_held_bytes(const struct tdmi_page_places *places);
