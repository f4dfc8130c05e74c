/*
 * XXH64 after its published specification (Yann Collet, xxhash_spec.md) and SHA-256 after FIPS
 * 180-4, both in the streaming form: whole stripes or blocks are taken from the input where it
 * lies, and only a remainder is kept.
 */
#include "base/hash/hash.h"
#include "base/bytes.h"

#include <string.h>

/* ---- XXH64 -------------------------------------------------------------------------------- */

#define PRIME_1 0x9E3779B185EBCA87u
#define PRIME_2 0xC2B2AE3D27D4EB4Fu
#define PRIME_3 0x165667B19E3779F9u
#define PRIME_4 0x85EBCA77C2B2AE63u
#define PRIME_5 0x27D4EB2F165667C5u

enum { stripe_bytes = 32 };

static uint64_t rotated(uint64_t word, int bits)
{
    return (word << bits) | (word >> (64 - bits));
}

static uint64_t xxh64_round(uint64_t lane, uint64_t input)
{
    return rotated(lane + input * PRIME_2, 31) * PRIME_1;
}

static const uint8_t *xxh64_stripes(uint64_t lanes[4], const uint8_t *at, size_t n_stripes)
{
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    for (; n_stripes > 0; n_stripes--, at += stripe_bytes) {
        a = xxh64_round(a, tdmi_read_little(at, 8));
        b = xxh64_round(b, tdmi_read_little(at + 8, 8));
        c = xxh64_round(c, tdmi_read_little(at + 16, 8));
        d = xxh64_round(d, tdmi_read_little(at + 24, 8));
    }
    lanes[0] = a;
    lanes[1] = b;
    lanes[2] = c;
    lanes[3] = d;
    return at;
}

void tdmi_xxh64_init(tdmi_xxh64 *state, uint64_t seed)
{
    *state = (tdmi_xxh64){
        .lanes = {seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1},
        .seed = seed,
    };
}

void tdmi_xxh64_add(tdmi_xxh64 *state, const void *bytes, size_t length_bytes)
{
    const uint8_t *at = bytes;
    if (length_bytes == 0)
        return;
    state->total_bytes += length_bytes;
    if (state->tail_bytes > 0) {
        size_t room = stripe_bytes - state->tail_bytes;
        size_t taken = length_bytes < room ? length_bytes : room;
        memcpy(state->tail + state->tail_bytes, at, taken);
        state->tail_bytes += (unsigned)taken;
        at += taken;
        length_bytes -= taken;
        if (state->tail_bytes < stripe_bytes)
            return;
        xxh64_stripes(state->lanes, state->tail, 1);
        state->tail_bytes = 0;
    }
    at = xxh64_stripes(state->lanes, at, length_bytes / stripe_bytes);
    state->tail_bytes = (unsigned)(length_bytes % stripe_bytes);
    if (state->tail_bytes > 0)
        memcpy(state->tail, at, state->tail_bytes);
}

static uint64_t xxh64_merged(const tdmi_xxh64 *state)
{
    const uint64_t *lanes = state->lanes;
    if (state->total_bytes < stripe_bytes)
        return state->seed + PRIME_5;
    uint64_t hash =
        rotated(lanes[0], 1) + rotated(lanes[1], 7) + rotated(lanes[2], 12) + rotated(lanes[3], 18);
    for (int i = 0; i < 4; i++)
        hash = (hash ^ xxh64_round(0, lanes[i])) * PRIME_1 + PRIME_4;
    return hash;
}

uint64_t tdmi_xxh64_result(const tdmi_xxh64 *state)
{
    uint64_t hash = xxh64_merged(state) + state->total_bytes;
    const uint8_t *at = state->tail, *end = state->tail + state->tail_bytes;
    for (; end - at >= 8; at += 8)
        hash = rotated(hash ^ xxh64_round(0, tdmi_read_little(at, 8)), 27) * PRIME_1 + PRIME_4;
    if (end - at >= 4) {
        hash = rotated(hash ^ (tdmi_read_little(at, 4) * PRIME_1), 23) * PRIME_2 + PRIME_3;
        at += 4;
    }
    for (; at < end; at++)
        hash = rotated(hash ^ (*at * PRIME_5), 11) * PRIME_1;
    hash = (hash ^ (hash >> 33)) * PRIME_2;
    hash = (hash ^ (hash >> 29)) * PRIME_3;
    return hash ^ (hash >> 32);
}

uint64_t tdmi_xxh64_of(const void *bytes, size_t length_bytes, uint64_t seed)
{
    tdmi_xxh64 state;
    tdmi_xxh64_init(&state, seed);
    tdmi_xxh64_add(&state, bytes, length_bytes);
    return tdmi_xxh64_result(&state);
}

/* ---- SHA-256 ------------------------------------------------------------------------------ */

enum { block_bytes = 64 };

static uint32_t rotated_right(uint32_t word, int bits)
{
    return (word >> bits) | (word << (32 - bits));
}

static void sha256_block(uint32_t *words, const uint8_t *block)
{
    /* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
    static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
    };
    uint32_t schedule[64];
    for (int i = 0; i < 16; i++)
        schedule[i] = (uint32_t)tdmi_read_big(block + 4 * i, 4);
    for (int i = 16; i < 64; i++) {
        uint32_t two = schedule[i - 2], fifteen = schedule[i - 15];
        schedule[i] = schedule[i - 16] + schedule[i - 7] +
                      (rotated_right(fifteen, 7) ^ rotated_right(fifteen, 18) ^ (fifteen >> 3)) +
                      (rotated_right(two, 17) ^ rotated_right(two, 19) ^ (two >> 10));
    }
    uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
    uint32_t e = words[4], f = words[5], g = words[6], h = words[7];
    for (int i = 0; i < 64; i++) {
        uint32_t first = h + (rotated_right(e, 6) ^ rotated_right(e, 11) ^ rotated_right(e, 25)) +
                         ((e & f) ^ (~e & g)) + constants[i] + schedule[i];
        uint32_t second = (rotated_right(a, 2) ^ rotated_right(a, 13) ^ rotated_right(a, 22)) +
                          ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        words[i] += sums[i];
}

void tdmi_sha256_init(tdmi_sha256 *state)
{
    *state = (tdmi_sha256){
        .words = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                  0x1f83d9ab, 0x5be0cd19},
    };
}

void tdmi_block_hash_add(tdmi_block_hash *state, const void *bytes, size_t length_bytes,
                         void (*add_block)(uint32_t *words, const uint8_t *block))
{
    const uint8_t *at = bytes;
    size_t held = state->total_bytes % block_bytes;
    if (length_bytes == 0)
        return;
    state->total_bytes += length_bytes;
    if (held > 0) {
        size_t room = block_bytes - held;
        size_t taken = length_bytes < room ? length_bytes : room;
        memcpy(state->tail + held, at, taken);
        at += taken;
        length_bytes -= taken;
        if (held + taken < block_bytes)
            return;
        add_block(state->words, state->tail);
    }
    for (; length_bytes >= block_bytes; at += block_bytes, length_bytes -= block_bytes)
        add_block(state->words, at);
    if (length_bytes > 0)
        memcpy(state->tail, at, length_bytes);
}

void tdmi_sha256_add(tdmi_sha256 *state, const void *bytes, size_t length_bytes)
{
    tdmi_block_hash_add(state, bytes, length_bytes, sha256_block);
}

void tdmi_sha256_result(tdmi_sha256 *state, uint8_t digest[32])
{
    /* A one bit, zeros up to 56 modulo 64, the length in bits as a big-endian word. */
    uint8_t padding[block_bytes + 8] = {0x80};
    uint64_t bits = state->total_bytes * 8;
    size_t held = state->total_bytes % block_bytes;
    size_t n_padding = (held < 56 ? 56 : 56 + block_bytes) - held;
    for (int i = 0; i < 8; i++)
        padding[n_padding + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    tdmi_sha256_add(state, padding, n_padding + 8);
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(state->words[i / 4] >> (24 - 8 * (i % 4)));
}

void tdmi_sha256_hex(const uint8_t digest[32], char hex[65])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[64] = '\0';
}
