/*
 * Decoding with AVX2 and BMI2 (Haswell, Zen and later; compiled for them by CMakeLists.txt): two
 * blocks, or sixteen pixels, at a time.
 */
#include "image/jpeg/lines.h"
#include "image/jpeg/lines_avx2.h"
#include "image/jpeg/transform.h"
#include <immintrin.h>

static void pair(struct tdmi_jpeg_codes *codes)
{
    tdmi_jpeg_make_pairs(codes);
}

static bool decode(struct tdmi_jpeg_stream *streams, int n_streams,
                   const struct tdmi_jpeg_band *bands, int n_components, int first, int n)
{
    return tdmi_jpeg_decode_run(streams, n_streams, bands, n_components, first, n);
}

/* ---- transform ------------------------------------------------------------------------------- */

/* 32-bit sums of sixteen lanes: those of the lower and of the upper half of each 128 bits. */
struct sums {
    __m256i low, high;
};

TDMI_INLINE struct sums multiply(__m256i a, __m256i b, int16_t of_a, int16_t of_b)
{
    const __m256i weights = _mm256_set1_epi32((int32_t)((uint16_t)of_a | (uint32_t)of_b << 16));
    return (struct sums){_mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights),
                         _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights)};
}

TDMI_INLINE struct sums plus(struct sums a, struct sums b)
{
    return (struct sums){_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

TDMI_INLINE struct sums minus(struct sums a, struct sums b)
{
    return (struct sums){_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

TDMI_INLINE __m256i shifted(struct sums sums, int shift)
{
    return _mm256_packs_epi32(_mm256_srai_epi32(sums.low, shift),
                              _mm256_srai_epi32(sums.high, shift));
}

/* The transform of each of the sixteen lanes. n is how many of the eight may be other than zero: 8,
 * or 4, the first ones. */
TDMI_INLINE void transform_lanes(struct tdmi_jpeg_lines *lines, int shift, int n)
{
    __m256i *x = lines->x;
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    const struct sums rounding = {half, half};
    const __m256i x4 = n > 4 ? x[4] : zero, x6 = n > 4 ? x[6] : zero;
    const struct sums sum = plus(multiply(x[0], x4, TDMI_JPEG_ONE, TDMI_JPEG_ONE), rounding);
    const struct sums difference =
        n > 4 ? plus(multiply(x[0], x4, TDMI_JPEG_ONE, -TDMI_JPEG_ONE), rounding) : sum;
    const struct sums second = multiply(x[2], x6, TDMI_JPEG_C2A, TDMI_JPEG_C2B);
    const struct sums sixth = multiply(x[2], x6, TDMI_JPEG_C6A, TDMI_JPEG_C6B);
    const struct sums even[4] = {plus(sum, second), plus(difference, sixth),
                                 minus(difference, sixth), minus(sum, second)};
    const __m256i x1 = x[1], x3 = x[3], x5 = x[5], x7 = x[7];
#define X(i, a, b, c, d)                                  \
    {                                                     \
        struct sums odd = multiply(x1, x3, a, b);         \
        if (n > 4)                                        \
            odd = plus(odd, multiply(x5, x7, c, d));      \
        x[i] = shifted(plus(even[i], odd), shift);        \
        x[7 - (i)] = shifted(minus(even[i], odd), shift); \
    }
    TDMI_JPEG_ODD(X)
#undef X
}

/* Columns of words -> rows of bytes, 16 each. */
TDMI_INLINE void store(const struct tdmi_jpeg_lines *lines, uint8_t *samples, size_t stride_bytes)
{
    const __m256i *x = lines->x, centre = _mm256_set1_epi8((char)TDMI_JPEG_CENTRE);
    __m256i a[4], b[4], c[4];
    for (int i = 0; i < 4; i++) { /* columns 4 (i / 2) + i % 2 and the next but one */
        const int first = i / 2 * 4 + i % 2;
        a[i] = _mm256_add_epi8(_mm256_packs_epi16(x[first], x[first + 2]), centre);
    }
    for (int i = 0; i < 2; i++) { /* two columns, then the next two, of all rows */
        b[2 * i] = _mm256_unpacklo_epi8(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm256_unpackhi_epi8(a[2 * i], a[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) { /* four columns of the upper rows, then of the lower ones */
        c[2 * i] = _mm256_unpacklo_epi16(b[2 * i], b[2 * i + 1]);
        c[2 * i + 1] = _mm256_unpackhi_epi16(b[2 * i], b[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) { /* two rows of both blocks */
        __m256i rows = i % 2 == 0 ? _mm256_unpacklo_epi32(c[i / 2], c[2 + i / 2])
                                  : _mm256_unpackhi_epi32(c[i / 2], c[2 + i / 2]);
        rows = _mm256_permute4x64_epi64(rows, 0xd8);
        uint8_t *out = samples + stride_bytes * (size_t)(2 * i);
        _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(rows));
        _mm_storeu_si128((__m128i *)(out + stride_bytes), _mm256_extracti128_si256(rows, 1));
    }
}

/* Places of the zigzag up to here lie in the first four rows and columns. */
enum { LAST_OF_QUARTER = 9 };

/* Both blocks are even areas. */
TDMI_INLINE __m256i store_means(const int16_t *pair, int16_t divisor, uint8_t *samples,
                                size_t stride_bytes)
{
    const __m128i means =
        _mm_set_epi16(pair[8], pair[8], pair[8], pair[8], pair[0], pair[0], pair[0], pair[0]);
    const __m128i numbers = _mm_mullo_epi16(means, _mm_set1_epi16(divisor));
    __m128i row = _mm_srai_epi16(_mm_add_epi16(numbers, _mm_set1_epi16(4)), 3);
    row = _mm_add_epi8(_mm_packs_epi16(row, row), _mm_set1_epi8((char)TDMI_JPEG_CENTRE));
    row = _mm_shuffle_epi32(row, 0x50); /* 0 0 1 1 */
    for (int y = 0; y < 8; y++)
        _mm_storeu_si128((__m128i *)(samples + stride_bytes * (size_t)y), row);
    return _mm256_zextsi128_si256(_mm_abs_epi16(numbers));
}

/* Returns the sums that are to be watched. */
TDMI_INLINE __m256i transform_pair(const int16_t *pair, const __m256i *divisors, int n,
                                   uint8_t *samples, size_t stride_bytes)
{
    struct tdmi_jpeg_lines lines;
    __m256i sum = _mm256_setzero_si256();
    for (int y = 0; y < n; y++) {
        const __m256i row = _mm256_loadu_si256((const __m256i *)(pair + 16 * y));
        lines.x[y] = _mm256_mullo_epi16(row, divisors[y]);
        sum = _mm256_adds_epu16(sum, _mm256_abs_epi16(lines.x[y]));
    }
    transform_lanes(&lines, TDMI_JPEG_DOWN_SHIFT, n);
    tdmi_jpeg_turn(&lines);
    transform_lanes(&lines, TDMI_JPEG_ACROSS_SHIFT, n);
    store(&lines, samples, stride_bytes);
    return sum;
}

static bool transform(const int16_t *pairs, const uint8_t *last, size_t n, const int16_t *divisors,
                      uint8_t *samples, size_t stride_bytes)
{
    __m256i rows[8], largest = _mm256_setzero_si256();
    for (int y = 0; y < 8; y++)
        rows[y] = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(divisors + (ptrdiff_t)8 * y)));
    for (size_t i = 0; i < n; i++, pairs += TDMI_JPEG_PAIR, samples += 16) {
        const uint8_t both = last[2 * i] | last[2 * i + 1];
        __m256i sum;
        if (both == 0)
            sum = store_means(pairs, divisors[0], samples, stride_bytes);
        else if (last[2 * i] <= LAST_OF_QUARTER && last[2 * i + 1] <= LAST_OF_QUARTER)
            sum = transform_pair(pairs, rows, 4, samples, stride_bytes);
        else
            sum = transform_pair(pairs, rows, 8, samples, stride_bytes);
        largest = _mm256_max_epu16(largest, sum);
    }
    const __m256i limit = _mm256_set1_epi16(TDMI_JPEG_LARGEST_SUM);
    const __m256i excess = _mm256_subs_epu16(largest, limit);
    return _mm256_testz_si256(excess, excess) != 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void widen(const uint8_t *row, size_t n, int16_t *sums, uint8_t *out)
{
    tdmi_jpeg_widen_row(row, n, sums, out);
}

static void widen_between(const uint8_t *row, const uint8_t *other, size_t n, int16_t *sums,
                          uint8_t *out)
{
    tdmi_jpeg_widen_two(row, other, n, sums, out);
}

/* x times a fraction of 16 bits, rounded half up: the floor of twice that, plus one, halved. */
TDMI_INLINE __m256i fraction(__m256i x, int numerator)
{
    const __m256i twice =
        _mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16((int16_t)numerator));
    return _mm256_srai_epi16(_mm256_add_epi16(twice, _mm256_set1_epi16(1)), 1);
}

TDMI_INLINE __m256i words_of(const uint8_t *bytes)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)bytes));
}

/* Sixteen words -> bytes, clipped. */
TDMI_INLINE __m128i bytes_of(__m256i words)
{
    const __m256i bytes = _mm256_packus_epi16(words, words);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(bytes, 0xd8));
}

/* Sixteen pixels: 48 bytes. */
TDMI_INLINE void store_pixels(__m128i red, __m128i green, __m128i blue, uint8_t *pixels)
{
    static const int8_t from[9][16] = {
        {0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
        {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
        {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1},
        {-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
        {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
        {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1},
        {-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
        {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
        {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15},
    };
    for (int i = 0; i < 3; i++) {
        const __m128i *mask = (const __m128i *)from + (ptrdiff_t)3 * i;
        const __m128i third =
            _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(red, _mm_loadu_si128(mask)),
                                      _mm_shuffle_epi8(green, _mm_loadu_si128(mask + 1))),
                         _mm_shuffle_epi8(blue, _mm_loadu_si128(mask + 2)));
        _mm_storeu_si128((__m128i *)(pixels + (ptrdiff_t)16 * i), third);
    }
}

static void colour(const uint8_t *luma, const uint8_t *blue, const uint8_t *red, size_t n,
                   uint8_t *pixels)
{
    enum { WHOLE = 1 << 16 };
    const __m256i centre = _mm256_set1_epi16(TDMI_JPEG_CENTRE), half = _mm256_set1_epi32(1 << 15);
    const __m256i greens = _mm256_set1_epi32(
        (int32_t)((uint16_t)TDMI_JPEG_GREEN_BLUE | (uint32_t)(TDMI_JPEG_GREEN_RED + WHOLE) << 16));
    for (size_t i = 0; i < n; i += 16) {
        const __m256i y = words_of(luma + i);
        const __m256i b = _mm256_sub_epi16(words_of(blue + i), centre);
        const __m256i r = _mm256_sub_epi16(words_of(red + i), centre);
        const __m256i red_words =
            _mm256_add_epi16(_mm256_add_epi16(y, r), fraction(r, TDMI_JPEG_RED - WHOLE));
        const __m256i blue_words = _mm256_add_epi16(_mm256_add_epi16(y, _mm256_add_epi16(b, b)),
                                                    fraction(b, TDMI_JPEG_BLUE - 2 * WHOLE));
        const __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(b, r), greens);
        const __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(b, r), greens);
        const __m256i both =
            _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, half), 16),
                               _mm256_srai_epi32(_mm256_add_epi32(high, half), 16));
        const __m256i green_words = _mm256_add_epi16(_mm256_sub_epi16(y, r), both);
        store_pixels(bytes_of(red_words), bytes_of(green_words), bytes_of(blue_words),
                     pixels + 3 * i);
    }
}

static void grey(const uint8_t *luma, size_t n, uint8_t *pixels)
{
    for (size_t i = 0; i < n; i += 16) {
        const __m128i row = _mm_loadu_si128((const __m128i *)(luma + i));
        store_pixels(row, row, row, pixels + 3 * i);
    }
}

const struct tdmi_jpeg_kernels tdmi_jpeg_avx2 = {.name = "AVX2",
                                                 .pair = pair,
                                                 .decode = decode,
                                                 .transform = transform,
                                                 .widen = widen,
                                                 .widen_between = widen_between,
                                                 .colour = colour,
                                                 .grey = grey};
