/*
 * Huffman coding of MCUs, written once and compiled for each set of instructions by the kernels
 * that include it.
 *
 * A coefficient takes one look-up, by the zeros before it and by its size: an entry holds its code
 * and what makes the lowest bits of the value when the value is added. Two coefficients, 52 bits
 * at most, are joined before they go into the window; then eight bytes are written, whatever of
 * them is new, so that nothing asks whether the window is full. An 0xff gets its 0 later.
 */
#ifndef TANDEM_IMAGE_JPEG_WRITE_STREAM_H
#define TANDEM_IMAGE_JPEG_WRITE_STREAM_H

#include "image/jpeg_encode/kernels.h"
#include <string.h>

#define TDMI_INLINE static inline __attribute__((always_inline))

struct tdmi_jpeg_item {
    uint64_t bits;
    unsigned n;
};

/* At most 57 bits. */
TDMI_INLINE void tdmi_jpeg_put(struct tdmi_jpeg_sink *sink, struct tdmi_jpeg_item item)
{
    sink->window = sink->window << item.n | item.bits;
    sink->n_bits += item.n;
    const uint64_t window = sink->window << (-sink->n_bits & 63);
    const uint64_t next =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(window) : window;
    memcpy(sink->at, &next, sizeof next);
    sink->at += sink->n_bits / 8;
    sink->n_bits %= 8;
}

TDMI_INLINE struct tdmi_jpeg_item tdmi_jpeg_item_of(const struct tdmi_jpeg_entry *entry, int value)
{
    return (struct tdmi_jpeg_item){(uint32_t)value + entry->bits, entry->n};
}

TDMI_INLINE struct tdmi_jpeg_item tdmi_jpeg_join(struct tdmi_jpeg_item a, struct tdmi_jpeg_item b)
{
    return (struct tdmi_jpeg_item){a.bits << b.n | b.bits, a.n + b.n};
}

/* What is left of a block. */
struct tdmi_jpeg_rest {
    uint64_t set;
    uint64_t before; /* the key of the last coefficient that was taken, were its size 0 */
};

TDMI_INLINE struct tdmi_jpeg_item tdmi_jpeg_take(struct tdmi_jpeg_rest *rest,
                                                 const struct tdmi_jpeg_values *block,
                                                 const struct tdmi_jpeg_coding *coding)
{
    const uint64_t place = (uint64_t)__builtin_ctzll(rest->set);
    const struct tdmi_jpeg_entry *entry = &coding->ac[block->keys[place] - rest->before];
    rest->set &= rest->set - 1;
    rest->before = place * TDMI_JPEG_SIZES;
    return tdmi_jpeg_item_of(entry, block->values[place]);
}

TDMI_INLINE struct tdmi_jpeg_item tdmi_jpeg_take_mean(const struct tdmi_jpeg_values *block,
                                                      const struct tdmi_jpeg_coding *coding,
                                                      int *mean)
{
    const int difference = block->values[0] - *mean;
    const unsigned magnitude = (unsigned)(difference < 0 ? -difference : difference);
    const unsigned bits = 31 - (unsigned)__builtin_clz(2 * magnitude + 1);
    *mean = block->values[0];
    return tdmi_jpeg_item_of(&coding->dc[2 * bits + (difference < 0)], difference);
}

/* Any block: sixteen zeros and more before a coefficient take codes of their own. */
TDMI_INLINE void tdmi_jpeg_code_slowly(struct tdmi_jpeg_sink *sink,
                                       const struct tdmi_jpeg_values *block,
                                       const struct tdmi_jpeg_coding *coding, uint64_t set)
{
    enum { LONGEST = TDMI_JPEG_LONGEST_STEP * TDMI_JPEG_SIZES };
    struct tdmi_jpeg_rest rest = {set, 0};
    while (rest.set != 0) {
        const uint64_t place = (uint64_t)__builtin_ctzll(rest.set);
        for (; place * TDMI_JPEG_SIZES - rest.before > LONGEST; rest.before += LONGEST)
            tdmi_jpeg_put(sink, tdmi_jpeg_item_of(&coding->zeros, 0));
        tdmi_jpeg_put(sink, tdmi_jpeg_take(&rest, block, coding));
    }
}

/* Are there sixteen ones in a row? */
TDMI_INLINE bool tdmi_jpeg_has_sixteen(uint64_t ones)
{
    ones &= ones >> 1;
    ones &= ones >> 2;
    ones &= ones >> 4;
    return (ones & ones >> 8) != 0;
}

/* The end of the block is coded as if a coefficient of no bits stood behind the last one, which is
 * where its entry is found, and two places further stands one that is nothing at all: so a loop of
 * pairs has nothing to ask for on its way. */
TDMI_INLINE void tdmi_jpeg_code_block(struct tdmi_jpeg_sink *sink,
                                      const struct tdmi_jpeg_slot *slot,
                                      const struct tdmi_jpeg_values *block)
{
    const struct tdmi_jpeg_coding *coding = slot->coding;
    const struct tdmi_jpeg_item first = tdmi_jpeg_take_mean(block, coding, slot->mean);
    const uint64_t set = block->set | 1;
    const int last = 63 - __builtin_clzll(set);
    const uint64_t end = (uint64_t)2 << last, with_end = (set | end) - 1;
    if (__builtin_expect(tdmi_jpeg_has_sixteen((end - 1) & ~set) || last + 3 > 63, 0)) {
        tdmi_jpeg_put(sink, first);
        tdmi_jpeg_code_slowly(sink, block, coding, with_end);
        return;
    }
    const int n = __builtin_popcountll(with_end);
    struct tdmi_jpeg_rest rest = {with_end | end << 2, 0};
    tdmi_jpeg_put(sink, tdmi_jpeg_join(first, tdmi_jpeg_take(&rest, block, coding)));
    for (int i = n / 2; i > 0; i--) {
        const struct tdmi_jpeg_item a = tdmi_jpeg_take(&rest, block, coding);
        const struct tdmi_jpeg_item b = tdmi_jpeg_take(&rest, block, coding);
        tdmi_jpeg_put(sink, tdmi_jpeg_join(a, b));
    }
}

TDMI_INLINE void tdmi_jpeg_code_mcus(struct tdmi_jpeg_sink *sink,
                                     const struct tdmi_jpeg_slot *slots, int n_slots, int n)
{
    struct tdmi_jpeg_sink ours = *sink; /* so that it can stay in registers */
    for (ptrdiff_t mcu = 0; mcu < n; mcu++)
        for (const struct tdmi_jpeg_slot *slot = slots; slot < slots + n_slots; slot++)
            tdmi_jpeg_code_block(&ours, slot, slot->first + mcu * slot->step);
    *sink = ours;
}

#endif
