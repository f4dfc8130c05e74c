/*
 * Random numbers as a pure function: Philox4x32-10 (Salmon et al., 2011) keyed by
 * (seed, purpose) and counted by (epoch, sample, draw). No state is shared, so threads, ranks and
 * restarts cannot change what a sample gets.
 */
#pragma once

#include <stdint.h>

/* Purposes of the numbers; streams of different purposes are independent. Values are part of the
 * file format (a resumed run must draw the same), so add at the end and never renumber. */
enum tdmi_rng_purpose {
    TDMI_RNG_INIT = 1, /* weights: epoch 0, sample = parameter index */
    TDMI_RNG_ORDER = 2,
    TDMI_RNG_SPLIT = 3,
    TDMI_RNG_AUGMENT = 4,
    TDMI_RNG_DROPOUT = 5,
    TDMI_RNG_SYNTH = 6,
    TDMI_RNG_TEST = 7,
    TDMI_RNG_RECHECK = 8, /* which stored rows are made again */
    TDMI_RNG_VIEW = 9     /* changes of a view: epoch = its number, sample = the content */
};

typedef struct tdmi_rng {
    uint32_t key[2];
    uint32_t counter[4]; /* draw block, epoch, sample low, sample high */
    uint32_t block[4];
    int used; /* words of block already handed out; 4 forces the next block */
} tdmi_rng;

/* The bare block function, for the published test vectors. */
void tdmi_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The stream of one (seed, purpose, epoch, sample). This layout is part of the file format:
 *
 *   key      mix(seed XOR purpose << 56), key[0] its low and key[1] its high 32 bits, where mix is
 *            the finaliser of SplitMix64: z ^= z >> 30; z *= 0xBF58476D1CE4E5B9; z ^= z >> 27;
 *            z *= 0x94D049BB133111EB; z ^= z >> 31. It is a bijection, so for seeds below 2^56 no
 *            two (seed, purpose) share a key.
 *   counter  [0] the block of draws, from 0; [1] epoch; [2] sample, low 32 bits; [3] sample, high.
 *
 * Draws are the four words of block 0, then of block 1, and so on: a stream repeats after 2^34. */
tdmi_rng tdmi_rng_at(uint64_t seed, enum tdmi_rng_purpose purpose, uint32_t epoch, uint64_t sample);
uint32_t tdmi_rng_u32(tdmi_rng *rng);
/* Unbiased in [0, bound); bound >= 1. */
uint32_t tdmi_rng_below(tdmi_rng *rng, uint32_t bound);
/* 24 random bits in [0, 1): exact in f32 and the same on every machine. */
float tdmi_rng_unit(tdmi_rng *rng);
/* low + (high - low) * unit, rounded once per operation. */
float tdmi_rng_uniform(tdmi_rng *rng, float low, float high);
