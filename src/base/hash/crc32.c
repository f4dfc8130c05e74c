/*
 * CRC-32, eight bytes a step by tables, or 64 bytes a step where the CPU multiplies without
 * carries, 256 where it does so in vectors of 512 bits. The remainder is linear over the bits, so
 * every table entry is the exclusive or of the entries of its bits: only those of single bits are
 * written down.
 */
#include "base/hash/crc32.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <string.h>

#define BIT(i, b, entry) ((i) >> (b)&1 ? entry##u : 0u)
#define ENTRY(i, e0, e1, e2, e3, e4, e5, e6, e7)                                     \
    (BIT(i, 0, e0) ^ BIT(i, 1, e1) ^ BIT(i, 2, e2) ^ BIT(i, 3, e3) ^ BIT(i, 4, e4) ^ \
     BIT(i, 5, e5) ^ BIT(i, 6, e6) ^ BIT(i, 7, e7))
#define FOUR(i, ...)                                                                 \
    ENTRY(i, __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), \
        ENTRY((i) + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)                                                           \
    FOUR(i, __VA_ARGS__), FOUR((i) + 4, __VA_ARGS__), FOUR((i) + 8, __VA_ARGS__), \
        FOUR((i) + 12, __VA_ARGS__)
#define SIXTYFOUR(i, ...)                                                                    \
    SIXTEEN(i, __VA_ARGS__), SIXTEEN((i) + 16, __VA_ARGS__), SIXTEEN((i) + 32, __VA_ARGS__), \
        SIXTEEN((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                          \
    {                                                                                       \
        SIXTYFOUR(0, __VA_ARGS__), SIXTYFOUR(64, __VA_ARGS__), SIXTYFOUR(128, __VA_ARGS__), \
            SIXTYFOUR(192, __VA_ARGS__)                                                     \
    }

/* tables[k][byte]: the remainder of a byte that k zero bytes follow. */
static const uint32_t tables[8][256] = {
    TABLE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832, 0x1db71064, 0x3b6e20c8, 0x76dc4190,
          0xedb88320),
    TABLE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08, 0x4ac21251, 0x958424a2, 0xf0794f05,
          0x3b83984b),
    TABLE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8, 0x1c26a370, 0x384d46e0, 0x709a8dc0,
          0xe1351b80),
    TABLE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef, 0x5019579f, 0xa032af3e, 0x9b14583d,
          0xed59b63b),
    TABLE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1, 0x60e09782, 0xc1c12f04, 0x58f35849,
          0xb1e6b092),
    TABLE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d, 0x03d6029b, 0x07ac0536, 0x0f580a6c,
          0x1eb014d8),
    TABLE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67, 0x67de9cce, 0xcfbd399c, 0x440b7579,
          0x8816eaf2),
    TABLE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5, 0x7cbb312b, 0xf9766256, 0x299dc2ed,
          0x533b85da),
};

static uint32_t by_tables(uint32_t crc, const uint8_t *at, size_t n)
{
    for (; n >= 8; at += 8, n -= 8) {
        const uint32_t low = crc ^ (uint32_t)tdmi_read_little(at, 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
              tables[0][at[7]];
    }
    for (; n > 0; at++, n--)
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xff];
    return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

enum { LARGE_BYTES = 128, HUGE_BYTES = 512 };

/* x^2080, x^2016, x^544, x^480, x^160 and x^96 modulo the polynomial, bits reversed: what carries
 * 64 bits over the next 256 bytes, over the next 64, and over the next 16. */
#define OVER_256_LOW 0x11542778a
#define OVER_256_HIGH 0x1322d1430
#define OVER_64_LOW 0x154442bd4
#define OVER_64_HIGH 0x1c6e41596
#define OVER_16_LOW 0x1751997d0
#define OVER_16_HIGH 0x0ccaa009e

__attribute__((target("pclmul,sse4.1"))) static __m128i fold(__m128i sum, __m128i over,
                                                             __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(sum, over, 0x00);
    __m128i high = _mm_clmulepi64_si128(sum, over, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("avx512f,vpclmulqdq"))) static __m512i fold_four(__m512i sums, __m512i over,
                                                                       __m512i next)
{
    __m512i low = _mm512_clmulepi64_epi128(sums, over, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(sums, over, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* exclusive or of three */
}

/* Folds as many steps of 256 bytes as there are; returns their bytes. */
__attribute__((target("avx512f,vpclmulqdq"))) static size_t
begin_wide(uint32_t crc, const uint8_t *at, size_t n, __m128i sums[4])
{
    const __m512i over_256 = _mm512_broadcast_i32x4(_mm_set_epi64x(OVER_256_HIGH, OVER_256_LOW));
    const __m512i over_64 = _mm512_broadcast_i32x4(_mm_set_epi64x(OVER_64_HIGH, OVER_64_LOW));
    __m512i wide[4];
    size_t done = 256;
    for (int i = 0; i < 4; i++)
        wide[i] = _mm512_loadu_si512(at + 64 * i);
    wide[0] = _mm512_xor_si512(wide[0], _mm512_castsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (; n - done >= 256; done += 256)
        for (int i = 0; i < 4; i++)
            wide[i] = fold_four(wide[i], over_256, _mm512_loadu_si512(at + done + 64 * i));
    for (int i = 1; i < 4; i++)
        wide[0] = fold_four(wide[0], over_64, wide[i]);
    _mm512_storeu_si512(sums, wide[0]);
    return done;
}

__attribute__((target("pclmul,sse4.1"))) static size_t begin(uint32_t crc, const uint8_t *at,
                                                             __m128i sums[4])
{
    for (int i = 0; i < 4; i++)
        sums[i] = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128((int)crc));
    return 64;
}

__attribute__((target("pclmul,sse4.1"))) static uint32_t by_folding(uint32_t crc, const uint8_t *at,
                                                                    size_t n, bool is_wide)
{
    const __m128i over_64 = _mm_set_epi64x(OVER_64_HIGH, OVER_64_LOW);
    const __m128i over_16 = _mm_set_epi64x(OVER_16_HIGH, OVER_16_LOW);
    __m128i sums[4];
    const size_t done = is_wide ? begin_wide(crc, at, n, sums) : begin(crc, at, sums);
    for (at += done, n -= done; n >= 64; at += 64, n -= 64)
        for (int i = 0; i < 4; i++)
            sums[i] = fold(sums[i], over_64,
                           _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i)));
    __m128i sum = sums[0];
    for (int i = 1; i < 4; i++)
        sum = fold(sum, over_16, sums[i]);
    for (; n >= 16; at += 16, n -= 16)
        sum = fold(sum, over_16, _mm_loadu_si128((const __m128i *)(const void *)at));
    uint8_t last[16]; /* has the remainder of all that was folded into it */
    memcpy(last, &sum, sizeof last);
    return by_tables(by_tables(0, last, sizeof last), at, n);
}

static bool has_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

uint32_t tdmi_crc32(uint32_t crc, const void *bytes, size_t n_bytes)
{
    if (n_bytes >= LARGE_BYTES && __builtin_cpu_supports("pclmul") &&
        __builtin_cpu_supports("sse4.1"))
        return ~by_folding(~crc, bytes, n_bytes, n_bytes >= HUGE_BYTES && has_wide());
    return ~by_tables(~crc, bytes, n_bytes);
}

#else

uint32_t tdmi_crc32(uint32_t crc, const void *bytes, size_t n_bytes)
{
    return ~by_tables(~crc, bytes, n_bytes);
}

#endif
