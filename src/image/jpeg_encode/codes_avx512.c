/*
 * Huffman coding with AVX-512 (BW, VBMI and VBMI2), where tables lie in registers: the values of a
 * block that are not zero are brought together, 32 of them find their codes at once, and four by
 * four their bits are joined. What comes of it, a number for each four, is put into the window one
 * after the other:
 *
 *     values ──compress──► places, values ──look up──► codes ──join──► fours ──put──► bytes
 *
 * Where a block ends depends on nothing but how far the list of fours has grown, so that neither
 * loop has a branch that a processor would have to guess.
 */
#include "image/jpeg_encode/stream.h"
#include <immintrin.h>

enum {
    LANES = 32,     /* values at a time */
    MOST_BITS = 57, /* that the window takes at once */
    MOST_A_BLOCK = 1 + TDMI_JPEG_BLOCK / 2,
    ENOUGH = 192, /* fours that are put at once, about */
    ROOM = ENOUGH + TDMI_JPEG_MOST_SLOTS * MOST_A_BLOCK + LANES
};

struct list {
    uint64_t bits[ROOM], n_bits[ROOM];
};

static const uint8_t places[TDMI_JPEG_BLOCK] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* ---- what is known before -------------------------------------------------------------------- */

#define FOUR(x) x, x, x, x
#define SIXTEEN(x) FOUR(x), FOUR(x), FOUR(x), FOUR(x)
#define BITS(more)                                                                            \
    1 + (more), 2 + (more), 2 + (more), FOUR(3 + (more)), FOUR(4 + (more)), FOUR(4 + (more)), \
        SIXTEEN(5 + (more)), SIXTEEN(6 + (more)), SIXTEEN(6 + (more))
/* How many bits numbers take: those below 128, and by what is above the lowest six bits. */
static const uint8_t sizes_below[2 * TDMI_JPEG_BLOCK] = {0, BITS(0), FOUR(SIXTEEN(7))};
static const uint8_t sizes_above[TDMI_JPEG_BLOCK] = {0, BITS(6)};

/* What stays in registers from block to block; a compiler that saw the numbers would rather make
 * them anew each time. */
struct constants {
    __m512i places, one_less, sizes[2];
    __m512i words_of_1, words_of_16, words_of_64, words_of_127, halves_of_32;
    __m512i longest, behind, most_bits;
    __mmask64 words; /* every other one; of halves too */
};

TDMI_INLINE __m512i opaque(__m512i x)
{
    __asm__("" : "+v"(x));
    return x;
}

TDMI_INLINE struct constants constants_make(void)
{
    const __m512i all = _mm512_loadu_si512(places);
    __mmask64 words = 0x5555555555555555;
    __asm__("" : "+k"(words));
    return (struct constants){
        .places = opaque(all),
        .one_less = opaque(_mm512_sub_epi8(all, _mm512_set1_epi8(1))),
        .sizes = {opaque(_mm512_loadu_si512(sizes_below)),
                  opaque(_mm512_loadu_si512(sizes_below + TDMI_JPEG_BLOCK))},
        .words_of_1 = opaque(_mm512_set1_epi16(1)),
        .words_of_16 = opaque(_mm512_set1_epi16(16)),
        .words_of_64 = opaque(_mm512_set1_epi16(64)),
        .words_of_127 = opaque(_mm512_set1_epi16(127)),
        .halves_of_32 = opaque(_mm512_set1_epi32(32)),
        .longest = opaque(_mm512_set1_epi8(TDMI_JPEG_LONGEST_STEP)),
        .behind = opaque(_mm512_set1_epi8(2)),
        .most_bits = opaque(_mm512_set1_epi64(MOST_BITS)),
        .words = words,
    };
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Values whose codes are found. */
struct codes {
    __m512i codes, sizes, lengths; /* a length is that of the code and of the value's bits */
};

/* Where a code stands in its table; only the lowest bits are looked at. */
TDMI_INLINE __m512i index_of(const struct constants *constants, __m512i sizes, __m512i steps)
{
    return _mm512_add_epi16(_mm512_slli_epi16(sizes, 4),
                            _mm512_sub_epi16(steps, constants->words_of_1));
}

TDMI_INLINE __m512i found(const struct constants *constants, const __m512i *table, __m512i at)
{
    return _mm512_mask_mov_epi16(_mm512_permutex2var_epi16(table[0], at, table[1]),
                                 _mm512_test_epi16_mask(at, constants->words_of_64),
                                 _mm512_permutex2var_epi16(table[2], at, table[3]));
}

/* Values below 128. */
TDMI_INLINE struct codes look_up(const struct constants *constants, __m512i numbers, __m512i steps,
                                 const struct tdmi_jpeg_coding *coding)
{
    const __m512i *lengths = (const __m512i *)coding->lengths;
    const __m512i sizes = _mm512_maskz_permutex2var_epi8(constants->words, constants->sizes[0],
                                                         numbers, constants->sizes[1]);
    const __m512i at = index_of(constants, sizes, steps);
    return (struct codes){
        found(constants, (const __m512i *)coding->codes, at), sizes,
        _mm512_maskz_permutex2var_epi8(constants->words, lengths[0], at, lengths[1])};
}

/* Any values. */
static __attribute__((noinline)) struct codes look_further(__m512i numbers, __m512i steps,
                                                           const struct tdmi_jpeg_coding *coding)
{
    const struct constants its = constants_make(), *constants = &its;
    const __m512i *table = (const __m512i *)coding->codes;
    const __m512i *lengths = (const __m512i *)coding->lengths;
    const __m512i below =
        _mm512_maskz_permutexvar_epi8(constants->words, numbers, constants->sizes[0]);
    const __m512i above = _mm512_maskz_permutexvar_epi8(
        constants->words, _mm512_srli_epi16(numbers, 6), _mm512_loadu_si512(sizes_above));
    const __m512i sizes = _mm512_max_epi16(below, above);
    const __m512i at = index_of(constants, sizes, steps);
    const __mmask32 is_last = _mm512_test_epi16_mask(at, _mm512_set1_epi16(128));
    return (struct codes){
        .codes = _mm512_mask_mov_epi16(found(constants, table, at), is_last,
                                       _mm512_permutex2var_epi16(table[4], at, table[5])),
        .sizes = sizes,
        .lengths = _mm512_mask_mov_epi16(
            _mm512_maskz_permutex2var_epi8(constants->words, lengths[0], at, lengths[1]), is_last,
            _mm512_maskz_permutexvar_epi8(constants->words, at, lengths[2]))};
}

/* ---- joining --------------------------------------------------------------------------------- */

TDMI_INLINE __m512i even_words(const struct constants *constants, __m512i x)
{
    return _mm512_maskz_mov_epi16((__mmask32)constants->words, x);
}

TDMI_INLINE __m512i odd_words(__m512i x)
{
    return _mm512_srli_epi32(x, 16);
}

TDMI_INLINE __m512i even_halves(const struct constants *constants, __m512i x)
{
    return _mm512_maskz_mov_epi32((__mmask16)constants->words, x);
}

TDMI_INLINE __m512i odd_halves(__m512i x)
{
    return _mm512_srli_epi64(x, 32);
}

/* Fours that are too long go by twos. What adds to the list returns how far it then goes: a number
 * that has to stay in a register. */
static __attribute__((noinline)) size_t add_twos(struct list *list, size_t end, __m512i first,
                                                 __m512i n_first, __m512i second, __m512i n_second,
                                                 int n)
{
    uint64_t bits[2][8], n_bits[2][8];
    _mm512_storeu_si512(bits[0], first);
    _mm512_storeu_si512(bits[1], second);
    _mm512_storeu_si512(n_bits[0], n_first);
    _mm512_storeu_si512(n_bits[1], n_second);
    for (int i = 0; i < (n + 1) / 2; i++, end++) {
        list->bits[end] = bits[i % 2][i / 2];
        list->n_bits[end] = n_bits[i % 2][i / 2];
    }
    return end;
}

/* n of the lanes count; the others have no bits. What comes second in a join lies at the upper end,
 * so that a shift of both at once draws it in; how far is asked of its lowest bits alone. */
TDMI_INLINE size_t add(const struct constants *constants, struct list *list, size_t end,
                       __m512i values, struct codes codes, int n)
{
    /* A negative value stands as the lowest bits of the number below it. */
    const __m512i bits = _mm512_add_epi16(values, _mm512_srai_epi16(values, 15));
    const __m512i upper =
        _mm512_sllv_epi16(bits, _mm512_sub_epi16(constants->words_of_16, codes.sizes));
    const __m512i even = _mm512_shldv_epi32(even_words(constants, codes.codes),
                                            _mm512_slli_epi32(upper, 16), codes.sizes);
    const __m512i odd = _mm512_shldv_epi32(odd_words(codes.codes), upper, odd_words(codes.sizes));
    const __m512i n_odd = odd_words(codes.lengths);
    const __m512i upper_odd =
        _mm512_sllv_epi32(odd, _mm512_sub_epi32(constants->halves_of_32, n_odd));
    const __m512i first =
        _mm512_shldv_epi64(even_halves(constants, even), _mm512_slli_epi64(upper_odd, 32), n_odd);
    const __m512i second = _mm512_shldv_epi64(odd_halves(even), upper_odd, odd_halves(n_odd));
    const __m512i n_second = odd_halves(_mm512_madd_epi16(codes.lengths, constants->words_of_1));
    const __m512i n_all = _mm512_sad_epu8(codes.lengths, _mm512_setzero_si512());
    if (__builtin_expect(_mm512_cmpgt_epi64_mask(n_all, constants->most_bits) != 0, 0))
        return add_twos(list, end, first, _mm512_sub_epi64(n_all, n_second), second, n_second, n);
    _mm512_storeu_si512(list->bits + end,
                        _mm512_or_si512(_mm512_sllv_epi64(first, n_second), second));
    _mm512_storeu_si512(list->n_bits + end, n_all);
    return end + ((size_t)n + 3) / 4;
}

/* n of 32 places and steps. */
TDMI_INLINE size_t add_lanes(const struct constants *constants, struct list *list, size_t end,
                             const struct tdmi_jpeg_values *block, __m256i at, __m256i steps,
                             const struct tdmi_jpeg_coding *coding, int n)
{
    /* Lanes that do not count look at the mean, which is no value here. */
    const __m512i low = _mm512_maskz_loadu_epi16(~(__mmask32)1, block->values);
    const __m512i high = _mm512_loadu_si512(block->values + LANES);
    const __m512i values = _mm512_permutex2var_epi16(low, _mm512_cvtepu8_epi16(at), high);
    const __m512i numbers = _mm512_abs_epi16(values), apart = _mm512_cvtepu8_epi16(steps);
    if (__builtin_expect(_mm512_cmpgt_epi16_mask(numbers, constants->words_of_127) != 0, 0))
        return add(constants, list, end, values, look_further(numbers, apart, coding), n);
    return add(constants, list, end, values, look_up(constants, numbers, apart, coding), n);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Sixteen zeros in a row have a code of their own, which stands at the last of them. */
static __attribute__((noinline)) uint64_t with_zeros(uint64_t set)
{
    uint64_t all = set;
    for (int before = 0; set != 0; set &= set - 1) {
        const int place = __builtin_ctzll(set);
        for (; place - before > TDMI_JPEG_LONGEST_STEP; all |= (uint64_t)1 << before)
            before += TDMI_JPEG_LONGEST_STEP;
        before = place;
    }
    return all;
}

/* Where the values are, and how far each is from the one before. Behind them are steps of
 * nothing: a value of no bits at that distance has no code. */
TDMI_INLINE __m512i steps_of(const struct constants *constants, uint64_t set, int n, __m512i *at)
{
    *at = _mm512_maskz_compress_epi8(set, constants->places);
    const __m512i before = _mm512_maskz_permutexvar_epi8(~(__mmask64)1, constants->one_less, *at);
    return _mm512_mask_sub_epi8(constants->behind, ~(__mmask64)0 >> (TDMI_JPEG_BLOCK - n), *at,
                                before);
}

TDMI_INLINE size_t add_block(const struct constants *constants, struct list *list, size_t end,
                             const struct tdmi_jpeg_slot *slot,
                             const struct tdmi_jpeg_values *block)
{
    const struct tdmi_jpeg_item mean = tdmi_jpeg_take_mean(block, slot->coding, slot->mean);
    list->bits[end] = mean.bits;
    list->n_bits[end++] = mean.n;
    /* The end stands as a value of no bits behind the last one, unless that is the very last. */
    uint64_t set = block->set | 1;
    set = (set | (uint64_t)2 << (63 - __builtin_clzll(set))) - 1;
    int n = __builtin_popcountll(set);
    __m512i at, steps = steps_of(constants, set, n, &at);
    if (__builtin_expect(_mm512_cmpgt_epu8_mask(steps, constants->longest) != 0, 0)) {
        set = with_zeros(set);
        n = __builtin_popcountll(set);
        steps = steps_of(constants, set, n, &at);
    }
    end = add_lanes(constants, list, end, block, _mm512_castsi512_si256(at),
                    _mm512_castsi512_si256(steps), slot->coding, n < LANES ? n : LANES);
    if (n > LANES)
        end = add_lanes(constants, list, end, block, _mm512_extracti64x4_epi64(at, 1),
                        _mm512_extracti64x4_epi64(steps, 1), slot->coding, n - LANES);
    return end;
}

TDMI_INLINE void put_all(struct tdmi_jpeg_sink *sink, const struct list *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tdmi_jpeg_put(sink, (struct tdmi_jpeg_item){list->bits[i], (unsigned)list->n_bits[i]});
}

__attribute__((target("bmi,bmi2,popcnt,lzcnt"))) void
tdmi_jpeg_write_code_avx512(struct tdmi_jpeg_sink *sink, const struct tdmi_jpeg_slot *slots,
                            int n_slots, int n)
{
    struct tdmi_jpeg_sink ours = *sink; /* so that it can stay in registers */
    const struct constants constants = constants_make();
    struct list list;
    size_t end = 0;
    for (ptrdiff_t mcu = 0; mcu < n; mcu++) {
        for (const struct tdmi_jpeg_slot *slot = slots; slot < slots + n_slots; slot++)
            end = add_block(&constants, &list, end, slot, slot->first + mcu * slot->step);
        if (end >= ENOUGH || mcu == n - 1) {
            put_all(&ours, &list, end);
            end = 0;
        }
    }
    *sink = ours;
}
