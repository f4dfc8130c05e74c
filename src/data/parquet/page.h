/*
 * One page of a Parquet column: its head (Thrift's compact protocol), its checksum, its levels and
 * values. Columns of binary or fixed values without repetition, plain or by dictionary, pages of
 * version 1 and 2. Nothing in the bytes is trusted.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stdint.h>

enum tdmi_page_kind {
    TDMI_PAGE_DATA = 0,
    TDMI_PAGE_INDEX = 1,
    TDMI_PAGE_DICTIONARY = 2,
    TDMI_PAGE_DATA_V2 = 3
};

struct tdmi_page_head {
    enum tdmi_page_kind kind;
    int32_t n_bytes, n_bytes_uncompressed; /* of the body */
    bool has_crc;
    uint32_t crc;                               /* of the body as it lies in the file */
    int32_t n_values;                           /* nulls included */
    int32_t encoding;                           /* of the values, as the format numbers them */
    int32_t level_encoding;                     /* version 1: where there are no nulls it is any */
    int32_t definition_bytes, repetition_bytes; /* version 2: levels before the values */
    bool is_compressed;                         /* version 2: the values */
};

/* Facts of the column. */
struct tdmi_page_form {
    int max_definition; /* 0: never null */
    int fixed_bytes;    /* of every value; 0: a length before each */
    int codec;          /* for tdmi_arrow_decompress(); 0: none */
};

struct tdmi_page_value {
    const uint8_t *bytes; /* NULL: null */
    int32_t n_bytes;
};

/* The values of a page, and the memory they point into. Start from a zeroed object. */
struct tdmi_page {
    uint8_t *owned, *uncompressed; /* either may be NULL */
    struct tdmi_page_value *values;
    int32_t n_values;
    int64_t held_bytes;
};

/* Reads the head at the start of bytes; *head_bytes says how long it is, 0 where bytes end before
 * the head does. TDM_E_INPUT: no head of a page. */
tdm_status tdmi_page_head_read(const void *bytes, size_t n_bytes, struct tdmi_page_head *head,
                               size_t *head_bytes, tdm_error *err) TDM_MUST_USE;

/* Compare the checksum of the body, or one already computed; without a checksum in the head both
 * pass. The body has head->n_bytes bytes. */
tdm_status tdmi_page_check(const struct tdmi_page_head *head, const void *body,
                           tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_page_compare(const struct tdmi_page_head *head, uint32_t crc,
                             tdm_error *err) TDM_MUST_USE;
/* The error of a page that contradicts its head. */
tdm_status tdmi_page_damaged(const char *what, tdm_error *err);

/* Decodes a checked body of head->n_bytes, which lies in memory of tdmi_alloc that page then owns,
 * even on failure; owned_bytes is its size.
 * dictionary: the decoded dictionary page of the same column chunk; its memory must live as long as
 * page. NULL where there is none. */
tdm_status tdmi_page_decode(const struct tdmi_page_head *head, const struct tdmi_page_form *form,
                            uint8_t *owned, size_t owned_bytes, const uint8_t *body,
                            const struct tdmi_page *dictionary, struct tdmi_page *page,
                            tdm_error *err) TDM_MUST_USE;
void tdmi_page_release(struct tdmi_page *page);

/* Are the levels of the page in the form that is read here? Asked where its column has levels. */
tdm_status tdmi_page_check_levels(const struct tdmi_page_head *head, tdm_error *err) TDM_MUST_USE;

/* Which of n_values are null, from definition levels alone. */
tdm_status tdmi_page_nulls(const uint8_t *levels, size_t n_bytes, int max_definition,
                           int32_t n_values, bool *is_null, tdm_error *err) TDM_MUST_USE;
