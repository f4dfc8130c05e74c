/* MD5 as RFC 1321 defines it: blocks of 64 bytes, four rounds of sixteen steps. */
#include "base/hash/md5.h"
#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

static uint32_t rotated(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
    switch (round) {
    case 0:
        return (b & c) | (~b & d);
    case 1:
        return (d & b) | (~d & c);
    case 2:
        return b ^ c ^ d;
    default:
        return c ^ (b | ~d);
    }
}

static void add_block(uint32_t *words, const uint8_t *block)
{
    /* The integer parts of 2^32 · |sin(i)| for i from 1 to 64. */
    static const uint32_t sines[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
        0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
        0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
        0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
        0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
        0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
        0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
        0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
        0xeb86d391,
    };
    static const uint8_t by[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    static const uint8_t first[4] = {0, 1, 5, 0}, stride[4] = {1, 5, 3, 7};
    uint32_t x[16], a = words[0], b = words[1], c = words[2], d = words[3];
    for (int i = 0; i < 16; i++)
        x[i] = (uint32_t)tdmi_read_little(block + 4 * i, 4);
    for (int step = 0; step < 64; step++) {
        int round = step / 16;
        uint32_t word = x[(first[round] + stride[round] * step) % 16];
        uint32_t next =
            b + rotated(a + mix(round, b, c, d) + word + sines[step], by[round][step % 4]);
        a = d;
        d = c;
        c = b;
        b = next;
    }
    words[0] += a;
    words[1] += b;
    words[2] += c;
    words[3] += d;
}

void tdmi_md5_init(tdmi_md5 *state)
{
    *state = (tdmi_md5){.words = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u}};
}

void tdmi_md5_add(tdmi_md5 *state, const void *bytes, size_t length_bytes)
{
    tdmi_block_hash_add(state, bytes, length_bytes, add_block);
}

void tdmi_md5_result(tdmi_md5 *state, char hex[33])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = 8 * state->total_bytes;
    uint8_t length[8];
    size_t at = state->total_bytes % 64;
    tdmi_md5_add(state, padding, at < 56 ? 56 - at : 120 - at);
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> 8 * i);
    tdmi_md5_add(state, length, sizeof length);
    for (int i = 0; i < 16; i++)
        snprintf(hex + (size_t)2 * (size_t)i, 3, "%02x", state->words[i / 4] >> 8 * (i % 4) & 255);
}
