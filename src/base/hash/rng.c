/*
 * Philox4x32-10 after Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
 * (SC 2011): ten rounds of two 32x32 -> 64 bit products, the key bumped by Weyl constants between.
 */
#include "base/hash/rng.h"

void tdmi_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t left = (uint64_t)0xD2511F53u * c0;
        uint64_t right = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(right >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(left >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)right;
        c3 = (uint32_t)left;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The finaliser of SplitMix64, a bijection: distinct inputs keep distinct keys. */
static uint64_t mixed(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

tdmi_rng tdmi_rng_at(uint64_t seed, enum tdmi_rng_purpose purpose, uint32_t epoch, uint64_t sample)
{
    uint64_t key = mixed(seed ^ ((uint64_t)purpose << 56));
    return (tdmi_rng){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {0, epoch, (uint32_t)sample, (uint32_t)(sample >> 32)},
        .used = 4,
    };
}

uint32_t tdmi_rng_u32(tdmi_rng *rng)
{
    if (rng->used >= 4) {
        tdmi_philox(rng->counter, rng->key, rng->block);
        rng->counter[0]++;
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

/* Lemire, "Fast random integer generation in an interval" (2019): the high word of a product, with
 * the few low words that would be counted once too often drawn again. */
uint32_t tdmi_rng_below(tdmi_rng *rng, uint32_t bound)
{
    uint64_t product = (uint64_t)tdmi_rng_u32(rng) * bound;
    if ((uint32_t)product < bound) {
        uint32_t surplus = (0u - bound) % bound; /* 2^32 mod bound */
        while ((uint32_t)product < surplus)
            product = (uint64_t)tdmi_rng_u32(rng) * bound;
    }
    return (uint32_t)(product >> 32);
}

float tdmi_rng_unit(tdmi_rng *rng)
{
    return (float)(tdmi_rng_u32(rng) >> 8) * 0x1p-24f;
}

float tdmi_rng_uniform(tdmi_rng *rng, float low, float high)
{
    return low + (high - low) * tdmi_rng_unit(rng);
}
