/*
 * The work of decoding a usual JPEG file. It gives the bytes of libjpeg-turbo with its slow integer
 * transform and its "fancy" upsampling.
 *
 * Coefficients of two blocks that stand side by side lie woven into each other, 16 in a row: first
 * the eight of the left block, then those of the right one.
 */
#pragma once

#include "image/jpeg/codes.h"

enum {
    TDMI_JPEG_PAIR = 2 * TDMI_JPEG_BLOCK, /* coefficients */
    TDMI_JPEG_STREAMS = 2,                /* at once */
    TDMI_JPEG_SLACK = 64,                 /* bytes that may be read and written behind a row */
    /* Dequantised coefficients of a column, added up without their signs, are at most this, or the
     * file is left to libjpeg: sums of a real image are below 8 * 128 * sqrt(8). Up to here
     * nothing overflows 16 bits, in whatever order it is added up. */
    TDMI_JPEG_LARGEST_SUM = 2900
};

/* Where a run of MCUs is read from; at the start everything but the bytes is zero. */
struct tdmi_jpeg_stream {
    const uint8_t *at, *end; /* behind end, TDMI_JPEG_BYTES_A_BLOCK bytes can be read */
    uint64_t window, n_bits; /* read, not yet decoded; n_bits counts in its 6 lowest bits */
    int means[TDMI_JPEG_COMPONENTS];
};

/* A row of MCUs of one component: codes in, coefficients out. */
struct tdmi_jpeg_band {
    struct tdmi_jpeg_codes *codes[2];
    int across, down;      /* blocks of an MCU */
    size_t n_pairs;        /* a row of blocks */
    int16_t *coefficients; /* (down, n_pairs, 8, 2, 8), zeroed */
    size_t ahead;  /* blocks up to the same place of the row of MCUs that is decoded with it */
    uint8_t *last; /* (down, 2 * n_pairs): no coefficient behind this place is set */
};

struct tdmi_jpeg_kernels {
    /* Makes codes->pairs of what else is in codes. */
    void (*pair)(struct tdmi_jpeg_codes *codes);
    /* MCUs first … first + n of a row, or of two rows, each from a stream of its own, which keeps a
     * CPU busy that would wait for one. false: the codes make no sense, or end too early. */
    bool (*decode)(struct tdmi_jpeg_stream *streams, int n_streams,
                   const struct tdmi_jpeg_band *bands, int n_components, int first, int n);
    /* n pairs -> 8 rows of 16 * n samples. divisors (8, 8). false: a sum is too large. */
    bool (*transform)(const int16_t *pairs, const uint8_t *last, size_t n, const int16_t *divisors,
                      uint8_t *samples, size_t stride_bytes);
    /* n samples, each become two: across a row; and also in the row's half that lies towards
     * `other`. sums is room for n + 2 + TDMI_JPEG_SLACK. */
    void (*widen)(const uint8_t *row, size_t n, int16_t *sums, uint8_t *out);
    void (*widen_between)(const uint8_t *row, const uint8_t *other, size_t n, int16_t *sums,
                          uint8_t *out);
    /* n pixels. */
    void (*colour)(const uint8_t *luma, const uint8_t *blue, const uint8_t *red, size_t n,
                   uint8_t *pixels);
    void (*grey)(const uint8_t *luma, size_t n, uint8_t *pixels);
};

/* NULL on a CPU without AVX2 and BMI2: libjpeg-turbo is as fast there. */
const struct tdmi_jpeg_kernels *tdmi_jpeg_kernels_best(void);

extern const struct tdmi_jpeg_kernels tdmi_jpeg_avx2;
