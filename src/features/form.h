/*
 * Layout of a file of rows, for its reader and writer: a head of HEAD_BYTES, the rows without gaps,
 * one entry for each row. All numbers are little-endian; big-endian machines are refused, so that
 * rows and index need no conversion.
 */
#ifndef TANDEM_FEATURES_FORM_H
#define TANDEM_FEATURES_FORM_H

#include "base/hash/hash.h"
#include "features/file.h"

enum {
    TDMI_STORE_FORMAT_VERSION = 1,
    TDMI_STORE_HEAD_BYTES = 128,
    TDMI_STORE_MAX_WIDTH = 1 << 24,
    TDMI_STORE_CODE_F32 = 1,
    TDMI_STORE_CODE_F16 = 2
};

struct tdmi_store_head {
    char magic[8];
    uint32_t format_version, width, precision, zero;
    uint64_t n_rows;
    uint8_t key[32];
    uint64_t checksum; /* XXH64 of this head, with 0 here, and the entries */
    uint8_t zeros[56];
};
_Static_assert(sizeof(struct tdmi_store_head) == TDMI_STORE_HEAD_BYTES, "a head has no padding");
_Static_assert(sizeof(struct tdmi_store_entry) == 16, "an entry has no padding");

static const char tdmi_store_magic[8] = {'T', 'D', 'M', 'R', 'O', 'W', 'S', '\n'};

static inline uint64_t tdmi_store_checksum(struct tdmi_store_head head,
                                           const struct tdmi_store_entry *entries)
{
    tdmi_xxh64 state;
    head.checksum = 0;
    tdmi_xxh64_init(&state, 0);
    tdmi_xxh64_add(&state, &head, sizeof head);
    tdmi_xxh64_add(&state, entries, (size_t)head.n_rows * sizeof *entries);
    return tdmi_xxh64_result(&state);
}

/* Seeded with the row's key, so that a row stored in place of another is detected too. */
static inline uint32_t tdmi_store_check(uint64_t content, uint32_t view, const void *stored,
                                        size_t stored_bytes)
{
    const uint64_t seed = content ^ (uint64_t)view << 32 ^ view;
    return (uint32_t)tdmi_xxh64_of(stored, stored_bytes, seed);
}

#endif
