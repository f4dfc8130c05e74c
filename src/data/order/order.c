/*
 * The order of an epoch as a function instead of a table. A Feistel network permutes the numbers
 * of b bits, b being just enough for n; a result at or above n is put in again until it falls
 * below ("cycle walking"), which keeps the map one to one and takes fewer than two turns on
 * average. Unequal halves let b be odd, so the power of two is never more than twice n.
 *
 *     left (a bits)   right (b bits)
 *         │               │
 *         ⊕◄── mix(right + key of the round), cut to the width of left
 *          ╲             ╱
 *           ╲───────────╱   then the halves change places
 *
 * The keys are the SplitMix64 stream that starts at mix(seed, epoch). Philox in the rounds would
 * do as well, at ten times the price: an epoch of tiny images would feel it.
 */
#include "data/order/order.h"

#include "base/hash/rng.h"
#include <assert.h>

/* Far more rounds than mixing a large n needs: on a few bits the first ones mix little. Even, so
 * that the halves end with the widths they began with. */
enum { ROUNDS = 12, MIN_BITS = 6 };

#define GOLDEN_GAMMA UINT64_C(0x9E3779B97F4A7C15)

/* The finaliser of SplitMix64 (Steele, Lea and Flood, 2014; constants of Stafford's mix 13). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

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

static uint64_t permute(const uint64_t keys[ROUNDS], uint64_t value, int bits)
{
    int left_bits = bits / 2, right_bits = bits - left_bits;
    uint64_t left = value >> right_bits, right = low_bits(value, right_bits);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t mixed = left ^ low_bits(mix(right + keys[round]), left_bits);
        left = right;
        right = mixed;
        int exchanged = left_bits;
        left_bits = right_bits;
        right_bits = exchanged;
    }
    return left << right_bits | right;
}

/* Streams other than FULL bend the state once more, so FULL stays what it always was. */
static uint64_t state_of(struct tdmi_order_key key)
{
    uint64_t state = mix(key.seed ^ (uint64_t)TDMI_RNG_ORDER << 56);
    state = mix(state + key.epoch * GOLDEN_GAMMA);
    if (key.stream == TDMI_ORDER_STREAM_FULL)
        return state;
    return mix(state ^ mix(((uint64_t)key.stream << 56) + key.index));
}

int64_t tdmi_order_permute(struct tdmi_order_key key, int64_t n, int64_t value)
{
    assert(n >= 1 && n <= (int64_t)1 << 62 && value >= 0 && value < n);
    if (n == 1)
        return value;
    uint64_t keys[ROUNDS];
    uint64_t state = state_of(key);
    for (int round = 0; round < ROUNDS; round++)
        keys[round] = mix(state += GOLDEN_GAMMA);
    int bits = bits_for(n);
    uint64_t permuted = (uint64_t)value;
    do
        permuted = permute(keys, permuted, bits);
    while (permuted >= (uint64_t)n);
    return (int64_t)permuted;
}

int64_t tdmi_order_at(const tdmi_order *order, uint32_t epoch, int64_t position)
{
    assert(order->n >= 1 && position >= 0 && position < order->n);
    int64_t repeat;
    if (order->kind == TDMI_ORDER_BALANCED)
        return tdmi_order_balanced_at(order, epoch, position, &repeat);
    if (!order->is_shuffled)
        return position;
    if (order->kind == TDMI_ORDER_GROUPED)
        return tdmi_order_grouped_at(order, epoch, position);
    return tdmi_order_permute((struct tdmi_order_key){.seed = order->seed, .epoch = epoch},
                              order->n, position);
}

int64_t tdmi_order_repeat(const tdmi_order *order, uint32_t epoch, int64_t position)
{
    int64_t repeat = 0;
    if (order->kind == TDMI_ORDER_BALANCED)
        tdmi_order_balanced_at(order, epoch, position, &repeat);
    return repeat;
}

uint32_t tdmi_order_view(const tdmi_order *order, uint32_t epoch, int64_t position, uint32_t n)
{
    if (order->kind != TDMI_ORDER_BALANCED)
        return epoch % n;
    return (uint32_t)(tdmi_order_repeat(order, epoch, position) % (int64_t)n);
}

void tdmi_order_release(tdmi_order *order)
{
    if (order == NULL)
        return;
    tdmi_order_groups_free(order->groups);
    tdmi_order_classes_free(order->classes);
    order->groups = NULL;
    order->classes = NULL;
}
