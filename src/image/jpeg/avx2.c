/*
 * Decoding with AVX2 and BMI2 (Haswell, Zen and later; compiled for them by CMakeLists.txt): two
 * blocks, or sixteen pixels, at a time.
 *
 * The numbers are those of libjpeg's slow integer transform (Loeffler, Ligtenberg and Moschytz
 * 1989) in 13 bits of fraction, and of its conversion from YCbCr in 16. The original multiplies in
 * steps that share products; these are the sums of those products, which in integers is the same.
 *
 *     even part   e0 = (x0 + x4) ONE + x2 C2A + x6 C2B     e3 = (x0 + x4) ONE - x2 C2A - x6 C2B
 *                 e1 = (x0 - x4) ONE + x2 C6A + x6 C6B     e2 = (x0 - x4) ONE - x2 C6A - x6 C6B
 *     odd part    oi = x1 O[i][0] + x3 O[i][1] + x5 O[i][2] + x7 O[i][3]
 *     result      ei + oi, i = 0 … 3, then ei - oi, i = 3 … 0, rounded
 */
#include "image/jpeg/stream.h"
#include <immintrin.h>

enum {
    ONE = 8192,
    C2A = 10703,
    C2B = 4433,
    C6A = 4433,
    C6B = -10704,
    DOWN_SHIFT = 11,   /* after columns: two bits of fraction stay */
    ACROSS_SHIFT = 18, /* after rows: those, and a factor of 8 */
    CENTRE = 128,
    /* red = luma + 1.402 R, blue = luma + 1.772 B, green = luma - 0.34414 B - 0.71414 R */
    RED = 91881,
    BLUE = 116130,
    GREEN_BLUE = -22554,
    GREEN_RED = -46802
};

#define ODD(X)                       \
    X(0, 11363, 9633, 6437, 2260)    \
    X(1, 9633, -2259, -11362, -6436) \
    X(2, 6437, -11362, 2261, 9633)   \
    X(3, 2260, -6436, 9633, -11363)

/* ---- codes ----------------------------------------------------------------------------------- */

/* n_streams is a constant; the second one goes into `ahead` more rows of MCUs, in memory behind the
 * first one's. */
TDMI_INLINE bool decode_runs(struct tdmi_jpeg_stream *streams, int n_streams,
                             const struct tdmi_jpeg_band *bands, int n_components, int first, int n)
{
    struct tdmi_jpeg_bits bits[2] = {{0}};
    const uint8_t *latest[2] = {0};
    for (int i = 0; i < n_streams; i++) {
        const struct tdmi_jpeg_stream *stream = &streams[i];
        bits[i] = (struct tdmi_jpeg_bits){stream->window, stream->n_bits, stream->at};
        latest[i] = stream->end + sizeof bits->window;
    }
    for (int mcu = first; mcu < first + n; mcu++)
        for (int c = 0; c < n_components; c++) {
            const struct tdmi_jpeg_band *band = &bands[c];
            const struct tdmi_jpeg_codes *dc = band->codes[TDMI_JPEG_DC],
                                         *ac = band->codes[TDMI_JPEG_AC];
            for (int y = 0; y < band->down; y++)
                for (int x = 0; x < band->across; x++) {
                    const size_t column = (size_t)(mcu * band->across + x);
                    const size_t pair = (size_t)y * band->n_pairs + column / 2;
                    int16_t *block = band->coefficients + TDMI_JPEG_PAIR * pair + 8 * (column % 2);
                    uint8_t *last = band->last + 2 * pair + column % 2;
                    if (n_streams == 2
                            ? !tdmi_jpeg_two_blocks(&bits[0], &bits[1], dc, ac,
                                                    &streams[0].means[c], &streams[1].means[c],
                                                    block, block + band->ahead * TDMI_JPEG_BLOCK,
                                                    last, last + band->ahead)
                            : !tdmi_jpeg_block(&bits[0], dc, ac, &streams[0].means[c], block, last))
                        return false;
                    if (bits[0].at > latest[0] || (n_streams == 2 && bits[1].at > latest[1]))
                        return false;
                }
        }
    for (int i = 0; i < n_streams; i++) {
        streams[i].window = bits[i].window;
        streams[i].n_bits = bits[i].n;
        streams[i].at = bits[i].at;
    }
    return true;
}

static bool decode(struct tdmi_jpeg_stream *streams, int n_streams,
                   const struct tdmi_jpeg_band *bands, int n_components, int first, int n)
{
    return n_streams == 2 ? decode_runs(streams, 2, bands, n_components, first, n)
                          : decode_runs(streams, 1, bands, n_components, first, n);
}

/* Rows, a block in each half; after transpose(), columns. */
struct lines {
    __m256i x[8];
};

/* Rows become columns, in each half. */
TDMI_INLINE void transpose(struct lines *lines)
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
TDMI_INLINE void transform_lanes(struct lines *lines, int shift, int n)
{
    __m256i *x = lines->x;
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    const struct sums rounding = {half, half};
    const __m256i x4 = n > 4 ? x[4] : zero, x6 = n > 4 ? x[6] : zero;
    const struct sums sum = plus(multiply(x[0], x4, ONE, ONE), rounding);
    const struct sums difference = n > 4 ? plus(multiply(x[0], x4, ONE, -ONE), rounding) : sum;
    const struct sums second = multiply(x[2], x6, C2A, C2B);
    const struct sums sixth = multiply(x[2], x6, C6A, C6B);
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
    ODD(X)
#undef X
}

/* Columns of words -> rows of bytes, 16 each. */
TDMI_INLINE void store(const struct lines *lines, uint8_t *samples, size_t stride_bytes)
{
    const __m256i *x = lines->x, centre = _mm256_set1_epi8((char)CENTRE);
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
    row = _mm_add_epi8(_mm_packs_epi16(row, row), _mm_set1_epi8((char)CENTRE));
    row = _mm_shuffle_epi32(row, 0x50); /* 0 0 1 1 */
    for (int y = 0; y < 8; y++)
        _mm_storeu_si128((__m128i *)(samples + stride_bytes * (size_t)y), row);
    return _mm256_zextsi128_si256(_mm_abs_epi16(numbers));
}

/* Returns the sums that are to be watched. */
TDMI_INLINE __m256i transform_pair(const int16_t *pair, const __m256i *divisors, int n,
                                   uint8_t *samples, size_t stride_bytes)
{
    struct lines lines;
    __m256i sum = _mm256_setzero_si256();
    for (int y = 0; y < n; y++) {
        const __m256i row = _mm256_loadu_si256((const __m256i *)(pair + 16 * y));
        lines.x[y] = _mm256_mullo_epi16(row, divisors[y]);
        sum = _mm256_adds_epu16(sum, _mm256_abs_epi16(lines.x[y]));
    }
    transform_lanes(&lines, DOWN_SHIFT, n);
    transpose(&lines);
    transform_lanes(&lines, ACROSS_SHIFT, n);
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

/* Three parts of the near sample, one of the far one, in both directions; what is beyond an edge is
 * the edge. sums[-1] and sums[n] are set here. Left and right halves are rounded differently, so
 * that no step becomes brighter or darker on average. */
TDMI_INLINE void widen_sums(int16_t *sums, size_t n, int left, int right, int shift, uint8_t *out)
{
    int16_t *before = sums - 1, *behind = sums + 1;
    before[0] = sums[0];
    sums[n] = sums[n - 1];
    for (size_t i = 0; i < n; i++) {
        const unsigned low = (unsigned)(3 * sums[i] + before[i] + left) >> shift;
        const unsigned high = (unsigned)(3 * sums[i] + behind[i] + right) >> shift;
        const uint16_t both = (uint16_t)(low | high << 8);
        memcpy(out + 2 * i, &both, sizeof both);
    }
}

static void widen(const uint8_t *row, size_t n, int16_t *sums, uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        sums[i + 1] = row[i];
    widen_sums(sums + 1, n, 1, 2, 2, out);
}

static void widen_between(const uint8_t *row, const uint8_t *other, size_t n, int16_t *sums,
                          uint8_t *out)
{
    for (size_t i = 0; i < n; i++)
        sums[i + 1] = (int16_t)(3 * row[i] + other[i]);
    widen_sums(sums + 1, n, 8, 7, 4, out);
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
    const __m256i centre = _mm256_set1_epi16(CENTRE), half = _mm256_set1_epi32(1 << 15);
    const __m256i greens =
        _mm256_set1_epi32((int32_t)((uint16_t)GREEN_BLUE | (uint32_t)(GREEN_RED + WHOLE) << 16));
    for (size_t i = 0; i < n; i += 16) {
        const __m256i y = words_of(luma + i);
        const __m256i b = _mm256_sub_epi16(words_of(blue + i), centre);
        const __m256i r = _mm256_sub_epi16(words_of(red + i), centre);
        const __m256i red_words =
            _mm256_add_epi16(_mm256_add_epi16(y, r), fraction(r, RED - WHOLE));
        const __m256i blue_words = _mm256_add_epi16(_mm256_add_epi16(y, _mm256_add_epi16(b, b)),
                                                    fraction(b, BLUE - 2 * WHOLE));
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

const struct tdmi_jpeg_kernels tdmi_jpeg_avx2 = {tdmi_jpeg_make_pairs, decode, transform, widen,
                                                 widen_between,        colour, grey};
