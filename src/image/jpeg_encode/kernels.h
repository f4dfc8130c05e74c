/*
 * The work of writing a JPEG file, once for each set of instructions. All give the same bytes,
 * those of libjpeg-turbo with its slow integer transform; the scalar ones say which.
 */
#ifndef TANDEM_IMAGE_JPEG_WRITE_KERNELS_H
#define TANDEM_IMAGE_JPEG_WRITE_KERNELS_H

#include "image/jpeg_encode/tables.h"

enum {
    TDMI_JPEG_GROUP = 4, /* blocks side by side that are transformed at once */
    TDMI_JPEG_GROUP_SAMPLES = 8 * TDMI_JPEG_GROUP,
    TDMI_JPEG_MOST_SLOTS = 6,  /* blocks of an MCU */
    TDMI_JPEG_WRITE_SLACK = 64 /* bytes that may be written behind coded data */
};

/* A block, divided and rounded, in the order of the zigzag. The first value is the mean, not its
 * difference; its key and its bit in `set` mean nothing. */
struct tdmi_jpeg_values {
    _Alignas(64) int16_t values[TDMI_JPEG_BLOCK];
    /* i * TDMI_JPEG_SIZES + the size of values[i]; AVX-512 asks for no keys and makes none. */
    uint16_t keys[TDMI_JPEG_BLOCK];
    uint64_t set; /* bit i: values[i] is not 0 */
};

/* One of the blocks of every MCU. */
struct tdmi_jpeg_slot {
    const struct tdmi_jpeg_values *first; /* of the first MCU … */
    ptrdiff_t step;                       /* … and so many from it to the next one's */
    const struct tdmi_jpeg_coding *coding;
    int *mean; /* of the block before, of the same component */
};

/* Where coded bits go to. No 0 is stuffed behind an 0xff yet. */
struct tdmi_jpeg_sink {
    uint64_t window; /* the lowest n_bits are still to be written; above them is what was */
    unsigned n_bits; /* at most 7 between two calls */
    uint8_t *at;
};

struct tdmi_jpeg_write_kernels {
    const char *name;
    /* n pixels -> samples less 128. Rows have room for n rounded up to GROUP_SAMPLES. */
    void (*colour)(const uint8_t *pixels, size_t n, int16_t *luma, int16_t *blue, int16_t *red);
    /* n_groups of blocks from eight rows. */
    void (*transform)(const int16_t *samples, size_t stride, size_t n_groups,
                      const struct tdmi_jpeg_divisors *divisors, struct tdmi_jpeg_values *blocks);
    /* n MCUs. Writes up to WRITE_SLACK bytes more than it leaves sink->at at. */
    void (*code)(struct tdmi_jpeg_sink *sink, const struct tdmi_jpeg_slot *slots, int n_slots,
                 int n);
    /* Puts a 0 behind each 0xff. out has room for 2 n + WRITE_SLACK bytes, and as many can be read
     * behind bytes; returns how many became of n. */
    size_t (*stuff)(const uint8_t *bytes, size_t n, uint8_t *out);
};

/* The best one this processor runs. */
const struct tdmi_jpeg_write_kernels *tdmi_jpeg_write_kernels_best(void);
/* All that this processor runs, from the specification upwards; NULL past the last one. */
const struct tdmi_jpeg_write_kernels *tdmi_jpeg_write_kernels_at(int index);

extern const struct tdmi_jpeg_write_kernels tdmi_jpeg_write_scalar, tdmi_jpeg_write_avx2,
    tdmi_jpeg_write_avx512;

void tdmi_jpeg_write_code_avx512(struct tdmi_jpeg_sink *sink, const struct tdmi_jpeg_slot *slots,
                                 int n_slots, int n);
/* Gets no quicker with wider registers than AVX2's. */
size_t tdmi_jpeg_write_stuff_avx2(const uint8_t *bytes, size_t n, uint8_t *out);

#endif
