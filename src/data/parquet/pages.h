/*
 * The pages of one column in one row group: where each lies and which rows it holds, so that a row
 * is reached by reading its page and nothing else. From the offset index where the file has one,
 * else by walking from head to head.
 */
#pragma once

#include "io/arrow/bridge.h"
#include "data/parquet/page.h"
#include "io/storage/storage.h"

struct tdmi_pages { /* start from a zeroed object */
    int64_t n_rows, n_pages, first_byte;
    int64_t *offsets;    /* n_pages + 1 of them */
    int32_t *first_rows; /* NULL: page i holds row i alone */
    struct tdmi_page_form form;
    bool have_places; /* large values: tdmi_places_find() most likely finds them */
};

/* From so many bytes on a value is worth a read of its own. */
enum { TDMI_LARGE_VALUE_BYTES = 4096 };

/* *can_read false: encodings or repetition that only Arrow reads; nothing to release then. */
tdm_status tdmi_pages_open(const tdmi_arrow_file *file, const tdmi_storage_file *bytes,
                           const char *column, int group, struct tdmi_pages *pages, bool *can_read,
                           tdm_error *err) TDM_MUST_USE;
void tdmi_pages_release(struct tdmi_pages *pages);

int64_t tdmi_pages_find(const struct tdmi_pages *pages, int64_t row);
/* The row that a page begins with; n_rows for page n_pages. */
int64_t tdmi_pages_first_row(const struct tdmi_pages *pages, int64_t page);

/* All values of a page. Both structs start zeroed and are the caller's to release, also on failure,
 * values first. A dictionary that has values already is used, else the page's own is loaded where
 * it needs one. tdmi_pages_blame adds which page failed. */
tdm_status tdmi_pages_load(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                           int64_t page, struct tdmi_page *values, struct tdmi_page *dictionary,
                           tdm_error *err) TDM_MUST_USE;
/* The value of a page of one row replaces what text held; a null is an error. */
tdm_status tdmi_pages_read_single(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                                  int64_t page, tdmi_text *text, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_pages_fail_null(tdm_error *err);
/* The same into memory for exactly n_bytes, without a copy between where the page is plain. */
tdm_status tdmi_pages_read_single_raw(const struct tdmi_pages *pages,
                                      const tdmi_storage_file *bytes, int64_t page, void *target,
                                      size_t n_bytes, tdm_error *err) TDM_MUST_USE;

/* The head at `at`, before end. */
tdm_status tdmi_pages_read_head(const tdmi_storage_file *bytes, int64_t at, int64_t end,
                                struct tdmi_page_head *head, size_t *head_bytes,
                                tdm_error *err) TDM_MUST_USE;
/* Adds which page of which file failed. */
tdm_status tdmi_pages_blame(const struct tdmi_pages *pages, const tdmi_storage_file *bytes,
                            int64_t page, tdm_status status, tdm_error *err);
