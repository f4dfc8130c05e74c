/*
 * Writing JPEG files with AVX-512 (BW, VL, VBMI, VBMI2 and VNNI: Ice Lake, Zen 4 and later;
 * compiled for them by CMakeLists.txt): four blocks, or 32 pixels, at a time. Coding is in
 * jpeg_encode/codes_avx512.c.
 */
#include "image/jpeg/transform.h"
#include "image/jpeg_encode/kernels.h"
#include <immintrin.h>

#define TDMI_INLINE static inline __attribute__((always_inline))

TDMI_INLINE __m512i pair_of(int first, int second)
{
    return _mm512_set1_epi32((int32_t)((uint16_t)first | (uint32_t)second << 16));
}

TDMI_INLINE __m512i products(__m512i sums, __m512i factors, __m512i weights)
{
    return _mm512_dpwssd_epi32(sums, factors, weights);
}

/* ---- colour ---------------------------------------------------------------------------------- */

/* Which byte of 16 pixels goes where: red and green, green and blue, as pairs of words. */
TDMI_INLINE __m512i pairs_from(int first)
{
    const __m512i pixels = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i at = _mm512_mullo_epi32(pixels, _mm512_set1_epi32(3));
    const __m512i low = _mm512_add_epi32(at, _mm512_set1_epi32(first));
    return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_add_epi32(low, _mm512_set1_epi32(1)), 16));
}

/* The upper halves of 32 sums. */
TDMI_INLINE __m512i upper(__m512i a, __m512i b)
{
    const __m512i odd =
        _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27,
                         25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi16(a, odd, b);
}

static void colour(const uint8_t *pixels, size_t n, int16_t *luma, int16_t *blue, int16_t *red)
{
    enum { BYTES = 48 };
    const __mmask64 whole = ((__mmask64)1 << BYTES) - 1, words = 0x5555555555555555;
    const __m512i to_warm = pairs_from(0), to_cold = pairs_from(1);
    const __m512i centred = _mm512_set1_epi32(TDMI_JPEG_HALF - (TDMI_JPEG_CENTRE << 16));
    /* Green has too large a part of luma for a word: it is taken in two halves. */
    const __m512i luma_warm = pair_of(TDMI_JPEG_LUMA_RED, TDMI_JPEG_LUMA_GREEN / 2);
    const __m512i luma_cold = pair_of(TDMI_JPEG_LUMA_GREEN / 2, TDMI_JPEG_LUMA_BLUE);
    /* So has blue, or red, of its difference, but for the sign: what is added up is the complement,
     * -1 less the difference. */
    const __m512i opposite = _mm512_set1_epi32(-TDMI_JPEG_HALF), ones = _mm512_set1_epi32(-1);
    const __m512i blue_warm = pair_of(TDMI_JPEG_BLUE_LESS_RED, TDMI_JPEG_BLUE_LESS_GREEN);
    const __m512i blue_cold = pair_of(0, -TDMI_JPEG_HALF);
    const __m512i red_warm = pair_of(-TDMI_JPEG_HALF, TDMI_JPEG_RED_LESS_GREEN);
    const __m512i red_cold = pair_of(0, TDMI_JPEG_RED_LESS_BLUE);
    for (size_t i = 0; i < n; i += 32) {
        __m512i y[2], b[2], r[2];
        for (size_t half = 0; half < 2; half++) {
            const size_t at = i + 16 * half, left = at < n ? 3 * (n - at) : 0;
            const __mmask64 mask = left >= BYTES ? whole : ((__mmask64)1 << left) - 1;
            const __m512i bytes = _mm512_maskz_loadu_epi8(mask, pixels + (left > 0 ? 3 * at : 0));
            const __m512i warm = _mm512_maskz_permutexvar_epi8(words, to_warm, bytes);
            const __m512i cold = _mm512_maskz_permutexvar_epi8(words, to_cold, bytes);
            y[half] = products(products(centred, warm, luma_warm), cold, luma_cold);
            b[half] = products(products(opposite, warm, blue_warm), cold, blue_cold);
            r[half] = products(products(opposite, warm, red_warm), cold, red_cold);
        }
        _mm512_storeu_si512(luma + i, upper(y[0], y[1]));
        _mm512_storeu_si512(blue + i, _mm512_xor_si512(upper(b[0], b[1]), ones));
        _mm512_storeu_si512(red + i, _mm512_xor_si512(upper(r[0], r[1]), ones));
    }
}

/* ---- transform ------------------------------------------------------------------------------- */

/* Eight rows of four blocks; after turning, eight columns of them. */
struct lines {
    __m512i x[8];
};

/* Rows become columns, in each block. */
TDMI_INLINE void turn(struct lines *lines)
{
    __m512i *x = lines->x, a[8], b[8];
    for (int i = 0; i < 4; i++) { /* pairs of rows 2 i, 2 i + 1 */
        a[2 * i] = _mm512_unpacklo_epi16(x[2 * i], x[2 * i + 1]);
        a[2 * i + 1] = _mm512_unpackhi_epi16(x[2 * i], x[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) { /* fours of rows 4 i … 4 i + 3 */
        b[4 * i] = _mm512_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = _mm512_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = _mm512_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = _mm512_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        x[2 * i] = _mm512_unpacklo_epi64(b[i], b[4 + i]);
        x[2 * i + 1] = _mm512_unpackhi_epi64(b[i], b[4 + i]);
    }
}

/* a and b woven into each other. */
struct woven {
    __m512i low, high;
};

TDMI_INLINE struct woven weave(__m512i a, __m512i b)
{
    return (struct woven){_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)};
}

TDMI_INLINE struct woven add_products(struct woven sums, struct woven factors, __m512i weights)
{
    return (struct woven){products(sums.low, factors.low, weights),
                          products(sums.high, factors.high, weights)};
}

TDMI_INLINE __m512i shifted(struct woven sums, unsigned shift)
{
    return _mm512_packs_epi32(_mm512_srai_epi32(sums.low, shift),
                              _mm512_srai_epi32(sums.high, shift));
}

TDMI_INLINE void transform_lanes(struct lines *lines, bool is_along)
{
    __m512i *x = lines->x;
    const unsigned shift = is_along ? TDMI_JPEG_ALONG_SHIFT : TDMI_JPEG_UPRIGHT_SHIFT;
    const __m512i half = _mm512_set1_epi32(1 << (shift - 1));
    const struct woven rounding = {half, half};
    __m512i s[4], d[4];
    for (int i = 0; i < 4; i++) {
        s[i] = _mm512_add_epi16(x[i], x[7 - i]);
        d[i] = _mm512_sub_epi16(x[i], x[7 - i]);
    }
    const __m512i outer = _mm512_add_epi16(s[0], s[3]), inner = _mm512_add_epi16(s[1], s[2]);
    const struct woven even = weave(_mm512_sub_epi16(s[0], s[3]), _mm512_sub_epi16(s[1], s[2]));
    x[0] = _mm512_add_epi16(outer, inner);
    x[4] = _mm512_sub_epi16(outer, inner);
    for (int i = 0; i < 8; i += 4)
        if (is_along)
            x[i] = _mm512_slli_epi16(x[i], TDMI_JPEG_ALONG_BITS);
        else
            x[i] = _mm512_srai_epi16(
                _mm512_add_epi16(x[i], _mm512_set1_epi16(1 << (TDMI_JPEG_ALONG_BITS - 1))),
                TDMI_JPEG_ALONG_BITS);
    x[2] = shifted(add_products(rounding, even, pair_of(TDMI_JPEG_C2A, TDMI_JPEG_C2B)), shift);
    x[6] = shifted(add_products(rounding, even, pair_of(TDMI_JPEG_C6A, TDMI_JPEG_C6B)), shift);
    const struct woven first = weave(d[0], d[1]), second = weave(d[2], d[3]);
#define X(j, a, b, c, e)      \
    x[2 * (j) + 1] = shifted( \
        add_products(add_products(rounding, first, pair_of(a, b)), second, pair_of(c, e)), shift);
    TDMI_JPEG_ODD(X)
#undef X
}

TDMI_INLINE __m512i four_times(const uint16_t *row)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)row));
}

TDMI_INLINE __m512i divided(__m512i x, const struct tdmi_jpeg_divisors *divisors, int row)
{
    __m512i size = _mm512_add_epi16(_mm512_abs_epi16(x), four_times(divisors->half + 8 * row));
    size = _mm512_mulhi_epu16(size, four_times(divisors->reciprocal + 8 * row));
    size = _mm512_mulhi_epu16(size, four_times(divisors->scale + 8 * row));
    return _mm512_mask_sub_epi16(size, _mm512_movepi16_mask(x), _mm512_setzero_si512(), size);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Halves of four blocks: rows 0 … 3, or 4 … 7, of each behind one another. */
TDMI_INLINE void gather(const __m512i *rows, __m512i *halves)
{
    const __m512i a = _mm512_shuffle_i32x4(rows[0], rows[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(rows[0], rows[1], 0xee);
    const __m512i c = _mm512_shuffle_i32x4(rows[2], rows[3], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(rows[2], rows[3], 0xee);
    halves[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    halves[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
    halves[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    halves[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

/* Half of a block. */
TDMI_INLINE uint32_t store(__m512i upper_rows, __m512i lower_rows, __m512i from, int16_t *values)
{
    const __m512i some = _mm512_permutex2var_epi16(upper_rows, from, lower_rows);
    _mm512_storeu_si512(values, some);
    return _mm512_test_epi16_mask(some, some);
}

static void transform(const int16_t *samples, size_t stride, size_t n_groups,
                      const struct tdmi_jpeg_divisors *divisors, struct tdmi_jpeg_values *blocks)
{
    /* Where the words of the zigzag's halves lie. */
    const __m256i *places = (const __m256i *)tdmi_jpeg_zigzag;
    const __m512i from[2] = {_mm512_cvtepu8_epi16(_mm256_loadu_si256(places)),
                             _mm512_cvtepu8_epi16(_mm256_loadu_si256(places + 1))};
    for (; n_groups > 0; n_groups--) {
        struct lines lines;
        __m512i halves[8];
        for (size_t y = 0; y < 8; y++)
            lines.x[y] = _mm512_loadu_si512(samples + stride * y);
        turn(&lines);
        transform_lanes(&lines, true);
        turn(&lines);
        transform_lanes(&lines, false);
        for (int y = 0; y < 8; y++)
            lines.x[y] = divided(lines.x[y], divisors, y);
        gather(lines.x, halves);
        gather(lines.x + 4, halves + 4);
        for (int i = 0; i < TDMI_JPEG_GROUP; i++) {
            int16_t *values = blocks[i].values;
            const uint32_t first = store(halves[i], halves[4 + i], from[0], values);
            const uint32_t second = store(halves[i], halves[4 + i], from[1], values + 32);
            blocks[i].set = first | (uint64_t)second << 32;
        }
        samples += TDMI_JPEG_GROUP_SAMPLES;
        blocks += TDMI_JPEG_GROUP;
    }
}

const struct tdmi_jpeg_write_kernels tdmi_jpeg_write_avx512 = {
    .name = "AVX-512",
    .colour = colour,
    .transform = transform,
    .code = tdmi_jpeg_write_code_avx512,
    .stuff = tdmi_jpeg_write_stuff_avx2,
};
