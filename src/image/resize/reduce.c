/*
 * An image made smaller by whole numbers: every pixel becomes the rounded mean of a block. It is
 * the cheap first step of a large reduction, whose second step is a real filter. The division is
 * Pillow's: by a rounded-down reciprocal of 24 bits.
 */
#include "image/resize/resize.h"
#include <string.h>

enum { COLUMNS = 512 }; /* bytes of a row that are summed at once */

/* Sums of n bytes down n_rows rows. */
static void add_down(const uint8_t *rows, size_t stride_bytes, int n_rows, size_t n,
                     uint32_t *restrict sums)
{
    memset(sums, 0, n * sizeof *sums);
    for (int y = 0; y < n_rows; y++, rows += stride_bytes)
        for (size_t i = 0; i < n; i++)
            sums[i] += rows[i];
}

/* sum / area, rounded. */
static uint8_t mean_of(uint64_t sum, uint32_t area)
{
    return (uint8_t)(((sum + area / 2) * ((UINT32_C(1) << 24) / area)) >> 24);
}

/* Blocks that are wider than what is summed at once, or narrower than others. */
static void reduce_block(const uint8_t *rows, size_t stride_bytes, int n_rows, int n,
                         uint8_t *target)
{
    uint64_t sums[3] = {0, 0, 0};
    for (int y = 0; y < n_rows; y++)
        for (int x = 0; x < n; x++)
            for (int c = 0; c < 3; c++)
                sums[c] += rows[stride_bytes * (size_t)y + 3 * (size_t)x + (size_t)c];
    for (int c = 0; c < 3; c++)
        target[c] = mean_of(sums[c], (uint32_t)n_rows * (uint32_t)n);
}

/* n blocks beside one another. */
static void reduce_blocks(const uint8_t *rows, size_t stride_bytes, int n_rows, int factor, int n,
                          uint8_t *target)
{
    uint32_t sums[COLUMNS];
    const uint32_t *at = sums;
    add_down(rows, stride_bytes, n_rows, 3 * (size_t)factor * (size_t)n, sums);
    for (int i = 0; i < n; i++, target += 3) {
        uint32_t total[3] = {0, 0, 0};
        for (int x = 0; x < factor; x++, at += 3)
            for (int c = 0; c < 3; c++)
                total[c] += at[c];
        for (int c = 0; c < 3; c++)
            target[c] = mean_of(total[c], (uint32_t)n_rows * (uint32_t)factor);
    }
}

void tdmi_image_reduce(const tdmi_image *source, int factor_x, int factor_y, uint8_t *target)
{
    const int width = source->width, height = source->height;
    const size_t stride_bytes = 3 * (size_t)width;
    const int n_at_once = COLUMNS / 3 / factor_x;
    for (int y = 0; y < height; y += factor_y) {
        const uint8_t *rows = source->pixels + stride_bytes * (size_t)y;
        const int n_rows = height - y < factor_y ? height - y : factor_y;
        for (int x = 0; x < width;) {
            const int n_left = (width - x) / factor_x; /* whole blocks */
            const int n = n_left < n_at_once ? n_left : n_at_once;
            const int n_columns = n > 0                  ? n * factor_x
                                  : width - x < factor_x ? width - x
                                                         : factor_x;
            const uint8_t *block = rows + 3 * (size_t)x;
            if (n > 0)
                reduce_blocks(block, stride_bytes, n_rows, factor_x, n, target);
            else
                reduce_block(block, stride_bytes, n_rows, n_columns, target);
            target += 3 * (size_t)(n > 0 ? n : 1);
            x += n_columns;
        }
    }
}
