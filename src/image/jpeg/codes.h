/*
 * Huffman codes of a JPEG file as tables to look bits up in. One look-up of the next TDMI_JPEG_FAST
 * bits gives the meaning of most codes and how many bits they take together with the value that
 * follows them; the rest is found by comparing lengths.
 */
#pragma once

#include "image/jpeg/layout.h"

enum {
    TDMI_JPEG_FAST = 10,
    /* Bits that an entry of `fast` takes at most, so that three fit into what is always there. */
    TDMI_JPEG_FAST_BITS = 18,
    TDMI_JPEG_STEP_AT = 16,  /* where an entry has its step … */
    TDMI_JPEG_SIZE_AT = 8,   /* … and the bits of its value; lowest are all of its bits */
    TDMI_JPEG_END_STEP = 80, /* the step that ends a block: more than any other */
};

/* Content of the next TDMI_JPEG_PAIRED bits: one coefficient with its value, or two, or the last
 * one and the end of the block. In bits from the lowest: 8 of how many bits all take, 8 of the
 * first step, 16 of the first value, 8 of the second step, 8 of how many bits the first takes, 16
 * of the second value. Without a second one its step is 0 and its value the first's. 0: look it up
 * in `fast`. */
enum {
    TDMI_JPEG_PAIRED = 10,
    TDMI_JPEG_STEP_1 = 8,
    TDMI_JPEG_VALUE_1 = 16,
    TDMI_JPEG_STEP_2 = 32,
    TDMI_JPEG_BITS_1 = 40,
    TDMI_JPEG_VALUE_2 = 48
};

struct tdmi_jpeg_codes {
    uint64_t pairs[1 << TDMI_JPEG_PAIRED]; /* of TDMI_JPEG_AC */
    /* step << 16 | size << 8 | bits; 0: look further. The step is how far the coefficient lies
     * behind the one before. */
    uint32_t fast[1 << TDMI_JPEG_FAST];
    /* Codes of n bits, left in 16, are below limit[n]; entries of theirs are from first[n] on,
     * which counts from where code 0 of that length would be. */
    uint32_t limit[TDMI_JPEG_CODE_LENGTHS + 2];
    int32_t first[TDMI_JPEG_CODE_LENGTHS + 1];
    uint32_t entries[256]; /* in the order of codes; 0: a size that no file of 8 bits needs */
};

/* kind is TDMI_JPEG_DC or _AC. false where lengths are impossible. */
bool tdmi_jpeg_codes_make(const uint8_t *counts_and_symbols, int kind,
                          struct tdmi_jpeg_codes *codes);
