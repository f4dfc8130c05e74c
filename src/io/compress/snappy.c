/*
 * The lowest two bits of a byte say what an element is:
 *
 *     00  bytes as they are: their number less 1 in six bits, or in the 1 to 4 bytes that follow
 *     01  a copy of 4 to 11 bytes from up to 2 KiB before: three bits of length, eleven of distance
 *     10  a copy of 1 to 64 bytes, two bytes of distance
 *     11  the same with four bytes of distance
 */
#include "io/compress/snappy.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <string.h>

enum { CHUNK = 16, LONG_LITERAL = 60, LENGTH_BYTES = 5 };

size_t tdmi_snappy_length(const uint8_t *packed, size_t n_packed, int64_t *n_bytes)
{
    *n_bytes = 0;
    for (size_t i = 0; i < n_packed && i < LENGTH_BYTES; i++) {
        *n_bytes |= (int64_t)(packed[i] & 0x7f) << 7 * i;
        if (!(packed[i] & 0x80))
            return *n_bytes <= UINT32_MAX ? i + 1 : 0;
    }
    return 0;
}

struct element {
    size_t n_head, n_bytes;
    size_t distance; /* 0: bytes as they are, which follow the head */
};

/* false where the head is not whole or copies from nowhere. */
static bool read_element(const uint8_t *at, const uint8_t *end, struct element *element)
{
    const unsigned tag = *at >> 2;
    const size_t left = (size_t)(end - at);
    switch (*at & 3) {
    case 0:
        *element = (struct element){1, tag + 1, 0};
        if (tag < LONG_LITERAL)
            return true;
        element->n_head = 2 + tag - LONG_LITERAL;
        if (left < element->n_head)
            return false;
        element->n_bytes = tdmi_read_little(at + 1, element->n_head - 1) + 1;
        return true;
    case 1:
        if (left < 2)
            return false;
        *element = (struct element){2, 4 + (tag & 7), (size_t)(tag >> 3) << 8 | at[1]};
        break;
    case 2:
        if (left < 3)
            return false;
        *element = (struct element){3, tag + 1, tdmi_read_little(at + 1, 2)};
        break;
    default:
        if (left < 5)
            return false;
        *element = (struct element){5, tag + 1, tdmi_read_little(at + 1, 4)};
    }
    return element->distance > 0;
}

/* n bytes from `distance` before; they may be among those that are written here. left: the room. */
static void copy(uint8_t *to, size_t distance, size_t n, size_t left)
{
    const uint8_t *from = to - distance;
    if (distance >= CHUNK && left >= n + CHUNK) {
        for (size_t i = 0; i < n; i += CHUNK)
            memcpy(to + i, from + i, CHUNK);
        return;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

int64_t tdmi_snappy_block(const uint8_t *packed, size_t n_packed, size_t n_bytes, uint8_t *out,
                          size_t n_needed)
{
    const uint8_t *at = packed, *end = packed + n_packed;
    size_t done = 0;
    while (done < n_needed) {
        struct element element;
        if (at == end || !read_element(at, end, &element) || element.n_bytes > n_bytes - done ||
            element.distance > done)
            return -1;
        const size_t left = n_needed - done;
        const size_t n = element.n_bytes < left ? element.n_bytes : left;
        at += element.n_head;
        if (element.distance > 0) {
            copy(out + done, element.distance, n, left);
        } else if (element.n_bytes > (size_t)(end - at)) {
            return -1;
        } else {
            memcpy(out + done, at, n);
            at += element.n_bytes;
        }
        done += n;
    }
    return at - packed;
}
