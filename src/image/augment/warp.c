/*
 * Moving pixels about: mirror, shift, and any affine map. Coordinates are pixel centres in 32 bits
 * of fraction, so that steps along a row add up without an error worth naming; the four neighbours
 * are weighted in 2048ths, which 32-bit sums just hold. Pillow's BILINEAR, which computes in
 * floating point, differs by 1 at most.
 */
#include "image/augment/ops.h"

#include <math.h>
#include <string.h>

static void exchange(struct tdmi_canvas *canvas)
{
    uint8_t *kept = canvas->pixels;
    canvas->pixels = canvas->spare;
    canvas->spare = kept;
}

static size_t row_bytes_of(struct tdmi_augment_shape shape)
{
    return (size_t)shape.width * (size_t)shape.channels;
}

void tdmi_warp_flip(struct tdmi_canvas *canvas)
{
    const struct tdmi_augment_shape shape = canvas->shape;
    const size_t row_bytes = row_bytes_of(shape), width = (size_t)shape.width;
    for (size_t y = 0; y < (size_t)shape.height; y++) {
        const uint8_t *restrict from = canvas->pixels + row_bytes * y;
        uint8_t *restrict to = canvas->spare + row_bytes * y;
        if (shape.channels == 1) {
            for (size_t x = 0; x < width; x++)
                to[x] = from[width - 1 - x];
            continue;
        }
        for (size_t x = 0; x < width; x++) {
            const uint8_t *pixel = from + 3 * (width - 1 - x);
            to[3 * x] = pixel[0];
            to[3 * x + 1] = pixel[1];
            to[3 * x + 2] = pixel[2];
        }
    }
    exchange(canvas);
}

void tdmi_warp_shift(struct tdmi_canvas *canvas, int dx, int dy, uint8_t fill)
{
    const struct tdmi_augment_shape shape = canvas->shape;
    const size_t row_bytes = row_bytes_of(shape), channels = (size_t)shape.channels;
    if (dx == 0 && dy == 0)
        return;
    const int first = dx < 0 ? -dx : 0, end = dx > 0 ? shape.width - dx : shape.width;
    for (int y = 0; y < shape.height; y++) {
        const int from = y + dy;
        uint8_t *to = canvas->spare + row_bytes * (size_t)y;
        if (from < 0 || from >= shape.height || first >= end) {
            memset(to, fill, row_bytes);
            continue;
        }
        memset(to, fill, channels * (size_t)first);
        memcpy(to + channels * (size_t)first,
               canvas->pixels + row_bytes * (size_t)from + channels * (size_t)(first + dx),
               channels * (size_t)(end - first));
        memset(to + channels * (size_t)end, fill, channels * (size_t)(shape.width - end));
    }
    exchange(canvas);
}

/* ---- affine -------------------------------------------------------------------------------- */

#define ONE ((int64_t)1 << 32)

static int64_t to_fixed(double value)
{
    return (int64_t)floor(value * (double)ONE + 0.5);
}

/* The two pixels of a line of n whose centres lie around x, and the weight of the second one. At
 * the edge a neighbour stands for the one that is missing. */
struct around {
    int32_t first, second, weight;
};

static inline struct around around(int64_t x, int n)
{
    const int64_t u = x - ONE / 2 + ONE; /* + ONE: never negative */
    const int32_t at = (int32_t)(u >> 32) - 1;
    return (struct around){at < 0 ? 0 : at, at + 1 < n ? at + 1 : at, (int32_t)(u >> 21 & 2047)};
}

/* One output row; (x, y) is the source point of its first pixel's centre. Called with a constant
 * number of channels, so that the loops over them vanish. */
static inline void affine_row(const struct tdmi_canvas *canvas, const int channels, int64_t x,
                              int64_t y, int64_t dx, int64_t dy, uint8_t fill, uint8_t *to)
{
    const struct tdmi_augment_shape shape = canvas->shape;
    const ptrdiff_t row_bytes = (ptrdiff_t)row_bytes_of(shape);
    const int64_t right = shape.width * ONE, bottom = shape.height * ONE;
    for (int i = 0; i < shape.width; i++, x += dx, y += dy, to += channels) {
        if (x < 0 || y < 0 || x >= right || y >= bottom) {
            for (int c = 0; c < channels; c++)
                to[c] = fill;
            continue;
        }
        const struct around columns = around(x, shape.width), rows = around(y, shape.height);
        const ptrdiff_t left = (ptrdiff_t)columns.first * channels;
        const ptrdiff_t next = (ptrdiff_t)columns.second * channels;
        const uint8_t *above = canvas->pixels + rows.first * row_bytes;
        const uint8_t *below = canvas->pixels + rows.second * row_bytes;
        for (int c = 0; c < channels; c++) {
            int32_t high =
                above[left + c] * (2048 - columns.weight) + above[next + c] * columns.weight;
            int32_t low =
                below[left + c] * (2048 - columns.weight) + below[next + c] * columns.weight;
            to[c] = (uint8_t)((high * (2048 - rows.weight) + low * rows.weight + (1 << 21)) >> 22);
        }
    }
}

void tdmi_warp_affine(struct tdmi_canvas *canvas, const double m[6], uint8_t fill)
{
    const struct tdmi_augment_shape shape = canvas->shape;
    const int64_t dx = to_fixed(m[0]), dy = to_fixed(m[3]);
    for (int y = 0; y < shape.height; y++) {
        uint8_t *to = canvas->spare + row_bytes_of(shape) * (size_t)y;
        const int64_t u = to_fixed(m[0] * 0.5 + m[1] * (y + 0.5) + m[2]);
        const int64_t v = to_fixed(m[3] * 0.5 + m[4] * (y + 0.5) + m[5]);
        if (shape.channels == 3)
            affine_row(canvas, 3, u, v, dx, dy, fill, to);
        else
            affine_row(canvas, 1, u, v, dx, dy, fill, to);
    }
    exchange(canvas);
}

void tdmi_warp_rotate(struct tdmi_canvas *canvas, double degrees, uint8_t fill)
{
    const double angle = degrees * M_PI / 180;
    const double c = cos(angle), s = sin(angle);
    const double x = canvas->shape.width / 2.0, y = canvas->shape.height / 2.0;
    const double m[6] = {c, -s, x - c * x + s * y, s, c, y - s * x - c * y};
    tdmi_warp_affine(canvas, m, fill);
}

/* ---- zoom ---------------------------------------------------------------------------------- */

static inline void stretch_row(const int32_t *from, const struct around *columns, int width,
                               const int channels, uint8_t *to)
{
    for (int x = 0; x < width; x++, to += channels) {
        const struct around at = columns[x];
        for (int c = 0; c < channels; c++)
            to[c] = (uint8_t)((from[at.first * channels + c] * (2048 - at.weight) +
                               from[at.second * channels + c] * at.weight + (1 << 21)) >>
                              22);
    }
}

/* The bytes of tdmi_warp_affine: sums without rounding may be taken in any order, so whole rows are
 * blended first and then stretched. */
void tdmi_warp_zoom(struct tdmi_canvas *canvas, struct tdmi_box box)
{
    enum { WIDEST = 1024 };
    const struct tdmi_augment_shape shape = canvas->shape;
    const size_t row_bytes = row_bytes_of(shape);
    const double m[6] = {box.width / shape.width, 0, box.x, 0, box.height / shape.height, box.y};
    struct around columns[WIDEST];
    int32_t blended[3 * WIDEST];
    if (shape.width > WIDEST) {
        tdmi_warp_affine(canvas, m, 0);
        return;
    }
    int64_t u = to_fixed(m[0] * 0.5 + m[2]);
    for (int x = 0; x < shape.width; x++, u += to_fixed(m[0]))
        columns[x] = around(u, shape.width);
    for (int y = 0; y < shape.height; y++) {
        const struct around rows = around(to_fixed(m[4] * (y + 0.5) + m[5]), shape.height);
        const uint8_t *restrict above = canvas->pixels + row_bytes * (size_t)rows.first;
        const uint8_t *restrict below = canvas->pixels + row_bytes * (size_t)rows.second;
        uint8_t *to = canvas->spare + row_bytes * (size_t)y;
        for (size_t i = 0; i < row_bytes; i++)
            blended[i] = above[i] * (2048 - rows.weight) + below[i] * rows.weight;
        if (shape.channels == 3)
            stretch_row(blended, columns, shape.width, 3, to);
        else
            stretch_row(blended, columns, shape.width, 1, to);
    }
    exchange(canvas);
}
