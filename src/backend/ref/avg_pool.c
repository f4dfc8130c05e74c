/*
 * Average pooling. A window at the border is divided by the pixels it sees, as Keras does, or by
 * its whole size, PyTorch's default (count_include_pad).
 */
#include "backend/ref/ref.h"

#include <string.h>

/* The pixels of the picture that one window sees, and what their sum is multiplied with. */
struct view {
    int y0, y1, x0, x1; /* y0 <= y < y1 */
    float weight;
};

static int at_least_zero(int at)
{
    return at > 0 ? at : 0;
}

static int at_most(int at, int size)
{
    return at < size ? at : size;
}

static struct view view_of(const struct tdmi_op_desc *desc, int row, int column)
{
    const struct tdmi_op_attrs *attrs = &desc->attrs;
    int top = row * attrs->stride - attrs->pad_top;
    int left = column * attrs->stride - attrs->pad_left;
    struct view view = {at_least_zero(top), at_most(top + attrs->kernel, desc->in[0].h),
                        at_least_zero(left), at_most(left + attrs->kernel, desc->in[0].w), 0.0f};
    int seen = (view.y1 - view.y0) * (view.x1 - view.x0);
    view.weight = 1.0f / (float)(attrs->counts_padding ? attrs->kernel * attrs->kernel : seen);
    return view;
}

/* One output pixel, all channels. */
static void pool_pixel(struct view view, struct tdmi_shape in, const float *image, float *y)
{
    memset(y, 0, sizeof(float) * (size_t)in.c);
    for (int row = view.y0; row < view.y1; row++)
        for (int column = view.x0; column < view.x1; column++) {
            const float *x = image + ((int64_t)row * in.w + column) * in.c;
            for (int c = 0; c < in.c; c++)
                y[c] += x[c];
        }
    for (int c = 0; c < in.c; c++)
        y[c] *= view.weight;
}

/* Its gradient, added to every pixel it saw. */
static void spread_pixel(struct view view, struct tdmi_shape in, const float *dy, float *image)
{
    for (int row = view.y0; row < view.y1; row++)
        for (int column = view.x0; column < view.x1; column++) {
            float *dx = image + ((int64_t)row * in.w + column) * in.c;
            for (int c = 0; c < in.c; c++)
                dx[c] += dy[c] * view.weight;
        }
}

TDMI_KERNEL_RUN(forward)
{
    struct tdmi_shape in = desc->in[0], out = desc->out;
    float *y = call->y;
    for (int i = 0; i < call->n; i++)
        for (int row = 0; row < out.h; row++)
            for (int column = 0; column < out.w; column++, y += out.c)
                pool_pixel(view_of(desc, row, column), in, call->x[0] + i * tdmi_shape_values(in),
                           y);
}

TDMI_KERNEL_RUN(backward)
{
    if (!desc->wants_dx)
        return;
    struct tdmi_shape in = desc->in[0], out = desc->out;
    const float *dy = call->dy;
    memset(call->dx[0], 0, sizeof(float) * (size_t)(call->n * tdmi_shape_values(in)));
    for (int i = 0; i < call->n; i++)
        for (int row = 0; row < out.h; row++)
            for (int column = 0; column < out.w; column++, dy += out.c)
                spread_pixel(view_of(desc, row, column), in, dy,
                             call->dx[0] + i * tdmi_shape_values(in));
}

const struct tdmi_kernel tdmi_ref_avg_pool = {
    .forward = forward, .backward = backward, TDMI_SHARES_IMAGES};
