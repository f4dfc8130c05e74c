/*
 * Eight lines of two blocks in AVX2: what reading and writing JPEG files share. Only for files that
 * are compiled for it.
 */
#ifndef TANDEM_IMAGE_JPEG_LINES_AVX2_H
#define TANDEM_IMAGE_JPEG_LINES_AVX2_H

#include <immintrin.h>

#define TDMI_INLINE static inline __attribute__((always_inline))

/* Rows, a block in each half; after turning, columns. */
struct tdmi_jpeg_lines {
    __m256i x[8];
};

/* Rows become columns, in each half. */
TDMI_INLINE void tdmi_jpeg_turn(struct tdmi_jpeg_lines *lines)
{
    __m256i *x = lines->x, a[8], b[8];
    for (int i = 0; i < 4; i++) { /* pairs of rows 2 i, 2 i + 1 */
        a[2 * i] = _mm256_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) { /* fours of rows 4 i … 4 i + 3 */
        b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        x[2 * i] = _mm256_unpacklo_epi64(b[i], b[4 + i]);
        x[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[4 + i]);
    }
}

#endif
