/* MD5 as RFC 1321 defines it: blocks of 64 bytes, four rounds of sixteen steps. */
#include "base/hash/md5.h"
#include "base/bytes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The integer part of 2^32 · |sin(step)|, as the definition has it. */
static uint32_t sine(int step)
{
    return (uint32_t)(int64_t)(fabs(sin((double)step)) * 4294967296.0);
}

static uint32_t turn(uint32_t x, int by)
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

static void add_block(tdmi_md5 *state, const uint8_t block[64], const uint32_t sines[64])
{
    static const uint8_t by[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    static const uint8_t first[4] = {0, 1, 5, 0}, stride[4] = {1, 5, 3, 7};
    uint32_t x[16], a = state->words[0], b = state->words[1], c = state->words[2],
                    d = state->words[3];
    for (int i = 0; i < 16; i++)
        x[i] = (uint32_t)tdmi_read_little(block + 4 * i, 4);
    for (int step = 0; step < 64; step++) {
        int round = step / 16;
        uint32_t word = x[(first[round] + stride[round] * step) % 16];
        uint32_t next = b + turn(a + mix(round, b, c, d) + word + sines[step], by[round][step % 4]);
        a = d;
        d = c;
        c = b;
        b = next;
    }
    state->words[0] += a;
    state->words[1] += b;
    state->words[2] += c;
    state->words[3] += d;
}

void tdmi_md5_init(tdmi_md5 *state)
{
    *state = (tdmi_md5){.words = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u}};
}

void tdmi_md5_add(tdmi_md5 *state, const void *bytes, size_t length_bytes)
{
    uint32_t sines[64];
    const uint8_t *from = bytes;
    for (int i = 0; i < 64; i++)
        sines[i] = sine(i + 1);
    while (length_bytes > 0) {
        size_t at = state->total_bytes % 64, n = 64 - at < length_bytes ? 64 - at : length_bytes;
        memcpy(state->tail + at, from, n);
        state->total_bytes += n;
        from += n;
        length_bytes -= n;
        if (state->total_bytes % 64 == 0)
            add_block(state, state->tail, sines);
    }
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
