/*
 * Writing JPEG files with AVX2, LZCNT and POPCNT (Haswell, Zen and later; compiled for them by
 * CMakeLists.txt): two blocks, or sixteen pixels, at a time.
 */
#include "image/jpeg/lines_avx2.h"
#include "image/jpeg/transform.h"
#include "image/jpeg_encode/stream.h"
#include <immintrin.h>

TDMI_INLINE __m256i pair_of(int first, int second)
{
    return _mm256_set1_epi32((int32_t)((uint16_t)first | (uint32_t)second << 16));
}

/* ---- colour ---------------------------------------------------------------------------------- */

/* 32-bit sums of sixteen lanes: those of the lower and of the upper half of each 128 bits. */
struct sums {
    __m256i low, high;
};

/* Products of two pairs of words, and what they are added to. */
TDMI_INLINE struct sums products(struct sums warm, __m256i of_warm, struct sums cold,
                                 __m256i of_cold, __m256i rounding)
{
    const __m256i low = _mm256_add_epi32(_mm256_madd_epi16(warm.low, of_warm),
                                         _mm256_madd_epi16(cold.low, of_cold));
    const __m256i high = _mm256_add_epi32(_mm256_madd_epi16(warm.high, of_warm),
                                          _mm256_madd_epi16(cold.high, of_cold));
    return (struct sums){_mm256_add_epi32(low, rounding), _mm256_add_epi32(high, rounding)};
}

TDMI_INLINE struct sums weave(__m256i a, __m256i b)
{
    return (struct sums){_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};
}

TDMI_INLINE __m256i shifted(struct sums sums, int shift)
{
    return _mm256_packs_epi32(_mm256_srai_epi32(sums.low, shift),
                              _mm256_srai_epi32(sums.high, shift));
}

/* Sixteen pixels, 48 bytes -> the words of one colour. */
TDMI_INLINE __m256i words_of(const __m128i *bytes, int channel)
{
    static const int8_t from[9][16] = {
        {0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
        {-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1},
        {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13},
        {1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
        {-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1},
        {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14},
        {2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
        {-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1},
        {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15},
    };
    const __m128i *mask = (const __m128i *)from + (ptrdiff_t)3 * channel;
    __m128i all = _mm_setzero_si128();
    for (int i = 0; i < 3; i++)
        all = _mm_or_si128(all, _mm_shuffle_epi8(bytes[i], _mm_loadu_si128(mask + i)));
    return _mm256_cvtepu8_epi16(all);
}

static void colour_sixteen(const uint8_t *pixels, int16_t *luma, int16_t *blue, int16_t *red)
{
    const __m256i centred = _mm256_set1_epi32(TDMI_JPEG_HALF - (TDMI_JPEG_CENTRE << 16));
    /* Blue, or red, has too large a part of its difference for a word, but for the sign: what is
     * added up is the complement, -1 less the difference. */
    const __m256i opposite = _mm256_set1_epi32(-TDMI_JPEG_HALF), ones = _mm256_set1_epi32(-1);
    __m128i bytes[3];
    for (int i = 0; i < 3; i++)
        bytes[i] = _mm_loadu_si128((const __m128i *)pixels + i);
    const __m256i r = words_of(bytes, 0), g = words_of(bytes, 1), b = words_of(bytes, 2);
    const struct sums warm = weave(r, g), cold = weave(g, b);
    /* So has green of luma: it is taken in two halves. */
    const struct sums of_luma =
        products(warm, pair_of(TDMI_JPEG_LUMA_RED, TDMI_JPEG_LUMA_GREEN / 2), cold,
                 pair_of(TDMI_JPEG_LUMA_GREEN / 2, TDMI_JPEG_LUMA_BLUE), centred);
    const struct sums of_blue =
        products(warm, pair_of(TDMI_JPEG_BLUE_LESS_RED, TDMI_JPEG_BLUE_LESS_GREEN), cold,
                 pair_of(0, -TDMI_JPEG_HALF), opposite);
    const struct sums of_red = products(warm, pair_of(-TDMI_JPEG_HALF, TDMI_JPEG_RED_LESS_GREEN),
                                        cold, pair_of(0, TDMI_JPEG_RED_LESS_BLUE), opposite);
    _mm256_storeu_si256((__m256i *)luma, shifted(of_luma, 16));
    _mm256_storeu_si256((__m256i *)blue, _mm256_xor_si256(shifted(of_blue, 16), ones));
    _mm256_storeu_si256((__m256i *)red, _mm256_xor_si256(shifted(of_red, 16), ones));
}

static void colour(const uint8_t *pixels, size_t n, int16_t *luma, int16_t *blue, int16_t *red)
{
    enum { PIXELS = 16 };
    size_t i = 0;
    for (; i + PIXELS <= n; i += PIXELS)
        colour_sixteen(pixels + 3 * i, luma + i, blue + i, red + i);
    if (i < n) {
        uint8_t last[3 * PIXELS] = {0};
        memcpy(last, pixels + 3 * i, 3 * (n - i));
        colour_sixteen(last, luma + i, blue + i, red + i);
    }
}

/* ---- transform ------------------------------------------------------------------------------- */

TDMI_INLINE struct sums one_product(struct sums factors, __m256i weights, __m256i rounding)
{
    return (struct sums){_mm256_add_epi32(_mm256_madd_epi16(factors.low, weights), rounding),
                         _mm256_add_epi32(_mm256_madd_epi16(factors.high, weights), rounding)};
}

TDMI_INLINE void transform_lanes(struct tdmi_jpeg_lines *lines, bool is_along)
{
    __m256i *x = lines->x, s[4], d[4];
    const int shift = is_along ? TDMI_JPEG_ALONG_SHIFT : TDMI_JPEG_UPRIGHT_SHIFT;
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    for (int i = 0; i < 4; i++) {
        s[i] = _mm256_add_epi16(x[i], x[7 - i]);
        d[i] = _mm256_sub_epi16(x[i], x[7 - i]);
    }
    const __m256i outer = _mm256_add_epi16(s[0], s[3]), inner = _mm256_add_epi16(s[1], s[2]);
    const struct sums even = weave(_mm256_sub_epi16(s[0], s[3]), _mm256_sub_epi16(s[1], s[2]));
    x[0] = _mm256_add_epi16(outer, inner);
    x[4] = _mm256_sub_epi16(outer, inner);
    for (int i = 0; i < 8; i += 4)
        if (is_along)
            x[i] = _mm256_slli_epi16(x[i], TDMI_JPEG_ALONG_BITS);
        else
            x[i] = _mm256_srai_epi16(
                _mm256_add_epi16(x[i], _mm256_set1_epi16(1 << (TDMI_JPEG_ALONG_BITS - 1))),
                TDMI_JPEG_ALONG_BITS);
    x[2] = shifted(one_product(even, pair_of(TDMI_JPEG_C2A, TDMI_JPEG_C2B), half), shift);
    x[6] = shifted(one_product(even, pair_of(TDMI_JPEG_C6A, TDMI_JPEG_C6B), half), shift);
    const struct sums first = weave(d[0], d[1]), second = weave(d[2], d[3]);
#define X(j, a, b, c, e) \
    x[2 * (j) + 1] = shifted(products(first, pair_of(a, b), second, pair_of(c, e), half), shift);
    TDMI_JPEG_ODD(X)
#undef X
}

TDMI_INLINE __m256i twice(const uint16_t *row)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)row));
}

TDMI_INLINE __m256i divided(__m256i x, const struct tdmi_jpeg_divisors *divisors, ptrdiff_t row)
{
    __m256i size = _mm256_add_epi16(_mm256_abs_epi16(x), twice(divisors->half + 8 * row));
    size = _mm256_mulhi_epu16(size, twice(divisors->reciprocal + 8 * row));
    size = _mm256_mulhi_epu16(size, twice(divisors->scale + 8 * row));
    return _mm256_sign_epi16(size, x);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* How many bits a number takes, and its sign, as tdmi_jpeg_values has them. */
TDMI_INLINE __m256i sizes_of(__m256i values)
{
    const __m256i none = _mm256_setzero_si256(), nibble = _mm256_set1_epi16(15);
    const __m256i magnitudes = _mm256_abs_epi16(values);
    const __m256i bits =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4));
    __m256i size = none;
    for (int i = 0; i < 3; i++) {
        const __m256i part = _mm256_and_si256(_mm256_srli_epi16(magnitudes, 4 * i), nibble);
        const __m256i more =
            _mm256_and_si256(_mm256_cmpgt_epi16(part, none), _mm256_set1_epi16((int16_t)(4 * i)));
        size = _mm256_max_epi16(size, _mm256_add_epi16(_mm256_shuffle_epi8(bits, part), more));
    }
    return _mm256_sub_epi16(_mm256_add_epi16(size, size), _mm256_cmpgt_epi16(none, values));
}

TDMI_INLINE void store(const int16_t *numbers, struct tdmi_jpeg_values *block)
{
    enum { WORDS = 16 };
    const __m256i first = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int i = 0; i < TDMI_JPEG_BLOCK; i++)
        block->values[i] = numbers[tdmi_jpeg_zigzag[i]];
    block->set = 0;
    for (int i = 0; i < TDMI_JPEG_BLOCK; i += 2 * WORDS) {
        __m256i sizes[2];
        for (int j = 0; j < 2; j++) {
            const int at = i + j * WORDS;
            const __m256i places = _mm256_add_epi16(first, _mm256_set1_epi16((int16_t)at));
            sizes[j] = sizes_of(_mm256_loadu_si256((const __m256i *)(block->values + at)));
            _mm256_storeu_si256((__m256i *)(block->keys + at),
                                _mm256_add_epi16(_mm256_slli_epi16(places, 5), sizes[j]));
        }
        const __m256i both =
            _mm256_permute4x64_epi64(_mm256_packus_epi16(sizes[0], sizes[1]), 0xd8);
        const __m256i zeros = _mm256_cmpeq_epi8(both, _mm256_setzero_si256());
        block->set |= (uint64_t) ~(uint32_t)_mm256_movemask_epi8(zeros) << i;
    }
}

static void transform(const int16_t *samples, size_t stride, size_t n_groups,
                      const struct tdmi_jpeg_divisors *divisors, struct tdmi_jpeg_values *blocks)
{
    for (size_t i = 0; i < n_groups * TDMI_JPEG_GROUP; i += 2, samples += 16, blocks += 2) {
        struct tdmi_jpeg_lines lines;
        int16_t numbers[2][TDMI_JPEG_BLOCK];
        for (size_t y = 0; y < 8; y++)
            lines.x[y] = _mm256_loadu_si256((const __m256i *)(samples + stride * y));
        tdmi_jpeg_turn(&lines);
        transform_lanes(&lines, true);
        tdmi_jpeg_turn(&lines);
        transform_lanes(&lines, false);
        for (int y = 0; y < 8; y++) {
            const __m256i row = divided(lines.x[y], divisors, y);
            _mm_storeu_si128((__m128i *)numbers[0] + y, _mm256_castsi256_si128(row));
            _mm_storeu_si128((__m128i *)numbers[1] + y, _mm256_extracti128_si256(row, 1));
        }
        for (int b = 0; b < 2; b++)
            store(numbers[b], &blocks[b]);
    }
}

/* ---- codes ----------------------------------------------------------------------------------- */

__attribute__((target("bmi,popcnt,lzcnt"))) static void
code(struct tdmi_jpeg_sink *sink, const struct tdmi_jpeg_slot *slots, int n_slots, int n)
{
    tdmi_jpeg_code_mcus(sink, slots, n_slots, n);
}

size_t tdmi_jpeg_write_stuff_avx2(const uint8_t *bytes, size_t n, uint8_t *out)
{
    const __m256i ones = _mm256_set1_epi8(-1);
    size_t length = 0;
    for (size_t i = 0; i < n;) {
        const __m256i some = _mm256_loadu_si256((const __m256i *)(bytes + i));
        const unsigned found = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(some, ones));
        const size_t left = n - i;
        size_t taken = found == 0 ? sizeof some : (size_t)__builtin_ctz(found) + 1;
        _mm256_storeu_si256((__m256i *)(out + length), some);
        if (taken > left) {
            length += left;
            break;
        }
        i += taken;
        length += taken;
        if (found != 0)
            out[length++] = 0;
    }
    return length;
}

const struct tdmi_jpeg_write_kernels tdmi_jpeg_write_avx2 = {.name = "AVX2",
                                                             .colour = colour,
                                                             .transform = transform,
                                                             .code = code,
                                                             .stuff = tdmi_jpeg_write_stuff_avx2};
