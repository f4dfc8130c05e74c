/*
 * What a JPEG file of ours is made with: the divisors of a quality and the Huffman codes that the
 * standard gives as typical (ITU-T T.81, annex K), as libjpeg writes them when nobody asks for
 * others. One set is for luma, one for both colour differences.
 */
#ifndef TANDEM_IMAGE_JPEG_WRITE_TABLES_H
#define TANDEM_IMAGE_JPEG_WRITE_TABLES_H

#include "image/jpeg/layout.h"

enum {
    TDMI_JPEG_SETS = 2,
    TDMI_JPEG_LUMA = 0, /* the sets */
    TDMI_JPEG_CHROMA = 1,
    TDMI_JPEG_MOST_SYMBOLS = 162,
    /* A value other than 0 is coded by a symbol, and then by its lowest bits. A size here is twice
     * their number, and one more where the value is negative. */
    TDMI_JPEG_SIZES = 32,
    TDMI_JPEG_LONGEST_STEP = 16, /* from a value to the next one that a code can bear */
    TDMI_JPEG_INDEXED = 192      /* codes, by 16 * the bits of the value + the zeros before it */
};

extern const uint8_t tdmi_jpeg_zigzag[TDMI_JPEG_BLOCK]; /* places in the block, row by row */
/* 16 counts, then the symbols; by set and kind (TDMI_JPEG_DC, _AC). */
extern const uint8_t tdmi_jpeg_usual_codes[TDMI_JPEG_SETS][2]
                                          [TDMI_JPEG_CODE_LENGTHS + TDMI_JPEG_MOST_SYMBOLS];
size_t tdmi_jpeg_n_symbols(const uint8_t *counts);

/* Row by row. (|x| + half) / divisor is
 * ((|x| + half) * reciprocal >> 16) * scale >> 16 for |x| + half below 2^15. */
struct tdmi_jpeg_divisors {
    uint8_t steps[TDMI_JPEG_BLOCK]; /* as the file has them: an eighth of a divisor */
    uint16_t half[TDMI_JPEG_BLOCK], reciprocal[TDMI_JPEG_BLOCK], scale[TDMI_JPEG_BLOCK];
};

/* quality 1 … 100, by libjpeg's rule. */
void tdmi_jpeg_divisors_make(int set, int quality, struct tdmi_jpeg_divisors *divisors);

/* The bits of a code, to which the value itself is added (modulo 2^32), and how many bits both
 * take. */
struct tdmi_jpeg_entry {
    uint32_t bits, n;
};

struct tdmi_jpeg_coding {
    /* By how far it is from the value before * TDMI_JPEG_SIZES + size. With a size of 0, a step of
     * 1 ends the block, and longer ones are no bits. */
    struct tdmi_jpeg_entry ac[(TDMI_JPEG_LONGEST_STEP + 1) * TDMI_JPEG_SIZES];
    struct tdmi_jpeg_entry dc[TDMI_JPEG_SIZES]; /* by size */
    struct tdmi_jpeg_entry zeros;               /* sixteen of them */
    /* The codes of ac alone, for registers to look up in, and how many bits they take together
     * with the value. Without bits, none before ends the block and fifteen are sixteen zeros. */
    _Alignas(64) uint16_t codes[TDMI_JPEG_INDEXED];
    _Alignas(64) uint8_t lengths[TDMI_JPEG_INDEXED];
};

void tdmi_jpeg_coding_make(int set, struct tdmi_jpeg_coding *coding);

#endif
