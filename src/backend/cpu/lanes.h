/*
 * One vector of floats of whatever width the file is compiled for, for kernels that are written
 * once (isa.h): 16 with AVX-512, 8 with AVX2, else 4 in the vectors that GCC and Clang know on
 * every processor. lanes_multiply_add rounds once where the set has it, so results differ between
 * sets in their last bits; on one machine they never do. The compiler is GCC or Clang.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LANES_INLINE static inline __attribute__((always_inline, unused))

/* Before a loop: UNROLL where the compiler knows how often it runs, which is at most this, so that
 * arrays of vectors become registers; UNROLL_BY where so many of its steps shall be one. */
#define LANES_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define UNROLL(most) LANES_PRAGMA(clang loop unroll(full))
#define UNROLL_BY(steps) LANES_PRAGMA(clang loop unroll_count(steps))
#else
#define UNROLL(most) LANES_PRAGMA(GCC unroll most)
#define UNROLL_BY(steps) LANES_PRAGMA(GCC unroll steps)
#endif

/* Loops over arrays of vectors in registers: EACH_OF (i, n) over i < n, and EACH_PAIR with a loop
 * over j inside. */
#define EACH_OF(i, n) \
    UNROLL(32)        \
    for (int i = 0; i < (n); i++)
#define EACH_PAIR(i, tall, j, wide) \
    EACH_OF (i, tall)               \
        EACH_OF (j, wide)

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__)
#include <immintrin.h>
enum { LANES = 16 };
typedef __m512 lanes;
#define LANES_512
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
enum { LANES = 8 };
typedef __m256 lanes;
#define LANES_256
#else
/* NEON or SSE or single floats, as the processor has them. */
enum { LANES = 4 };
typedef float lanes __attribute__((vector_size(16)));
#endif

/* ---- what the compiler knows for every vector ---------------------------------------------- */

typedef lanes lanes_anywhere __attribute__((aligned(4), may_alias)); /* floats in memory */

LANES_INLINE lanes lanes_load(const float *from)
{
    return *(const lanes_anywhere *)from;
}
LANES_INLINE void lanes_store(float *to, lanes a)
{
    *(lanes_anywhere *)to = a;
}
LANES_INLINE lanes lanes_add(lanes a, lanes b)
{
    return a + b;
}
LANES_INLINE lanes lanes_sub(lanes a, lanes b)
{
    return a - b;
}
LANES_INLINE lanes lanes_multiply(lanes a, lanes b)
{
    return a * b;
}
/* Division and root round as IEEE says: the same bits in every set. */
LANES_INLINE lanes lanes_divide(lanes a, lanes b)
{
    return a / b;
}
/* Store past the caches, where the set has stores of a whole line (half lines are slower than
 * ordinary stores); to must be aligned to 64 bytes. */
LANES_INLINE void lanes_stream(float *to, lanes a)
{
#if defined(LANES_512)
    _mm512_stream_ps(to, a);
#else
    lanes_store(to, a);
#endif
}
LANES_INLINE void lanes_fence(void)
{
#if defined(LANES_512)
    _mm_sfence();
#endif
}
/* The line at an address will be read soon, from the second cache. */
LANES_INLINE void lanes_prefetch(const float *at)
{
    __builtin_prefetch(at, 0, 2);
}

/* ---- what each set has instructions for ----------------------------------------------------- */

#if defined(LANES_512)

LANES_INLINE lanes lanes_all(float value)
{
    return _mm512_set1_ps(value);
}
/* The first n, zeros behind them; nothing behind them is touched. */
LANES_INLINE lanes lanes_load_part(const float *from, int n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
}
LANES_INLINE void lanes_store_part(float *to, lanes a, int n)
{
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), a);
}
LANES_INLINE lanes lanes_root(lanes a)
{
    return _mm512_sqrt_ps(a);
}
/* a · b + c */
LANES_INLINE lanes lanes_multiply_add(lanes a, lanes b, lanes c)
{
    return _mm512_fmadd_ps(a, b, c);
}
/* NaN stays NaN. */
LANES_INLINE lanes lanes_clamp(lanes a, lanes low, lanes high)
{
    return _mm512_min_ps(high, _mm512_max_ps(low, a));
}
/* a where low < z < high, or z is NaN; 0 elsewhere */
LANES_INLINE lanes lanes_between(lanes a, lanes z, lanes low, lanes high)
{
    __mmask16 above = _mm512_cmp_ps_mask(z, low, _CMP_NLE_UQ);
    return _mm512_maskz_mov_ps(_mm512_mask_cmp_ps_mask(above, z, high, _CMP_NGE_UQ), a);
}
/* b where a < b, else a: NaN in either gives a. taps alike. */
LANES_INLINE lanes lanes_larger(lanes a, lanes b, lanes *tap, lanes tap_b)
{
    __mmask16 wins = _mm512_cmp_ps_mask(b, a, _CMP_GT_OQ);
    *tap = _mm512_mask_mov_ps(*tap, wins, tap_b);
    return _mm512_mask_mov_ps(a, wins, b);
}
/* yes where a <= b, else no: so also where one is NaN */
LANES_INLINE lanes lanes_at_most(lanes a, lanes b, lanes yes, lanes no)
{
    return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ), yes);
}
/* a where tap == wanted, else 0 */
LANES_INLINE lanes lanes_where_equal(lanes a, lanes tap, lanes wanted)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(tap, wanted, _CMP_EQ_OQ), a);
}
LANES_INLINE lanes lanes_load_bytes(const uint8_t *from)
{
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from)));
}
/* Whole numbers from 0 to 255. */
LANES_INLINE void lanes_store_bytes(uint8_t *to, lanes a)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
}
/* to[i] += a[i] */
LANES_INLINE void lanes_add_to_doubles(double *to, lanes a)
{
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
    _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), low));
    _mm512_storeu_pd(to + 8, _mm512_add_pd(_mm512_loadu_pd(to + 8), high));
}
/* to[i] += a[i]², squared in double, which is exact */
LANES_INLINE void lanes_add_squares_to_doubles(double *to, lanes a)
{
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
    _mm512_storeu_pd(to, _mm512_fmadd_pd(low, low, _mm512_loadu_pd(to)));
    _mm512_storeu_pd(to + 8, _mm512_fmadd_pd(high, high, _mm512_loadu_pd(to + 8)));
}

#elif defined(LANES_256)

LANES_INLINE __m256i lanes_first(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LANES_INLINE lanes lanes_all(float value)
{
    return _mm256_set1_ps(value);
}
LANES_INLINE lanes lanes_load_part(const float *from, int n)
{
    return _mm256_maskload_ps(from, lanes_first(n));
}
LANES_INLINE void lanes_store_part(float *to, lanes a, int n)
{
    _mm256_maskstore_ps(to, lanes_first(n), a);
}
LANES_INLINE lanes lanes_root(lanes a)
{
    return _mm256_sqrt_ps(a);
}
LANES_INLINE lanes lanes_multiply_add(lanes a, lanes b, lanes c)
{
    return _mm256_fmadd_ps(a, b, c);
}
LANES_INLINE lanes lanes_clamp(lanes a, lanes low, lanes high)
{
    return _mm256_min_ps(high, _mm256_max_ps(low, a));
}
LANES_INLINE lanes lanes_between(lanes a, lanes z, lanes low, lanes high)
{
    return _mm256_and_ps(
        a, _mm256_and_ps(_mm256_cmp_ps(z, low, _CMP_NLE_UQ), _mm256_cmp_ps(z, high, _CMP_NGE_UQ)));
}
LANES_INLINE lanes lanes_larger(lanes a, lanes b, lanes *tap, lanes tap_b)
{
    __m256 wins = _mm256_cmp_ps(b, a, _CMP_GT_OQ);
    *tap = _mm256_blendv_ps(*tap, tap_b, wins);
    return _mm256_blendv_ps(a, b, wins);
}
LANES_INLINE lanes lanes_at_most(lanes a, lanes b, lanes yes, lanes no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LE_OQ));
}
LANES_INLINE lanes lanes_where_equal(lanes a, lanes tap, lanes wanted)
{
    return _mm256_and_ps(a, _mm256_cmp_ps(tap, wanted, _CMP_EQ_OQ));
}
LANES_INLINE lanes lanes_load_bytes(const uint8_t *from)
{
    return _mm256_cvtepi32_ps(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from)));
}
LANES_INLINE void lanes_store_bytes(uint8_t *to, lanes a)
{
    __m256i words = _mm256_cvtps_epi32(a);
    __m128i halves =
        _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(halves, halves));
}
LANES_INLINE void lanes_add_to_doubles(double *to, lanes a)
{
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), low));
    _mm256_storeu_pd(to + 4, _mm256_add_pd(_mm256_loadu_pd(to + 4), high));
}
LANES_INLINE void lanes_add_squares_to_doubles(double *to, lanes a)
{
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    _mm256_storeu_pd(to, _mm256_fmadd_pd(low, low, _mm256_loadu_pd(to)));
    _mm256_storeu_pd(to + 4, _mm256_fmadd_pd(high, high, _mm256_loadu_pd(to + 4)));
}

#else

typedef int32_t lanes_mask __attribute__((vector_size(16)));

LANES_INLINE lanes lanes_choose(lanes_mask mask, lanes a, lanes b)
{
    return (lanes)(((lanes_mask)a & mask) | ((lanes_mask)b & ~mask));
}
LANES_INLINE lanes lanes_all(float value)
{
    return (lanes){value, value, value, value};
}
LANES_INLINE lanes lanes_load_part(const float *from, int n)
{
    lanes a = lanes_all(0.0f);
    for (int i = 0; i < n; i++)
        a[i] = from[i];
    return a;
}
LANES_INLINE void lanes_store_part(float *to, lanes a, int n)
{
    for (int i = 0; i < LANES; i++)
        if (i < n) /* there, not in the loop's condition: GCC 14 would warn of a longer loop */
            to[i] = a[i];
}
LANES_INLINE lanes lanes_root(lanes a)
{
    for (int i = 0; i < LANES; i++)
        a[i] = sqrtf(a[i]);
    return a;
}
LANES_INLINE lanes lanes_multiply_add(lanes a, lanes b, lanes c)
{
    return a * b + c;
}
LANES_INLINE lanes lanes_clamp(lanes a, lanes low, lanes high)
{
    a = lanes_choose(a < low, low, a);
    return lanes_choose(a > high, high, a);
}
LANES_INLINE lanes lanes_between(lanes a, lanes z, lanes low, lanes high)
{
    return lanes_choose((z <= low) | (z >= high), lanes_all(0.0f), a);
}
LANES_INLINE lanes lanes_larger(lanes a, lanes b, lanes *tap, lanes tap_b)
{
    lanes_mask is_larger = b > a;
    *tap = lanes_choose(is_larger, tap_b, *tap);
    return lanes_choose(is_larger, b, a);
}
LANES_INLINE lanes lanes_at_most(lanes a, lanes b, lanes yes, lanes no)
{
    return lanes_choose(a <= b, yes, no);
}
LANES_INLINE lanes lanes_where_equal(lanes a, lanes tap, lanes wanted)
{
    return lanes_choose(tap == wanted, a, lanes_all(0.0f));
}
LANES_INLINE lanes lanes_load_bytes(const uint8_t *from)
{
    return (lanes){(float)from[0], (float)from[1], (float)from[2], (float)from[3]};
}
LANES_INLINE void lanes_store_bytes(uint8_t *to, lanes a)
{
    for (int i = 0; i < LANES; i++)
        to[i] = (uint8_t)a[i];
}
LANES_INLINE void lanes_add_to_doubles(double *to, lanes a)
{
    for (int i = 0; i < LANES; i++)
        to[i] += (double)a[i];
}
LANES_INLINE void lanes_add_squares_to_doubles(double *to, lanes a)
{
    for (int i = 0; i < LANES; i++)
        to[i] += (double)a[i] * (double)a[i];
}

#endif

/* Activations that are a clamp have this range; its inside is where their derivative is 1. */
struct lanes_range {
    lanes low, high;
};
