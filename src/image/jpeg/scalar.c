/*
 * The specification: number by number, as libjpeg-turbo computes them.
 */
#include "image/jpeg/lines.h"
#include "image/jpeg/transform.h"
#include <stdlib.h>

static void pair(struct tdmi_jpeg_codes *codes)
{
    tdmi_jpeg_make_pairs(codes);
}

static bool decode(struct tdmi_jpeg_stream *streams, int n_streams,
                   const struct tdmi_jpeg_band *bands, int n_components, int first, int n)
{
    return tdmi_jpeg_decode_run(streams, n_streams, bands, n_components, first, n);
}

/* Eight numbers, `step` apart, in place. */
static void transform_line(int32_t *line, int step, int shift)
{
#define X(i, a, b, c, d) {a, b, c, d},
    static const int32_t odd[4][4] = { TDMI_JPEG_ODD(X) };
#undef X
    int32_t x[8], even[4];
    for (int i = 0; i < 8; i++)
        x[i] = line[step * i];
    const int32_t sum = (x[0] + x[4]) * TDMI_JPEG_ONE, difference = (x[0] - x[4]) * TDMI_JPEG_ONE;
    const int32_t second = x[2] * TDMI_JPEG_C2A + x[6] * TDMI_JPEG_C2B;
    const int32_t sixth = x[2] * TDMI_JPEG_C6A + x[6] * TDMI_JPEG_C6B;
    even[0] = sum + second;
    even[1] = difference + sixth;
    even[2] = difference - sixth;
    even[3] = sum - second;
    for (int i = 0; i < 4; i++) {
        const int32_t rounded = even[i] + (1 << (shift - 1));
        const int32_t add =
            x[1] * odd[i][0] + x[3] * odd[i][1] + x[5] * odd[i][2] + x[7] * odd[i][3];
        line[step * i] = (rounded + add) >> shift;
        line[step * (7 - i)] = (rounded - add) >> shift;
    }
}

static uint8_t to_byte(int32_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* coefficients: 16 from one row to the next. */
static bool transform_block(const int16_t *coefficients, const int16_t *divisors, uint8_t *samples,
                            size_t stride_bytes)
{
    int32_t numbers[TDMI_JPEG_BLOCK];
    for (int x = 0; x < 8; x++) {
        int sum = 0;
        for (int y = 0; y < 8; y++) {
            /* Cut to 16 bits as libjpeg-turbo does; no sound file has such products. */
            numbers[8 * y + x] = (int16_t)(coefficients[16 * y + x] * divisors[8 * y + x]);
            sum += abs(numbers[8 * y + x]);
        }
        if (sum > TDMI_JPEG_LARGEST_SUM)
            return false;
        transform_line(numbers + x, 8, TDMI_JPEG_DOWN_SHIFT);
    }
    for (int y = 0; y < 8; y++) {
        transform_line(numbers + 8 * y, 1, TDMI_JPEG_ACROSS_SHIFT);
        for (int x = 0; x < 8; x++)
            samples[stride_bytes * (size_t)y + (size_t)x] =
                to_byte(numbers[8 * y + x] + TDMI_JPEG_CENTRE);
    }
    return true;
}

static bool transform(const int16_t *pairs, const uint8_t *last, size_t n, const int16_t *divisors,
                      uint8_t *samples, size_t stride_bytes)
{
    (void)last;
    for (size_t i = 0; i < 2 * n; i++)
        if (!transform_block(pairs + TDMI_JPEG_PAIR * (i / 2) + 8 * (i % 2), divisors,
                             samples + 8 * i, stride_bytes))
            return false;
    return true;
}

static void widen(const uint8_t *row, size_t n, int16_t *sums, uint8_t *out)
{
    tdmi_jpeg_widen_row(row, n, sums, out);
}

static void widen_between(const uint8_t *row, const uint8_t *other, size_t n, int16_t *sums,
                          uint8_t *out)
{
    tdmi_jpeg_widen_two(row, other, n, sums, out);
}

static void colour(const uint8_t *luma, const uint8_t *blue, const uint8_t *red, size_t n,
                   uint8_t *pixels)
{
    const int32_t half = 1 << 15;
    for (size_t i = 0; i < n; i++, pixels += 3) {
        const int32_t b = blue[i] - TDMI_JPEG_CENTRE, r = red[i] - TDMI_JPEG_CENTRE;
        pixels[0] = to_byte(luma[i] + ((TDMI_JPEG_RED * r + half) >> 16));
        pixels[1] =
            to_byte(luma[i] + ((TDMI_JPEG_GREEN_BLUE * b + TDMI_JPEG_GREEN_RED * r + half) >> 16));
        pixels[2] = to_byte(luma[i] + ((TDMI_JPEG_BLUE * b + half) >> 16));
    }
}

static void grey(const uint8_t *luma, size_t n, uint8_t *pixels)
{
    for (size_t i = 0; i < n; i++, pixels += 3)
        pixels[0] = pixels[1] = pixels[2] = luma[i];
}

const struct tdmi_jpeg_kernels tdmi_jpeg_scalar = {.name = "scalar",
                                                   .pair = pair,
                                                   .decode = decode,
                                                   .transform = transform,
                                                   .widen = widen,
                                                   .widen_between = widen_between,
                                                   .colour = colour,
                                                   .grey = grey};
