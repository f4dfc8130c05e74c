/*
 * The order of an epoch as a function instead of a table. A Feistel network permutes the numbers
 * of b bits, b being just enough for n; a result at or above n is put in again until it falls
 * below ("cycle walking"), which keeps the map one to one and takes fewer than two turns on
 * average. Unequal halves let b be odd, so the power of two is never more than twice n.
 *
 *     left (a bits)   right (b bits)
 *         │               │
 *         ⊕◄── F(round, right)        F is one Philox draw keyed by (seed, epoch, round),
 *          ╲             ╱            cut to the width of left
 *           ╲───────────╱             then the halves change places
 */
#include "data/order.h"

#include "base/rng.h"
#include <assert.h>

/* Far more rounds than mixing a large n needs: on a few bits the first ones mix little. Even, so
 * that the halves end with the widths they began with. */
enum { ROUNDS = 12, MIN_BITS = 6 };

static int bits_for(int64_t n)
{
    int bits = MIN_BITS;
    while (((uint64_t)n - 1) >> bits != 0)
        bits++;
    return bits;
}

static uint64_t low_bits(uint64_t value, int bits)
{
    return value & (((uint64_t)1 << bits) - 1);
}

static uint64_t permute(uint64_t seed, uint32_t epoch, uint64_t value, int bits)
{
    int left_bits = bits / 2, right_bits = bits - left_bits;
    uint64_t left = value >> right_bits, right = low_bits(value, right_bits);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        /* right has at most 31 bits, so round and right share the counter without meeting. */
        tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_ORDER, epoch, round << 32 | right);
        uint64_t mixed = left ^ low_bits(tdmi_rng_u32(&rng), left_bits);
        left = right;
        right = mixed;
        int exchanged = left_bits;
        left_bits = right_bits;
        right_bits = exchanged;
    }
    return left << right_bits | right;
}

int64_t tdmi_order_at(const tdmi_order *order, uint32_t epoch, int64_t position)
{
    assert(order->n >= 1 && order->n <= (int64_t)1 << 62);
    assert(position >= 0 && position < order->n);
    if (!order->is_shuffled || order->n == 1)
        return position;
    int bits = bits_for(order->n);
    uint64_t value = (uint64_t)position;
    do
        value = permute(order->seed, epoch, value, bits);
    while (value >= (uint64_t)order->n);
    return (int64_t)value;
}
