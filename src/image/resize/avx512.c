/*
 * The passes for AVX-512 with VNNI and VBMI (Ice Lake, Zen 4 and later; compiled for them by
 * CMakeLists.txt). vpdpbusd multiplies four unsigned bytes with four signed ones and adds up, so a
 * weight of 23 bits becomes three digits to the base 256, each from -128 to 127:
 *
 *     sum w p  =  65536 sum high p  +  256 sum middle p  +  sum low p,    modulo 2^32 exactly
 *
 * A group of four weights becomes three words of four digits: all low ones, all middle, all high.
 */
#include "image/resize/kernels.h"
#include <immintrin.h>

enum { GROUP = TDMI_RESIZE_GROUP, BITS = TDMI_RESIZE_FRACTION_BITS };

/* Adding 128 to each of the three lower bytes and flipping their top bits leaves signed digits:
 * the carry of a byte that is read as negative goes into the next one. */
static void pack(int32_t *taps, size_t n_groups)
{
    const __m128i bias = _mm_set1_epi32(0x808080);
    const __m128i by_digit = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (size_t g = 0; g < n_groups; g++, taps += GROUP) {
        __m128i four = _mm_loadu_si128((const __m128i *)taps);
        four = _mm_xor_si128(_mm_add_epi32(four, bias), bias);
        _mm_storeu_si128((__m128i *)taps, _mm_shuffle_epi8(four, by_digit));
    }
}

/* Up to so many groups have a loop of their own, with all weights in registers. */
enum { MAX_GROUPS = 6 };
#define EACH_NUMBER(X) \
    X(1)               \
    X(2)               \
    X(3)               \
    X(4)               \
    X(5)               \
    X(6)
#define INLINE static inline __attribute__((always_inline)) /* with a constant number of groups */

/* Sixteen sums, the high digits first: what they give is shifted up before the next lower ones are
 * added. pixels (n_groups), weights (3, n_groups). It begins with a half of the last place, two
 * digits up. */
INLINE __m512i multiply(const __m512i *pixels, const __m512i *weights, int n_groups)
{
    __m512i sums = _mm512_set1_epi32(1 << (BITS - 1 - 16));
    for (int g = 0; g < n_groups; g++)
        sums = _mm512_dpbusd_epi32(sums, pixels[g], weights[g]);
    sums = _mm512_slli_epi32(sums, 8);
    for (int g = 0; g < n_groups; g++)
        sums = _mm512_dpbusd_epi32(sums, pixels[g], weights[n_groups + g]);
    sums = _mm512_slli_epi32(sums, 8);
    for (int g = 0; g < n_groups; g++)
        sums = _mm512_dpbusd_epi32(sums, pixels[g], weights[2 * n_groups + g]);
    return sums;
}

/* The same for any number of groups, in pieces. */
struct sums {
    __m512i low, middle, high;
};

static inline struct sums no_sums(void)
{
    return (struct sums){_mm512_set1_epi32(1 << (BITS - 1)), _mm512_setzero_si512(),
                         _mm512_setzero_si512()};
}

static inline struct sums add(struct sums sums, __m512i pixels, const int32_t *four)
{
    sums.low = _mm512_dpbusd_epi32(sums.low, pixels, _mm512_set1_epi32(four[0]));
    sums.middle = _mm512_dpbusd_epi32(sums.middle, pixels, _mm512_set1_epi32(four[1]));
    sums.high = _mm512_dpbusd_epi32(sums.high, pixels, _mm512_set1_epi32(four[2]));
    return sums;
}

static inline __m512i whole(struct sums sums)
{
    __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(sums.high, 8), sums.middle);
    return _mm512_add_epi32(_mm512_slli_epi32(upper, 8), sums.low);
}

/* Four vectors of finished sums -> bytes, clipped; in each 128-bit lane four of a, then of b, c, d.
 */
static inline __m512i bytes_of(__m512i a, __m512i b, __m512i c, __m512i d)
{
    a = _mm512_srai_epi32(a, BITS);
    b = _mm512_srai_epi32(b, BITS);
    c = _mm512_srai_epi32(c, BITS);
    d = _mm512_srai_epi32(d, BITS);
    return _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
}

/* ---- horizontal: five pixels of RGB are fifteen lanes, their inputs one load ----------------- */

enum {
    PIXELS = 5,
    LOAD = 64,
    FIRST_GROUP = 3 * GROUP - 1 /* the last byte of a pixel's first group */
};

/* For five outputs, (1 + 3 n_groups) vectors: where in a load the bytes of each lane's four inputs
 * are, then each lane's weights (3, n_groups), high digits first. */
static size_t block_vectors(int n_groups)
{
    return 1 + 3 * (size_t)n_groups;
}

static int n_blocks_of(int n_outputs)
{
    return (n_outputs + PIXELS - 1) / PIXELS;
}

/* Outputs of more groups are not arranged, so they need no room. */
static size_t arranged_bytes(int n_outputs, int max_groups)
{
    const int n_groups = max_groups < MAX_GROUPS ? max_groups : MAX_GROUPS;
    return (size_t)n_blocks_of(n_outputs) * block_vectors(n_groups) * sizeof(__m512i);
}

/* The last five begin where they end with the row: some are made twice. */
static int first_of_block(int block, int n_outputs)
{
    int first = PIXELS * block;
    return first > n_outputs - PIXELS ? n_outputs - PIXELS : first;
}

/* The last byte that a lane's first group needs, from where the block's first one begins. */
static int reach_of(const struct tdmi_span *spans)
{
    return 3 * (spans[PIXELS - 1].first - spans[0].first) + FIRST_GROUP;
}

static bool are_blocks_possible(const struct tdmi_resize_weights *weights)
{
    if (weights->n_outputs < PIXELS || weights->n_groups > MAX_GROUPS)
        return false;
    for (int block = 0; block < n_blocks_of(weights->n_outputs); block++)
        if (reach_of(weights->spans + first_of_block(block, weights->n_outputs)) >= LOAD)
            return false;
    return true;
}

/* Lanes take their weights from the rows of five outputs, x and on. */
static void arrange_block(const struct tdmi_resize_weights *weights, int x, __m512i *block)
{
    const struct tdmi_span *spans = weights->spans + x;
    const ptrdiff_t row = (ptrdiff_t)GROUP * weights->n_groups;
    uint8_t starts[16] = {0};
    for (int o = 0; o < PIXELS; o++)
        starts[o] = (uint8_t)(3 * (spans[o].first - spans[0].first));
    const __m512i pixel_of_lane = _mm512_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4);
    const __m512i bytes_of_pixel = _mm512_mullo_epi32(pixel_of_lane, _mm512_set1_epi32(0x01010101));
    const __m512i start =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)starts));
    const __m512i colour =
        _mm512_setr_epi32(0x09060300, 0x0a070401, 0x0b080502, 0x09060300, 0x0a070401, 0x0b080502,
                          0x09060300, 0x0a070401, 0x0b080502, 0x09060300, 0x0a070401, 0x0b080502,
                          0x09060300, 0x0a070401, 0x0b080502, 0x0b080502);
    block[0] = _mm512_add_epi8(_mm512_shuffle_epi8(start, bytes_of_pixel), colour);

    const __m512i quarter = _mm512_slli_epi32(pixel_of_lane, 2);
    for (int g = 0; g < weights->n_groups; g++) {
        const int32_t *at = weights->taps + x * row + (ptrdiff_t)GROUP * g;
        __m512i four = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)at));
        four = _mm512_inserti32x4(four, _mm_loadu_si128((const __m128i *)(at + row)), 1);
        four = _mm512_inserti32x4(four, _mm_loadu_si128((const __m128i *)(at + 2 * row)), 2);
        four = _mm512_inserti32x4(four, _mm_loadu_si128((const __m128i *)(at + 3 * row)), 3);
        __m512i fifth = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(at + 4 * row)));
        for (int digit = 0; digit < 3; digit++)
            block[1 + (2 - digit) * weights->n_groups + g] = _mm512_permutex2var_epi32(
                four, _mm512_add_epi32(quarter, _mm512_set1_epi32(digit)), fifth);
    }
}

static void arrange(struct tdmi_resize_weights *weights)
{
    weights->is_arranged = are_blocks_possible(weights);
    if (!weights->is_arranged)
        return;
    __m512i *at = weights->arranged;
    for (int block = 0; block < n_blocks_of(weights->n_outputs); block++) {
        arrange_block(weights, first_of_block(block, weights->n_outputs), at);
        at += block_vectors(weights->n_groups);
    }
}

/* With is_one_load, one load has the inputs of all groups. */
INLINE void block_run(const __m512i *block, int n_groups, bool is_one_load,
                      const uint8_t *const *rows, int n_quads, ptrdiff_t start, uint8_t *out,
                      size_t stride_bytes)
{
    const __m512i weave =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i places[MAX_GROUPS], weights[3 * MAX_GROUPS], pixels[MAX_GROUPS], sums[4];
    for (int g = 0; g < n_groups; g++)
        places[g] = _mm512_add_epi8(block[0], _mm512_set1_epi8((char)(3 * GROUP * g)));
    for (int i = 0; i < 3 * n_groups; i++)
        weights[i] = block[1 + i];
    for (int q = 0; q < n_quads; q++, rows += 4, out += stride_bytes) {
        for (int y = 0; y < 4; y++) {
            const uint8_t *from = rows[y] + start;
            for (int g = 0; g < n_groups; g++)
                pixels[g] = is_one_load
                                ? _mm512_permutexvar_epi8(places[g], _mm512_loadu_si512(from))
                                : _mm512_permutexvar_epi8(places[0],
                                                          _mm512_loadu_si512(from + 3 * GROUP * g));
            sums[y] = multiply(pixels, weights, n_groups);
        }
        __m512i bytes = bytes_of(sums[0], sums[1], sums[2], sums[3]);
        _mm512_storeu_si512(out, _mm512_shuffle_epi8(bytes, weave));
    }
}

INLINE void blocks_run(const struct tdmi_resize_weights *weights, int n_groups,
                       const uint8_t *const *rows, int n_quads, uint8_t *quads, size_t stride_bytes)
{
    const __m512i *block = weights->arranged;
    for (int i = 0; i < n_blocks_of(weights->n_outputs); i++, block += block_vectors(n_groups)) {
        const int x = first_of_block(i, weights->n_outputs);
        const struct tdmi_span *spans = weights->spans + x;
        const ptrdiff_t start = 3 * (ptrdiff_t)spans[0].first;
        uint8_t *out = quads + 12 * (ptrdiff_t)x;
        if (reach_of(spans) + 3 * GROUP * (n_groups - 1) < LOAD)
            block_run(block, n_groups, true, rows, n_quads, start, out, stride_bytes);
        else
            block_run(block, n_groups, false, rows, n_quads, start, out, stride_bytes);
    }
}

/* One pixel alone: for scales at which a load does not hold the inputs of five. */
static void pixel_run(const struct tdmi_resize_weights *weights, int x,
                      const uint8_t *const rows[4], uint8_t *out)
{
    const __m128i colours = _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
    const ptrdiff_t start = 3 * (ptrdiff_t)weights->spans[x].first;
    const int32_t *taps = weights->taps + (ptrdiff_t)x * GROUP * weights->n_groups;
    struct sums sums = no_sums();
    for (int g = 0; g < weights->n_groups; g++) {
        const int32_t *four = taps + (ptrdiff_t)GROUP * g;
        const ptrdiff_t at = start + (ptrdiff_t)3 * GROUP * g;
        __m512i pixels = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(rows[0] + at)));
        pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128((const __m128i *)(rows[1] + at)), 1);
        pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128((const __m128i *)(rows[2] + at)), 2);
        pixels = _mm512_inserti32x4(pixels, _mm_loadu_si128((const __m128i *)(rows[3] + at)), 3);
        pixels = _mm512_shuffle_epi8(pixels, _mm512_broadcast_i32x4(colours));
        sums = add(sums, pixels, four);
    }
    /* Lane r holds row r's red, green, blue and nothing. */
    __m512i numbers = whole(sums);
    __m512i bytes = bytes_of(numbers, numbers, numbers, numbers);
    const __m512i gather = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    __m128i four = _mm512_castsi512_si128(_mm512_permutexvar_epi32(gather, bytes));
    const __m128i weave = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_shuffle_epi8(four, weave));
}

static void horizontal(const uint8_t *const *rows, int n_quads,
                       const struct tdmi_resize_weights *weights, uint8_t *quads,
                       size_t stride_bytes)
{
    if (weights->is_arranged) {
        switch (weights->n_groups) {
#define CASE(n)                                                     \
    case n:                                                         \
        blocks_run(weights, n, rows, n_quads, quads, stride_bytes); \
        return;
            EACH_NUMBER(CASE)
#undef CASE
        }
    }
    for (int q = 0; q < n_quads; q++)
        for (int x = 0; x < weights->n_outputs; x++)
            pixel_run(weights, x, rows + 4 * q,
                      quads + stride_bytes * (size_t)q + 12 * (ptrdiff_t)x);
}

/* ---- vertical: sixteen bytes of four rows in a load ------------------------------------------ */

static inline void store(uint8_t *out, size_t n, __m512i bytes)
{
    const __m512i in_order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    bytes = _mm512_permutexvar_epi32(in_order, bytes);
    if (n >= 64)
        _mm512_storeu_si512(out, bytes);
    else
        _mm512_mask_storeu_epi8(out, _cvtu64_mask64(~0ull >> (64 - n)), bytes);
}

INLINE void row_run(const uint8_t *quads, size_t stride_bytes, const int32_t *taps, int n_groups,
                    size_t n, uint8_t *out)
{
    __m512i weights[3 * MAX_GROUPS], pixels[MAX_GROUPS], sums[4];
    for (int g = 0; g < n_groups; g++)
        for (int digit = 0; digit < 3; digit++)
            weights[(2 - digit) * n_groups + g] = _mm512_set1_epi32(taps[GROUP * g + digit]);
    size_t i = 0;
    for (; i + 16 < n; i += 64, quads += 4 * 64) {
        for (int part = 0; part < 4; part++) {
            for (int g = 0; g < n_groups; g++)
                pixels[g] = _mm512_loadu_si512(quads + stride_bytes * (size_t)g + 64 * part);
            sums[part] = multiply(pixels, weights, n_groups);
        }
        store(out + i, n - i, bytes_of(sums[0], sums[1], sums[2], sums[3]));
    }
    if (i < n) { /* a few bytes more */
        for (int g = 0; g < n_groups; g++)
            pixels[g] = _mm512_loadu_si512(quads + stride_bytes * (size_t)g);
        sums[0] = multiply(pixels, weights, n_groups);
        store(out + i, n - i, bytes_of(sums[0], sums[0], sums[0], sums[0]));
    }
}

static void row_of_many(const uint8_t *quads, size_t stride_bytes, const int32_t *taps,
                        int n_groups, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n; i += 64, quads += 4 * 64) {
        struct sums a = no_sums(), b = a, c = a, d = a;
        for (int g = 0; g < n_groups; g++) {
            const uint8_t *from = quads + stride_bytes * (size_t)g;
            const int32_t *four = taps + GROUP * (ptrdiff_t)g;
            a = add(a, _mm512_loadu_si512(from), four);
            b = add(b, _mm512_loadu_si512(from + 64), four);
            c = add(c, _mm512_loadu_si512(from + 128), four);
            d = add(d, _mm512_loadu_si512(from + 192), four);
        }
        store(out + i, n - i, bytes_of(whole(a), whole(b), whole(c), whole(d)));
    }
}

static void vertical(const uint8_t *quads, size_t stride_bytes, const int32_t *taps, int n_groups,
                     size_t n, uint8_t *out)
{
    switch (n_groups) {
#define CASE(n_of_it)                                        \
    case n_of_it:                                            \
        row_run(quads, stride_bytes, taps, n_of_it, n, out); \
        return;
        EACH_NUMBER(CASE)
#undef CASE
    default:
        row_of_many(quads, stride_bytes, taps, n_groups, n, out);
    }
}

const struct tdmi_resize_kernels tdmi_resize_avx512 = {"avx512", pack,       arranged_bytes,
                                                       arrange,  horizontal, vertical};
