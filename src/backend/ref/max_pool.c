/*
 * Max pooling. Saved: which pixel of the window won (the first of equals), one byte a value, so
 * backward needs neither input nor output.
 */
#include "backend/ref/ref.h"

#include <string.h>

struct window {
    int y0, x0; /* of the window in the picture; may be negative in the padding */
};

static struct window window_at(const struct tdmi_op_desc *desc, int row, int column)
{
    return (struct window){row * desc->attrs.stride - desc->attrs.pad_top,
                           column * desc->attrs.stride - desc->attrs.pad_left};
}

static bool is_inside(struct tdmi_shape shape, int y, int x)
{
    return y >= 0 && y < shape.h && x >= 0 && x < shape.w;
}

/* One output pixel, all channels. */
static void pool_pixel(const struct tdmi_op_desc *desc, struct window at, const float *image,
                       float *y, uint8_t *winner)
{
    struct tdmi_shape in = desc->in[0];
    int kernel = desc->attrs.kernel;
    bool is_first = true;
    for (int tap = 0; tap < kernel * kernel; tap++) {
        int row = at.y0 + tap / kernel, column = at.x0 + tap % kernel;
        if (!is_inside(in, row, column))
            continue;
        const float *x = image + ((int64_t)row * in.w + column) * in.c;
        for (int c = 0; c < in.c; c++) {
            bool wins = is_first || x[c] > y[c];
            y[c] = wins ? x[c] : y[c];
            if (winner)
                winner[c] = wins ? (uint8_t)tap : winner[c];
        }
        is_first = false;
    }
}

TDMI_KERNEL_RUN(forward)
{
    struct tdmi_shape out = desc->out;
    int64_t at = 0;
    for (int i = 0; i < call->n; i++) {
        const float *image = call->x[0] + i * tdmi_shape_values(desc->in[0]);
        for (int row = 0; row < out.h; row++)
            for (int column = 0; column < out.w; column++, at += out.c)
                pool_pixel(desc, window_at(desc, row, column), image, call->y + at,
                           desc->is_training ? (uint8_t *)call->saved + at : NULL);
    }
}

TDMI_KERNEL_RUN(backward)
{
    if (!desc->wants_dx)
        return;
    struct tdmi_shape in = desc->in[0], out = desc->out;
    int kernel = desc->attrs.kernel;
    const uint8_t *winner = call->saved;
    int64_t at = 0;
    memset(call->dx[0], 0, sizeof(float) * (size_t)(call->n * tdmi_shape_values(in)));
    for (int i = 0; i < call->n; i++) {
        float *image = call->dx[0] + i * tdmi_shape_values(in);
        for (int row = 0; row < out.h; row++) {
            for (int column = 0; column < out.w; column++, at += out.c) {
                struct window w = window_at(desc, row, column);
                for (int c = 0; c < out.c; c++) {
                    int tap = winner[at + c];
                    int64_t pixel = (int64_t)(w.y0 + tap / kernel) * in.w + w.x0 + tap % kernel;
                    image[pixel * in.c + c] += call->dy[at + c];
                }
            }
        }
    }
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    if (desc->is_training)
        needs->saved_bytes = (size_t)desc->max_images * (size_t)tdmi_shape_values(desc->out);
}

const struct tdmi_kernel tdmi_ref_max_pool = {
    .needs = needs, .forward = forward, .backward = backward};
