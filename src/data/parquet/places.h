/*
 * Positions of a page's values (in the file, in a Snappy body or in the dictionary), so that a
 * large value is read on its own and the page is never whole in memory.
 */
#ifndef TANDEM_DATA_PARQUET_PLACES_H
#define TANDEM_DATA_PARQUET_PLACES_H

#include "data/parquet/body.h"
#include "data/parquet/pages.h"

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

#endif
