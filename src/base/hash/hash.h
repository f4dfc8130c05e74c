/*
 * XXH64 for identity and checksums, SHA-256 where a published digest must be matched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdmi_xxh64 {
    uint64_t lanes[4], total_bytes, seed;
    uint8_t tail[32];
    unsigned tail_bytes;
} tdmi_xxh64;

uint64_t tdmi_xxh64_of(const void *bytes, size_t length_bytes, uint64_t seed);
void tdmi_xxh64_init(tdmi_xxh64 *state, uint64_t seed);
void tdmi_xxh64_add(tdmi_xxh64 *state, const void *bytes, size_t length_bytes);
uint64_t tdmi_xxh64_result(const tdmi_xxh64 *state);

/* Sets of hashes are kept in ascending order. */
void tdmi_hashes_sort(uint64_t *hashes, int64_t n);
bool tdmi_hashes_have(const uint64_t *hashes, int64_t n, uint64_t hash);

/* A hash over blocks of 64 bytes, between two additions. */
typedef struct tdmi_block_hash {
    uint32_t words[8];
    uint64_t total_bytes;
    uint8_t tail[64];
} tdmi_block_hash;

typedef tdmi_block_hash tdmi_sha256;

/* Add bytes; add_block mixes one block into the words. */
void tdmi_block_hash_add(tdmi_block_hash *state, const void *bytes, size_t length_bytes,
                         void (*add_block)(uint32_t *words, const uint8_t *block));

void tdmi_sha256_init(tdmi_sha256 *state);
void tdmi_sha256_add(tdmi_sha256 *state, const void *bytes, size_t length_bytes);
void tdmi_sha256_result(tdmi_sha256 *state, uint8_t digest[32]);
/* 64 lower-case hex digits and a terminator. */
void tdmi_sha256_hex(const uint8_t digest[32], char hex[65]);
