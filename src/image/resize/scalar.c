/*
 * The passes in plain C: the specification of all others, and the ones for other CPUs.
 */
#include "image/resize/kernels.h"
#include <stddef.h>

static uint8_t to_byte(int32_t sum)
{
    sum >>= TDMI_RESIZE_FRACTION_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void pack(int32_t *taps, size_t n_groups)
{
    (void)taps;
    (void)n_groups;
}

static void horizontal(const uint8_t *const *rows, int n_quads,
                       const struct tdmi_resize_weights *weights, uint8_t *quads,
                       size_t stride_bytes)
{
    const int n_taps = TDMI_RESIZE_GROUP * weights->n_groups;
    for (int y = 0; y < 4 * n_quads; y++) {
        uint8_t *out = quads + stride_bytes * (size_t)(y / 4) + y % 4;
        for (int x = 0; x < weights->n_outputs; x++, out += 12) {
            const uint8_t *from = rows[y] + 3 * (ptrdiff_t)weights->spans[x].first;
            const int32_t *taps = weights->taps + (ptrdiff_t)x * n_taps;
            int32_t red = 1 << (TDMI_RESIZE_FRACTION_BITS - 1), green = red, blue = red;
            for (int k = 0; k < n_taps; k++, from += 3) {
                red += from[0] * taps[k];
                green += from[1] * taps[k];
                blue += from[2] * taps[k];
            }
            out[0] = to_byte(red);
            out[4] = to_byte(green);
            out[8] = to_byte(blue);
        }
    }
}

static void vertical(const uint8_t *quads, size_t stride_bytes, const int32_t *taps, int n_groups,
                     size_t n, uint8_t *out)
{
    enum { STRETCH = 64 }; /* sums that stay near */
    int32_t sums[STRETCH];
    for (size_t begin = 0; begin < n; begin += STRETCH) {
        const size_t end = n - begin < STRETCH ? n - begin : STRETCH;
        for (size_t i = 0; i < end; i++)
            sums[i] = 1 << (TDMI_RESIZE_FRACTION_BITS - 1);
        for (int g = 0; g < n_groups; g++) {
            const uint8_t *from = quads + stride_bytes * (size_t)g + 4 * begin;
            const int32_t *four = taps + TDMI_RESIZE_GROUP * (ptrdiff_t)g;
            for (size_t i = 0; i < end; i++, from += 4)
                sums[i] +=
                    from[0] * four[0] + from[1] * four[1] + from[2] * four[2] + from[3] * four[3];
        }
        for (size_t i = 0; i < end; i++)
            out[begin + i] = to_byte(sums[i]);
    }
}

const struct tdmi_resize_kernels tdmi_resize_scalar = {"scalar", pack,       NULL,
                                                       NULL,     horizontal, vertical};
