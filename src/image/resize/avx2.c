/*
 * The passes for AVX2 (compiled for it by CMakeLists.txt). vpmaddwd multiplies two pairs of 16-bit
 * numbers and adds up, so a weight of 23 bits is split in two:
 *
 *     sum w p  =  4096 sum high p  +  sum low p,    modulo 2^32 exactly
 *
 * A group of four weights becomes four words: the high parts of weights 0 and 2, of 1 and 3, and
 * the low parts alike, since the even and the odd bytes of a 32-bit lane are one mask and one shift
 * away.
 */
#include "image/resize/kernels.h"
#include <immintrin.h>
#include <string.h>

enum { GROUP = TDMI_RESIZE_GROUP, BITS = TDMI_RESIZE_FRACTION_BITS, LOW_BITS = 12 };

static void pack(int32_t *taps, size_t n_groups)
{
    for (size_t g = 0; g < n_groups; g++, taps += GROUP) {
        int16_t parts[8];
        for (int k = 0; k < GROUP; k++) {
            const int word = k % 2, half = k / 2;
            parts[2 * word + half] = (int16_t)(taps[k] >> LOW_BITS);
            parts[4 + 2 * word + half] = (int16_t)(taps[k] & ((1 << LOW_BITS) - 1));
        }
        memcpy(taps, parts, sizeof parts);
    }
}

struct sums {
    __m256i high, low;
};

static inline struct sums no_sums(void)
{
    return (struct sums){_mm256_setzero_si256(), _mm256_set1_epi32(1 << (BITS - 1))};
}

static inline struct sums add(struct sums sums, __m256i pixels, const int32_t *four)
{
    __m256i even = _mm256_and_si256(pixels, _mm256_set1_epi32(0xff00ff));
    __m256i odd = _mm256_srli_epi16(pixels, 8);
    sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(even, _mm256_set1_epi32(four[0])));
    sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(odd, _mm256_set1_epi32(four[1])));
    sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(even, _mm256_set1_epi32(four[2])));
    sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(odd, _mm256_set1_epi32(four[3])));
    return sums;
}

static inline __m256i whole(struct sums sums)
{
    __m256i all = _mm256_add_epi32(_mm256_slli_epi32(sums.high, LOW_BITS), sums.low);
    return _mm256_srai_epi32(all, BITS);
}

/* ---- horizontal: a pixel of two rows at a time ----------------------------------------------- */

static inline __m256i load_two(const uint8_t *a, const uint8_t *b)
{
    __m256i two = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)a));
    return _mm256_inserti128_si256(two, _mm_loadu_si128((const __m128i *)(const void *)b), 1);
}

static inline void pixel_run(const int32_t *taps, int n_groups, const uint8_t *const rows[4],
                             ptrdiff_t start, uint8_t *out)
{
    const __m256i colours = _mm256_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1,
                                             0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
    struct sums ab = no_sums(), cd = ab;
    for (int g = 0; g < n_groups; g++, taps += GROUP, start += 3 * GROUP) {
        ab =
            add(ab, _mm256_shuffle_epi8(load_two(rows[0] + start, rows[1] + start), colours), taps);
        cd =
            add(cd, _mm256_shuffle_epi8(load_two(rows[2] + start, rows[3] + start), colours), taps);
    }
    /* Lanes: the colours of rows 0 and 2, those of rows 1 and 3. */
    __m256i words = _mm256_packs_epi32(whole(ab), whole(cd));
    __m256i bytes = _mm256_packus_epi16(words, words);
    __m128i pairs =
        _mm_unpacklo_epi8(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    const __m128i weave = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_shuffle_epi8(pairs, weave));
}

static void horizontal(const uint8_t *const *rows, int n_quads,
                       const struct tdmi_resize_weights *weights, uint8_t *quads,
                       size_t stride_bytes)
{
    const ptrdiff_t n_taps = (ptrdiff_t)GROUP * weights->n_groups;
    for (int q = 0; q < n_quads; q++, rows += 4, quads += stride_bytes)
        for (int x = 0; x < weights->n_outputs; x++)
            pixel_run(weights->taps + n_taps * x, weights->n_groups, rows,
                      3 * (ptrdiff_t)weights->spans[x].first, quads + 12 * x);
}

/* ---- vertical: eight bytes of four rows in a load -------------------------------------------- */

static inline __m256i column_run(const uint8_t *quads, size_t stride_bytes, const int32_t *taps,
                                 int n_groups)
{
    struct sums a = no_sums(), b = a, c = a, d = a;
    for (int g = 0; g < n_groups; g++, taps += GROUP, quads += stride_bytes) {
        const __m256i *from = (const __m256i *)(const void *)quads;
        a = add(a, _mm256_loadu_si256(from), taps);
        b = add(b, _mm256_loadu_si256(from + 1), taps);
        c = add(c, _mm256_loadu_si256(from + 2), taps);
        d = add(d, _mm256_loadu_si256(from + 3), taps);
    }
    __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(whole(a), whole(b)),
                                        _mm256_packs_epi32(whole(c), whole(d)));
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static void vertical(const uint8_t *quads, size_t stride_bytes, const int32_t *taps, int n_groups,
                     size_t n, uint8_t *out)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        _mm256_storeu_si256((__m256i *)(void *)(out + i),
                            column_run(quads + 4 * i, stride_bytes, taps, n_groups));
    if (i < n) {
        uint8_t rest[32];
        _mm256_storeu_si256((__m256i *)(void *)rest,
                            column_run(quads + 4 * i, stride_bytes, taps, n_groups));
        memcpy(out + i, rest, n - i);
    }
}

const struct tdmi_resize_kernels tdmi_resize_avx2 = {"avx2", pack,       NULL,
                                                     NULL,   horizontal, vertical};
