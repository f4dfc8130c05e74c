/*
 * Huffman decoding of a run of MCUs, compiled for the instruction set of the file that includes it.
 *
 * The next bits are the highest of a 64-bit window, of which at least 56 count after a refill. The
 * way from one code to the next is short: look the window's first bits up, shift by the bits of the
 * entry. The value is taken out beside it, without a branch. Three entries of the table fit into
 * one refill; codes that it does not hold refill for themselves.
 *
 * Reading runs on behind a segment into the next one, so that no check is needed for each bit;
 * what was read is counted at the end of each block and, exactly, at the end of the segment.
 */
#pragma once

#include "image/jpeg/kernels.h"
#include <string.h>

#define TDMI_INLINE static inline __attribute__((always_inline))

/* Where the coefficients of the zigzag lie in a pair of blocks, for those behind the last one too:
 * the entry that ends a block writes a zero over the last coefficient, which is one. */
TDMI_INLINE const uint8_t *tdmi_jpeg_places(void)
{
#define EACH(row, column) (row * 16 + column)
#define LAST16 119, 119, 119, 119, 119, 119, 119, 119, 119, 119, 119, 119, 119, 119, 119, 119
    static const uint8_t places[TDMI_JPEG_BLOCK + 16 + TDMI_JPEG_END_STEP] = {
        EACH(0, 0), EACH(0, 1), EACH(1, 0), EACH(2, 0), EACH(1, 1), EACH(0, 2), EACH(0, 3),
        EACH(1, 2), EACH(2, 1), EACH(3, 0), EACH(4, 0), EACH(3, 1), EACH(2, 2), EACH(1, 3),
        EACH(0, 4), EACH(0, 5), EACH(1, 4), EACH(2, 3), EACH(3, 2), EACH(4, 1), EACH(5, 0),
        EACH(6, 0), EACH(5, 1), EACH(4, 2), EACH(3, 3), EACH(2, 4), EACH(1, 5), EACH(0, 6),
        EACH(0, 7), EACH(1, 6), EACH(2, 5), EACH(3, 4), EACH(4, 3), EACH(5, 2), EACH(6, 1),
        EACH(7, 0), EACH(7, 1), EACH(6, 2), EACH(5, 3), EACH(4, 4), EACH(3, 5), EACH(2, 6),
        EACH(1, 7), EACH(2, 7), EACH(3, 6), EACH(4, 5), EACH(5, 4), EACH(6, 3), EACH(7, 2),
        EACH(7, 3), EACH(6, 4), EACH(5, 5), EACH(4, 6), EACH(3, 7), EACH(4, 7), EACH(5, 6),
        EACH(6, 5), EACH(7, 4), EACH(7, 5), EACH(6, 6), EACH(5, 7), EACH(6, 7), EACH(7, 6),
        EACH(7, 7), LAST16,     LAST16,     LAST16,     LAST16,     LAST16,     LAST16,
    };
#undef EACH
#undef LAST16
    return places;
}

/* n counts in its lowest 6 bits; what stands above them is of no account. */
struct tdmi_jpeg_bits {
    uint64_t window, n;
    const uint8_t *at;
};

TDMI_INLINE void tdmi_jpeg_refill(struct tdmi_jpeg_bits *bits)
{
    uint64_t next;
    memcpy(&next, bits->at, sizeof next);
    bits->window |= __builtin_bswap64(next) >> (bits->n & 63);
    bits->at += ((bits->n & 63) ^ 63) >> 3;
    bits->n |= 56;
}

/* The value behind a code: `size` bits that end where the entry ends. A value whose first bit is 0
 * is negative. */
TDMI_INLINE int64_t tdmi_jpeg_value(uint64_t window, uint32_t entry)
{
    const uint64_t size = entry >> TDMI_JPEG_SIZE_AT & 63;
    const int64_t above = -1LL * (1LL << size);
    const int64_t raw = (int64_t)(window >> (-(uint64_t)entry & 63)) & ~above;
    const int64_t is_negative = (2 * raw + above) >> 63;
    return raw + (is_negative & (above + 1));
}

/* An entry that the fast table lacks; 0: there is none. */
static __attribute__((noinline)) uint32_t tdmi_jpeg_search(uint64_t window,
                                                           const struct tdmi_jpeg_codes *codes)
{
    const uint32_t next = (uint32_t)(window >> (64 - TDMI_JPEG_CODE_LENGTHS));
    int length = 1;
    while (next >= codes->limit[length])
        length++;
    if (length > TDMI_JPEG_CODE_LENGTHS)
        return 0;
    return codes
        ->entries[codes->first[length] + (int32_t)(next >> (TDMI_JPEG_CODE_LENGTHS - length))];
}

TDMI_INLINE void tdmi_jpeg_skip(struct tdmi_jpeg_bits *bits, uint32_t entry)
{
    bits->window <<= entry & 63;
    bits->n -= entry;
}

/* The entry of the next code, its bits still in the window, which has room for it and, when it is
 * one of the fast, for two more. */
TDMI_INLINE uint32_t tdmi_jpeg_look_up(struct tdmi_jpeg_bits *bits,
                                       const struct tdmi_jpeg_codes *codes)
{
    return codes->fast[bits->window >> (64 - TDMI_JPEG_FAST)];
}

/* The entries of `pairs`, from those of `fast`. */
static void tdmi_jpeg_make_pairs(struct tdmi_jpeg_codes *codes)
{
    enum { N = 1 << TDMI_JPEG_PAIRED };
    uint32_t single[N]; /* value << 16 | step << 8 | bits; 0: of too many bits */
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t entry = codes->fast[i >> (TDMI_JPEG_PAIRED - TDMI_JPEG_FAST)];
        const uint32_t n_bits = entry & 63, size = entry >> TDMI_JPEG_SIZE_AT & 63;
        const int32_t above = -1 * (1 << size);
        const int32_t raw = (int32_t)(i >> ((TDMI_JPEG_PAIRED - n_bits) & 31)) & ~above;
        const int32_t value = raw + (2 * raw + above < 0 ? above + 1 : 0);
        const bool is_whole = entry != 0 && n_bits <= TDMI_JPEG_PAIRED;
        single[i] = is_whole ? (uint32_t)value << 16 | entry >> TDMI_JPEG_STEP_AT << 8 | n_bits : 0;
    }
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t first = single[i], n_bits = first & 63, step = first >> 8 & 255;
        const uint32_t then = single[i << n_bits & (N - 1)];
        const bool is_pair = first != 0 && step != TDMI_JPEG_END_STEP && then != 0 &&
                             n_bits + (then & 63) <= TDMI_JPEG_PAIRED;
        const uint32_t second = is_pair ? then : first >> 16 << 16;
        const uint32_t low = first + (second & 63);
        const uint32_t high = second >> 16 << 16 | n_bits << 8 | (second >> 8 & 255);
        codes->pairs[i] = (uint64_t)high << 32 | low;
    }
}

struct tdmi_jpeg_place {
    uint32_t k;         /* of the last coefficient … */
    uint64_t pair;      /* … the entry that it came from, 0 for one of `fast` … */
    uint64_t window, n; /* … and the bits before */
};

/* One coefficient or two behind place->k; what is left in the window allows two times more. false:
 * no such code. */
TDMI_INLINE bool tdmi_jpeg_step(struct tdmi_jpeg_bits *bits, const struct tdmi_jpeg_codes *codes,
                                const uint8_t *places, struct tdmi_jpeg_place *place,
                                int16_t *block)
{
    const uint64_t pair = codes->pairs[bits->window >> (64 - TDMI_JPEG_PAIRED)];
    place->window = bits->window;
    place->n = bits->n;
    place->pair = pair;
    if (__builtin_expect(pair != 0, 1)) {
        bits->window <<= pair & 63;
        bits->n -= pair;
        place->k += pair >> TDMI_JPEG_STEP_1 & 255;
        block[places[place->k]] = (int16_t)(pair >> TDMI_JPEG_VALUE_1);
        place->k += pair >> TDMI_JPEG_STEP_2 & 255;
        block[places[place->k]] = (int16_t)(pair >> TDMI_JPEG_VALUE_2);
        return true;
    }
    uint32_t entry = tdmi_jpeg_look_up(bits, codes);
    const bool is_rare = entry == 0;
    if (__builtin_expect(is_rare, 0)) {
        tdmi_jpeg_refill(bits);
        entry = tdmi_jpeg_search(bits->window, codes);
        if (entry == 0)
            return false;
    }
    place->k += entry >> TDMI_JPEG_STEP_AT;
    block[places[place->k]] = (int16_t)tdmi_jpeg_value(bits->window, entry);
    tdmi_jpeg_skip(bits, entry);
    if (__builtin_expect(is_rare, 0))
        tdmi_jpeg_refill(bits);
    return true;
}

/* Behind the last coefficient: which one it was, or -1 where it lies behind the block. When the
 * first of a pair was the last one, the second belongs to the next block. */
TDMI_INLINE int tdmi_jpeg_last(struct tdmi_jpeg_bits *bits, const struct tdmi_jpeg_place *place,
                               const uint8_t *places, int16_t *block)
{
    enum { END = TDMI_JPEG_BLOCK - 1 };
    const uint32_t k = place->k - (uint32_t)(place->pair >> TDMI_JPEG_STEP_2 & 255);
    if (place->k >= TDMI_JPEG_END_STEP && k != END)
        return k < END || k >= TDMI_JPEG_END_STEP ? (int)place->k - TDMI_JPEG_END_STEP : -1;
    if (place->k == END)
        return END;
    if (k != END)
        return -1;
    const uint64_t n_bits = place->pair >> TDMI_JPEG_BITS_1 & 255;
    bits->window = place->window << n_bits;
    bits->n = place->n - n_bits;
    block[places[END]] = (int16_t)(place->pair >> TDMI_JPEG_VALUE_1);
    return END;
}

/* A block while it is decoded. */
struct tdmi_jpeg_work {
    struct tdmi_jpeg_bits bits;
    struct tdmi_jpeg_place place;
    int16_t *block;
};

/* Begins a block with its mean; two steps can follow. */
TDMI_INLINE bool tdmi_jpeg_begin(struct tdmi_jpeg_work *work, const struct tdmi_jpeg_codes *dc,
                                 int *mean)
{
    tdmi_jpeg_refill(&work->bits);
    uint32_t entry = tdmi_jpeg_look_up(&work->bits, dc);
    const bool is_rare = entry == 0;
    if (__builtin_expect(is_rare, 0)) {
        entry = tdmi_jpeg_search(work->bits.window, dc);
        if (entry == 0)
            return false;
    }
    *mean += (int)tdmi_jpeg_value(work->bits.window, entry);
    if (*mean != (int16_t)*mean)
        return false;
    work->block[0] = (int16_t)*mean;
    tdmi_jpeg_skip(&work->bits, entry);
    if (__builtin_expect(is_rare, 0))
        tdmi_jpeg_refill(&work->bits);
    return true;
}

TDMI_INLINE bool tdmi_jpeg_go_on(struct tdmi_jpeg_work *work, const struct tdmi_jpeg_codes *ac)
{
    return tdmi_jpeg_step(&work->bits, ac, tdmi_jpeg_places(), &work->place, work->block);
}

/* All that is left of a block; n steps are possible at once. */
TDMI_INLINE bool tdmi_jpeg_complete(struct tdmi_jpeg_work *work, const struct tdmi_jpeg_codes *ac,
                                    uint8_t *last)
{
    enum { END = TDMI_JPEG_BLOCK - 1 };
    while (work->place.k < END) {
        tdmi_jpeg_refill(&work->bits);
        if (!tdmi_jpeg_go_on(work, ac))
            return false;
        if (work->place.k >= END)
            break;
        if (!tdmi_jpeg_go_on(work, ac))
            return false;
        if (work->place.k >= END)
            break;
        if (!tdmi_jpeg_go_on(work, ac))
            return false;
    }
    const int found = tdmi_jpeg_last(&work->bits, &work->place, tdmi_jpeg_places(), work->block);
    *last = (uint8_t)found;
    return found >= 0;
}

/* One block; *last becomes the place of its last coefficient that is not zero, or a later one. */
TDMI_INLINE bool tdmi_jpeg_block(struct tdmi_jpeg_bits *bits, const struct tdmi_jpeg_codes *dc,
                                 const struct tdmi_jpeg_codes *ac, int *mean, int16_t *block,
                                 uint8_t *last)
{
    enum { END = TDMI_JPEG_BLOCK - 1 };
    struct tdmi_jpeg_work work = {.bits = *bits, .block = block};
    if (!tdmi_jpeg_begin(&work, dc, mean) || !tdmi_jpeg_go_on(&work, ac) ||
        (work.place.k < END && !tdmi_jpeg_go_on(&work, ac)) || !tdmi_jpeg_complete(&work, ac, last))
        return false;
    *bits = work.bits;
    return true;
}

/* Is one of the two behind its block? */
TDMI_INLINE bool tdmi_jpeg_has_ended(const struct tdmi_jpeg_work *a, const struct tdmi_jpeg_work *b)
{
    return (((a->place.k + 1) | (b->place.k + 1)) & ~(uint32_t)(TDMI_JPEG_BLOCK - 1)) != 0;
}

/* Decode two blocks of two segments, interleaved until one ends. */
TDMI_INLINE bool tdmi_jpeg_two_blocks(struct tdmi_jpeg_bits *first, struct tdmi_jpeg_bits *second,
                                      const struct tdmi_jpeg_codes *dc,
                                      const struct tdmi_jpeg_codes *ac, int *first_mean,
                                      int *second_mean, int16_t *first_block, int16_t *second_block,
                                      uint8_t *first_last, uint8_t *second_last)
{
    struct tdmi_jpeg_work a = {.bits = *first, .block = first_block};
    struct tdmi_jpeg_work b = {.bits = *second, .block = second_block};
    if (!tdmi_jpeg_begin(&a, dc, first_mean) || !tdmi_jpeg_begin(&b, dc, second_mean))
        return false;
    for (;;) {
        if (!tdmi_jpeg_go_on(&a, ac) || !tdmi_jpeg_go_on(&b, ac))
            return false;
        if (tdmi_jpeg_has_ended(&a, &b))
            break;
        if (!tdmi_jpeg_go_on(&a, ac) || !tdmi_jpeg_go_on(&b, ac))
            return false;
        if (tdmi_jpeg_has_ended(&a, &b))
            break;
        tdmi_jpeg_refill(&a.bits);
        tdmi_jpeg_refill(&b.bits);
        if (!tdmi_jpeg_go_on(&a, ac) || !tdmi_jpeg_go_on(&b, ac))
            return false;
        if (tdmi_jpeg_has_ended(&a, &b))
            break;
    }
    if (!tdmi_jpeg_complete(&a, ac, first_last) || !tdmi_jpeg_complete(&b, ac, second_last))
        return false;
    *first = a.bits;
    *second = b.bits;
    return true;
}
