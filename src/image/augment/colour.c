/*
 * Changing values where they stand. Blends are sums in 16 bits of fraction and tables are worked
 * out once for 256 values: loops over bytes without a branch, which the compiler turns into vector
 * code. Pillow and torchvision cut fractions off where we round, so they differ by 1 at most.
 */
#include "image/augment/ops.h"

#include "base/system/multiversion.h"
#include <math.h>
#include <string.h>

enum { FRACTION_BITS = 16 };

static size_t n_pixels_of(const struct tdmi_canvas *canvas)
{
    return (size_t)canvas->shape.height * (size_t)canvas->shape.width;
}

static size_t n_bytes_of(const struct tdmi_canvas *canvas)
{
    return n_pixels_of(canvas) * (size_t)canvas->shape.channels;
}

static int32_t to_fixed(double factor)
{
    return (int32_t)floor(factor * (1 << FRACTION_BITS) + 0.5);
}

static inline uint8_t blend(int32_t base, int32_t value, int32_t factor)
{
    int32_t sum = (base << FRACTION_BITS) + (value - base) * factor + (1 << (FRACTION_BITS - 1));
    sum >>= FRACTION_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* ---- blends -------------------------------------------------------------------------------- */

TDMI_MULTIVERSION
static void blend_with_value(uint8_t *pixels, size_t n, int32_t base, int32_t factor)
{
    for (size_t i = 0; i < n; i++)
        pixels[i] = blend(base, pixels[i], factor);
}

TDMI_MULTIVERSION
static void blend_with(uint8_t *restrict pixels, const uint8_t *restrict base, size_t n,
                       int32_t factor)
{
    for (size_t i = 0; i < n; i++)
        pixels[i] = blend(base[i], pixels[i], factor);
}

/* Pillow's "L": 299 R + 587 G + 114 B in 16 bits of fraction, rounded. */
static inline int32_t luma(const uint8_t *pixel)
{
    return (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
}

TDMI_MULTIVERSION
static void blend_with_luma(uint8_t *pixels, size_t n_pixels, int32_t factor)
{
    for (size_t i = 0; i < n_pixels; i++) {
        uint8_t *pixel = pixels + 3 * i;
        const int32_t base = luma(pixel);
        pixel[0] = blend(base, pixel[0], factor);
        pixel[1] = blend(base, pixel[1], factor);
        pixel[2] = blend(base, pixel[2], factor);
    }
}

TDMI_MULTIVERSION
static uint64_t sum_of_luma(const uint8_t *pixels, size_t n_pixels, int channels)
{
    uint64_t sum = 0;
    if (channels == 1)
        for (size_t i = 0; i < n_pixels; i++)
            sum += pixels[i];
    else
        for (size_t i = 0; i < n_pixels; i++)
            sum += (uint64_t)luma(pixels + 3 * i);
    return sum;
}

void tdmi_colour_brightness(struct tdmi_canvas *canvas, double factor)
{
    blend_with_value(canvas->pixels, n_bytes_of(canvas), 0, to_fixed(factor));
}

void tdmi_colour_contrast(struct tdmi_canvas *canvas, double factor)
{
    const uint64_t n = n_pixels_of(canvas);
    const uint64_t sum = sum_of_luma(canvas->pixels, n, canvas->shape.channels);
    blend_with_value(canvas->pixels, n_bytes_of(canvas), (int32_t)((sum + n / 2) / n),
                     to_fixed(factor));
}

void tdmi_colour_saturation(struct tdmi_canvas *canvas, double factor)
{
    if (canvas->shape.channels == 3)
        blend_with_luma(canvas->pixels, n_pixels_of(canvas), to_fixed(factor));
}

/* One inner row of the smoothed image: 5 for the pixel, 1 for each of eight neighbours, of 13. */
TDMI_MULTIVERSION
static void smooth_row(const uint8_t *restrict row, size_t row_bytes, size_t channels,
                       uint8_t *restrict to)
{
    const uint8_t *above = row - row_bytes, *below = row + row_bytes;
    for (size_t i = channels; i < row_bytes - channels; i++) {
        const size_t left = i - channels, right = i + channels;
        uint32_t sum = (uint32_t)(above[left] + above[i] + above[right] + row[left] + row[right] +
                                  below[left] + below[i] + below[right] + 5 * row[i]);
        to[i] = (uint8_t)((sum * 2 + 13) * 40330 >> 20); /* sum / 13, rounded */
    }
}

void tdmi_colour_sharpness(struct tdmi_canvas *canvas, double factor)
{
    const struct tdmi_augment_shape shape = canvas->shape;
    const size_t channels = (size_t)shape.channels, row_bytes = channels * (size_t)shape.width;
    if (shape.width < 3 || shape.height < 3)
        return; /* no pixel has eight neighbours, and those at the edge stay */
    memcpy(canvas->spare, canvas->pixels, n_bytes_of(canvas));
    for (size_t y = 1; y + 1 < (size_t)shape.height; y++)
        smooth_row(canvas->pixels + row_bytes * y, row_bytes, channels,
                   canvas->spare + row_bytes * y);
    blend_with(canvas->pixels, canvas->spare, n_bytes_of(canvas), to_fixed(factor));
}

/* ---- hue ----------------------------------------------------------------------------------- */

/* The colour circle in six parts, red at 0, green at 2, blue at 4: position, rotated, and back by
 * value - chroma · clip(min(k, 4 - k)), k being how far the circle's point lies from the channel's
 * place. Grey has no chroma and stays. */
static inline float at_channel(float value, float chroma, float k)
{
    k = k >= 6.0f ? k - 6.0f : k;
    float near = k < 4.0f - k ? k : 4.0f - k;
    near = near < 0.0f ? 0.0f : near;
    near = near > 1.0f ? 1.0f : near;
    return value - chroma * near;
}

static inline void turn_pixel(uint8_t *pixel, float turn)
{
    const float red = pixel[0], green = pixel[1], blue = pixel[2];
    float high = red > green ? red : green, low = red < green ? red : green;
    high = high > blue ? high : blue;
    low = low < blue ? low : blue;
    const float chroma = high - low, divisor = chroma > 0.0f ? chroma : 1.0f;
    float hue = red == high     ? (green - blue) / divisor
                : green == high ? 2.0f + (blue - red) / divisor
                                : 4.0f + (red - green) / divisor;
    hue += turn; /* of [0, 6): from -1 to 11 */
    hue = hue < 0.0f ? hue + 6.0f : hue;
    hue = hue >= 6.0f ? hue - 6.0f : hue;
    pixel[0] = (uint8_t)(at_channel(high, chroma, hue + 5.0f) + 0.5f);
    pixel[1] = (uint8_t)(at_channel(high, chroma, hue + 3.0f) + 0.5f);
    pixel[2] = (uint8_t)(at_channel(high, chroma, hue + 1.0f) + 0.5f);
}

TDMI_MULTIVERSION
static void turn_pixels(uint8_t *pixels, size_t n_pixels, float turn)
{
    for (size_t i = 0; i < n_pixels; i++)
        turn_pixel(pixels + 3 * i, turn);
}

void tdmi_colour_hue(struct tdmi_canvas *canvas, double turn)
{
    if (canvas->shape.channels == 3)
        turn_pixels(canvas->pixels, n_pixels_of(canvas), (float)(6 * (turn - floor(turn))));
}

/* ---- tables -------------------------------------------------------------------------------- */

TDMI_MULTIVERSION
static void mask_bytes(uint8_t *pixels, size_t n, uint8_t mask)
{
    for (size_t i = 0; i < n; i++)
        pixels[i] = pixels[i] & mask;
}

TDMI_MULTIVERSION
static void invert_from(uint8_t *pixels, size_t n, int threshold)
{
    for (size_t i = 0; i < n; i++)
        pixels[i] = pixels[i] >= threshold ? (uint8_t)(255 - pixels[i]) : pixels[i];
}

void tdmi_colour_posterize(struct tdmi_canvas *canvas, int bits)
{
    mask_bytes(canvas->pixels, n_bytes_of(canvas), (uint8_t)(0xff00 >> bits));
}

void tdmi_colour_solarize(struct tdmi_canvas *canvas, int threshold)
{
    invert_from(canvas->pixels, n_bytes_of(canvas), threshold);
}

/* (channels, 256) */
struct tables {
    uint32_t counts[3][256];
    uint8_t values[3][256];
};

static void count(const struct tdmi_canvas *canvas, struct tables *tables)
{
    const size_t n = n_pixels_of(canvas), channels = (size_t)canvas->shape.channels;
    memset(tables->counts, 0, sizeof tables->counts);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < channels; c++)
            tables->counts[c][canvas->pixels[channels * i + c]]++;
}

static void apply(struct tdmi_canvas *canvas, const struct tables *tables)
{
    const size_t n = n_pixels_of(canvas), channels = (size_t)canvas->shape.channels;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < channels; c++) {
            uint8_t *value = &canvas->pixels[channels * i + c];
            *value = tables->values[c][*value];
        }
}

/* The lowest and the highest value that occur. */
static void range_of(const uint32_t counts[256], int *low, int *high)
{
    *low = 0;
    *high = 255;
    while (*low < 255 && counts[*low] == 0)
        (*low)++;
    while (*high > 0 && counts[*high] == 0)
        (*high)--;
}

/* Pillow's, in its doubles: their rounding decides where a quotient is nearly whole. */
static uint8_t stretched(int value, int low, int high)
{
    const double scale = 255.0 / (high - low), offset = -low * scale;
    const int moved = (int)(value * scale + offset);
    return (uint8_t)(moved < 0 ? 0 : moved > 255 ? 255 : moved);
}

void tdmi_colour_autocontrast(struct tdmi_canvas *canvas)
{
    struct tables tables;
    count(canvas, &tables);
    for (int c = 0; c < canvas->shape.channels; c++) {
        int low, high;
        range_of(tables.counts[c], &low, &high);
        for (int i = 0; i < 256; i++)
            tables.values[c][i] = high > low ? stretched(i, low, high) : (uint8_t)i;
    }
    apply(canvas, &tables);
}

/* Pillow's: a step is the 255th part of all pixels but those of the highest value; value i becomes
 * (pixels below i + half a step) / step. */
void tdmi_colour_equalize(struct tdmi_canvas *canvas)
{
    struct tables tables;
    count(canvas, &tables);
    for (int c = 0; c < canvas->shape.channels; c++) {
        const uint32_t *counts = tables.counts[c];
        int low, high;
        range_of(counts, &low, &high);
        const uint64_t step = (n_pixels_of(canvas) - counts[high]) / 255;
        uint64_t sum = step / 2;
        for (int i = 0; i < 256; i++) {
            const uint64_t value = step > 0 ? sum / step : (uint64_t)i;
            tables.values[c][i] = (uint8_t)(value > 255 ? 255 : value);
            sum += counts[i];
        }
    }
    apply(canvas, &tables);
}
