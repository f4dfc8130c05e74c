/*
 * For kernels (isa.h): transpose a square of vectors, and a tensor of consecutive images to one
 * whose lanes are images, and back.
 */
#pragma once

#include "backend/cpu/lanes.h"

#include <stdint.h>

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__)

/* rows[i] lane j becomes rows[j] lane i. */
LANES_INLINE void lanes_transpose(lanes rows[LANES])
{
    lanes pairs[LANES], fours[LANES];
    for (int i = 0; i < LANES; i += 2) {
        pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4)
        for (int k = 0; k < 2; k++) {
            __m512d low = _mm512_castps_pd(pairs[i + k]), high = _mm512_castps_pd(pairs[i + 2 + k]);
            fours[i + 2 * k] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            fours[i + 2 * k + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
    /* fours[4 i + k]: in quarter q, column 4 q + k of rows 4 i to 4 i + 3. */
    for (int k = 0; k < 4; k++) {
        lanes even_low = _mm512_shuffle_f32x4(fours[k], fours[4 + k], 0x88);
        lanes odd_low = _mm512_shuffle_f32x4(fours[k], fours[4 + k], 0xdd);
        lanes even_high = _mm512_shuffle_f32x4(fours[8 + k], fours[12 + k], 0x88);
        lanes odd_high = _mm512_shuffle_f32x4(fours[8 + k], fours[12 + k], 0xdd);
        rows[k] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
        rows[8 + k] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
        rows[4 + k] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
        rows[12 + k] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
    }
}

#elif defined(__AVX2__) && defined(__FMA__)

LANES_INLINE void lanes_transpose(lanes rows[LANES])
{
    lanes pairs[LANES], fours[LANES];
    for (int i = 0; i < LANES; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < LANES; i += 4)
        for (int k = 0; k < 2; k++) {
            __m256d low = _mm256_castps_pd(pairs[i + k]), high = _mm256_castps_pd(pairs[i + 2 + k]);
            fours[i + 2 * k] = _mm256_castpd_ps(_mm256_unpacklo_pd(low, high));
            fours[i + 2 * k + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low, high));
        }
    for (int k = 0; k < 4; k++) {
        rows[k] = _mm256_permute2f128_ps(fours[k], fours[4 + k], 0x20);
        rows[4 + k] = _mm256_permute2f128_ps(fours[k], fours[4 + k], 0x31);
    }
}

#else

LANES_INLINE void lanes_transpose(lanes rows[LANES])
{
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < i; j++) {
            float moved = rows[i][j];
            rows[i][j] = rows[j][i];
            rows[j][i] = moved;
        }
}

#endif

/* Values first on of n pictures, picture apart, to vectors; lanes without a picture become 0. */
LANES_INLINE void transpose_block(const float *from, int64_t picture, int n, float *to,
                                  const int count)
{
    lanes rows[LANES];
    for (int i = 0; i < LANES; i++)
        rows[i] = i >= n           ? lanes_all(0.0f)
                  : count == LANES ? lanes_load(from + i * picture)
                                   : lanes_load_part(from + i * picture, count);
    lanes_transpose(rows);
    for (int i = 0; i < count; i++)
        lanes_store(to + (int64_t)i * LANES, rows[i]);
}

/* values of each of n pictures. */
static inline void transpose_in(const float *from, int64_t picture, int n, int values, float *to)
{
    int v = 0;
    for (; v + LANES <= values; v += LANES)
        transpose_block(from + v, picture, n, to + (int64_t)v * LANES, LANES);
    if (v < values)
        transpose_block(from + v, picture, n, to + (int64_t)v * LANES, values - v);
}

LANES_INLINE void transpose_block_back(const float *from, float *to, int64_t picture, int n)
{
    lanes rows[LANES];
    for (int i = 0; i < LANES; i++)
        rows[i] = lanes_load(from + (int64_t)i * LANES);
    lanes_transpose(rows);
    for (int i = 0; i < LANES; i++)
        if (i < n)
            lanes_store(to + i * picture, rows[i]);
}

static inline void transpose_out(const float *from, int values, float *to, int64_t picture, int n)
{
    int v = 0;
    for (; v + LANES <= values; v += LANES)
        transpose_block_back(from + (int64_t)v * LANES, to + v, picture, n);
    for (int i = 0; i < n; i++)
        for (int rest = v; rest < values; rest++)
            to[i * picture + rest] = from[(int64_t)rest * LANES + i];
}
