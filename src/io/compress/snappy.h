/*
 * Snappy as the pages of Parquet have it: the length of what is packed, then elements, each of them
 * bytes as they are or a copy of earlier ones. The compressors in use pack every 64 KiB by
 * themselves, so a block can be unpacked without those before it, if one knows where it begins.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    TDMI_SNAPPY_BLOCK_BYTES = 1 << 16,
    /* Most bytes of a packed block: six an element of one byte. */
    TDMI_SNAPPY_MOST_BYTES = 6 * TDMI_SNAPPY_BLOCK_BYTES
};

/* How many bytes the length takes that packed bytes begin with; 0: it is none. */
size_t tdmi_snappy_length(const uint8_t *packed, size_t n_packed, int64_t *n_bytes);

/* Unpacks the first n_needed bytes of a block of n_bytes that packed begins with. Returns how many
 * packed bytes that took; -1: it is damaged, ends early, or does not stand alone. */
int64_t tdmi_snappy_block(const uint8_t *packed, size_t n_packed, size_t n_bytes, uint8_t *out,
                          size_t n_needed);
