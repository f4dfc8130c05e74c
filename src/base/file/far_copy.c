/*
 * Whole lines go past the caches, what is left at both ends does not. SSE2 is part of x86-64; the
 * CPU joins four stores of 16 bytes to one of a line.
 */
#include "base/file/far_copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)

#include <emmintrin.h>

enum { LINE = 64, VECTOR = 16 };

void tdmi_far_copy(void *to, const void *from, size_t n_bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    const size_t n_before = -(uintptr_t)out % LINE;
    if (n_bytes < n_before + LINE) {
        memcpy(out, in, n_bytes);
        return;
    }
    memcpy(out, in, n_before);
    out += n_before, in += n_before, n_bytes -= n_before;
    for (; n_bytes >= LINE; out += LINE, in += LINE, n_bytes -= LINE)
        for (size_t i = 0; i < LINE; i += VECTOR)
            _mm_stream_si128((__m128i *)(out + i), _mm_loadu_si128((const __m128i *)(in + i)));
    memcpy(out, in, n_bytes);
}

void tdmi_far_copy_end(void)
{
    _mm_sfence();
}

#else

void tdmi_far_copy(void *to, const void *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
}

void tdmi_far_copy_end(void)
{
}

#endif
