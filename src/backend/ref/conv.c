/*
 * Convolution, weights (kernel, kernel, in / groups, out). The picture is copied into a padded
 * frame first; then, because NHWC keeps the window's row contiguous, each output row is one matrix
 * product per kernel row (per tap and group where dilation or groups break the row up):
 *
 *     y[row] (out_w × out)  +=  frame row (out_w windows × kernel·in)  ·  w[ky] (kernel·in × out)
 *
 * The gradient of the input is the same convolution, stride 1, over the output's gradient spread
 * out with zeros, with the weights mirrored and transposed. The gradient of the weights is the
 * product with the roles of window and pixel exchanged. Depthwise products would have one column
 * and be one deep: they are plain loops over the channels instead.
 */
#include "backend/ref/ref.h"
#include "base/system/multiversion.h"

#include <string.h>

/* A picture with a border of zeros and, for backward, zeros between its pixels. */
struct frame {
    int h, w; /* of the frame */
    int step; /* distance of neighbouring pixels in it */
    int border_y, border_x;
};

/* A convolution over a frame, in the channels of which it reads and writes. */
struct walk {
    struct frame frame;
    struct tdmi_shape out;
    int in_c, kernel, stride, dilation, groups;
};

static struct walk forward_walk(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    struct frame frame = {desc->in[0].h + a->pad_top + a->pad_bottom,
                          desc->in[0].w + a->pad_left + a->pad_right, 1, a->pad_top, a->pad_left};
    return (struct walk){frame,     desc->out,   desc->in[0].c, a->kernel,
                         a->stride, a->dilation, a->groups};
}

/* Sized so that a stride-1 convolution over it gives exactly the input's shape. */
static struct walk backward_walk(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    int reach = a->dilation * (a->kernel - 1);
    struct frame frame = {desc->in[0].h + reach, desc->in[0].w + reach, a->stride,
                          reach - a->pad_top, reach - a->pad_left};
    return (struct walk){frame, desc->in[0], desc->out.c, a->kernel, 1, a->dilation, a->groups};
}

static bool is_depthwise(const struct walk *walk)
{
    return walk->in_c == walk->groups && walk->out.c == walk->groups;
}

static size_t frame_values(const struct walk *walk)
{
    return (size_t)walk->frame.h * (size_t)walk->frame.w * (size_t)walk->in_c;
}

static size_t weight_values(const struct walk *walk)
{
    size_t kernel = (size_t)walk->kernel;
    return kernel * kernel * (size_t)(walk->in_c / walk->groups) * (size_t)walk->out.c;
}

/* The frame must be zero where no pixel falls: it is cleared once a call, and every image of the
 * call writes the same places. Pixels that fall outside (a kernel smaller than its stride, or
 * padding wider than the kernel) are left out. */
static void fill_frame(struct frame frame, struct tdmi_shape shape, const float *image, float *to)
{
    size_t row_bytes = (size_t)shape.c * sizeof(float);
    for (int y = 0; y < shape.h; y++) {
        int frame_y = frame.border_y + y * frame.step;
        if (frame_y < 0 || frame_y >= frame.h)
            continue;
        for (int x = 0; x < shape.w; x++) {
            int frame_x = frame.border_x + x * frame.step;
            if (frame_x >= 0 && frame_x < frame.w)
                memcpy(to + ((int64_t)frame_y * frame.w + frame_x) * shape.c,
                       image + ((int64_t)y * shape.w + x) * shape.c, row_bytes);
        }
    }
}

/* The source of one output row of one image: a run of taps, in one group. */
struct taps {
    int depth, columns;  /* values of the window; output channels of the group */
    const float *window; /* in the frame, of the row's first pixel */
    int64_t weights;     /* where their weights begin */
    int first_out;       /* channel */
};

typedef void visit_taps(const struct walk *walk, const struct taps *taps, const void *from,
                        void *to);

/* Every run of taps of one output row, rows of the kernel first. */
static void visit(const struct walk *walk, const float *framed, int row, visit_taps *run,
                  const void *from, void *to)
{
    int depth = walk->in_c / walk->groups, columns = walk->out.c / walk->groups;
    int width = walk->groups == 1 && walk->dilation == 1 ? walk->kernel : 1;
    for (int ky = 0; ky < walk->kernel; ky++)
        for (int kx = 0; kx < walk->kernel; kx += width)
            for (int g = 0; g < walk->groups; g++) {
                int64_t y = row * walk->stride + ky * walk->dilation;
                int64_t tap = (int64_t)ky * walk->kernel + kx;
                struct taps taps = {
                    .depth = width * depth,
                    .columns = columns,
                    .window = framed + (y * walk->frame.w + kx * walk->dilation) * walk->in_c +
                              (int64_t)g * depth,
                    .weights = tap * depth * walk->out.c + (int64_t)g * columns,
                    .first_out = g * columns,
                };
                run(walk, &taps, from, to);
            }
}

/* to is an output row, from the weights. */
static void multiply(const struct walk *walk, const struct taps *taps, const void *from, void *to)
{
    tdmi_ref_multiply_add(&(struct tdmi_product){
        .rows = walk->out.w,
        .columns = taps->columns,
        .depth = taps->depth,
        .a = taps->window,
        .a_row = (int64_t)walk->stride * walk->in_c,
        .a_column = 1,
        .b = (const float *)from + taps->weights,
        .b_row = walk->out.c,
        .c = (float *)to + taps->first_out,
        .c_row = walk->out.c,
    });
}

/* to is the weights' gradient, from an output row's. */
static void multiply_back(const struct walk *walk, const struct taps *taps, const void *from,
                          void *to)
{
    tdmi_ref_multiply_add(&(struct tdmi_product){
        .rows = taps->depth,
        .columns = taps->columns,
        .depth = walk->out.w,
        .a = taps->window,
        .a_row = 1,
        .a_column = (int64_t)walk->stride * walk->in_c,
        .b = (const float *)from + taps->first_out,
        .b_row = walk->out.c,
        .c = (float *)to + taps->weights,
        .c_row = walk->out.c,
    });
}

/* The input that a tap reads for the first pixel of an output row. */
static const float *window_of(const struct walk *walk, const float *framed, int row, int tap)
{
    int64_t y = row * walk->stride + tap / walk->kernel * walk->dilation;
    int64_t x = tap % walk->kernel * walk->dilation;
    return framed + (y * walk->frame.w + x) * walk->in_c;
}

/* One output row of a depthwise convolution. */
TDMI_MULTIVERSION
static void depthwise_row(const struct walk *walk, const float *framed, int row,
                          const float *weights, float *y)
{
    int channels = walk->in_c;
    for (int tap = 0; tap < walk->kernel * walk->kernel; tap++, weights += channels) {
        const float *window = window_of(walk, framed, row, tap);
        for (int x = 0; x < walk->out.w; x++, window += walk->stride * channels)
            for (int c = 0; c < channels; c++)
                y[x * channels + c] += window[c] * weights[c];
    }
}

/* Add its contribution to the gradient of the weights. */
TDMI_MULTIVERSION
static void depthwise_row_back(const struct walk *walk, const float *framed, int row,
                               const float *dy, float *dw)
{
    int channels = walk->in_c;
    for (int tap = 0; tap < walk->kernel * walk->kernel; tap++, dw += channels) {
        const float *window = window_of(walk, framed, row, tap);
        for (int x = 0; x < walk->out.w; x++, window += walk->stride * channels)
            for (int c = 0; c < channels; c++)
                dw[c] += window[c] * dy[x * channels + c];
    }
}

static void conv_rows(const struct walk *walk, const float *framed, const float *weights, float *y)
{
    for (int row = 0; row < walk->out.h; row++, y += (int64_t)walk->out.w * walk->out.c) {
        if (is_depthwise(walk))
            depthwise_row(walk, framed, row, weights, y);
        else
            visit(walk, framed, row, multiply, weights, y);
    }
}

TDMI_KERNEL_RUN(forward)
{
    struct walk walk = forward_walk(desc);
    float *framed = call->workspace;
    memset(framed, 0, frame_values(&walk) * sizeof(float));
    for (int i = 0; i < call->n; i++) {
        float *y = call->y + i * tdmi_shape_values(desc->out);
        for (int64_t p = 0; p < tdmi_shape_pixels(desc->out); p++)
            for (int c = 0; c < desc->out.c; c++)
                y[p * desc->out.c + c] = desc->attrs.has_bias ? call->params[1][c] : 0.0f;
        fill_frame(walk.frame, desc->in[0], call->x[0] + i * tdmi_shape_values(desc->in[0]),
                   framed);
        conv_rows(&walk, framed, call->params[0], y);
    }
}

static void backward_weights(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    struct walk walk = forward_walk(desc);
    float *framed = call->workspace, *dw = call->dparams[0];
    const float *dy = call->dy;
    memset(framed, 0, frame_values(&walk) * sizeof(float));
    memset(dw, 0, weight_values(&walk) * sizeof(float));
    for (int i = 0; i < call->n; i++) {
        fill_frame(walk.frame, desc->in[0], call->x[0] + i * tdmi_shape_values(desc->in[0]),
                   framed);
        for (int row = 0; row < desc->out.h; row++, dy += (int64_t)desc->out.w * desc->out.c) {
            if (is_depthwise(&walk))
                depthwise_row_back(&walk, framed, row, dy, dw);
            else
                visit(&walk, framed, row, multiply_back, dy, dw);
        }
    }
}

static void backward_bias(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    float *sums = call->dparams[1];
    memset(sums, 0, sizeof(float) * (size_t)desc->out.c);
    for (int64_t p = 0; p < call->n * tdmi_shape_pixels(desc->out); p++)
        for (int c = 0; c < desc->out.c; c++)
            sums[c] += call->dy[p * desc->out.c + c];
}

/* (k, k, in / groups, out) -> (k, k, out / groups, in), taps in reverse order. */
static void mirror(const struct tdmi_op_desc *desc, const float *weights, float *to)
{
    int in = desc->in[0].c, out = desc->out.c, groups = desc->attrs.groups;
    int depth = in / groups, columns = out / groups;
    int last = desc->attrs.kernel * desc->attrs.kernel - 1;
    for (int tap = 0; tap <= last; tap++)
        for (int i = 0; i < depth; i++)
            for (int o = 0; o < out; o++)
                to[((int64_t)(last - tap) * columns + o % columns) * in + o / columns * depth + i] =
                    weights[((int64_t)tap * depth + i) * out + o];
}

static void backward_input(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    struct walk walk = backward_walk(desc);
    struct tdmi_shape in = desc->in[0], out = desc->out;
    float *framed = call->workspace;
    float *mirrored = framed + frame_values(&walk);
    mirror(desc, call->params[0], mirrored);
    memset(framed, 0, frame_values(&walk) * sizeof(float));
    memset(call->dx[0], 0, sizeof(float) * (size_t)(call->n * tdmi_shape_values(in)));
    for (int i = 0; i < call->n; i++) {
        fill_frame(walk.frame, out, call->dy + i * tdmi_shape_values(out), framed);
        conv_rows(&walk, framed, mirrored, call->dx[0] + i * tdmi_shape_values(in));
    }
}

TDMI_KERNEL_RUN(backward)
{
    backward_weights(desc, call);
    if (desc->attrs.has_bias)
        backward_bias(desc, call);
    if (desc->wants_dx)
        backward_input(desc, call);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    struct walk walk = forward_walk(desc), back = backward_walk(desc);
    size_t values = frame_values(&walk);
    size_t backward_values = frame_values(&back) + weight_values(&back);
    if (desc->is_training && desc->wants_dx && backward_values > values)
        values = backward_values;
    needs->workspace_bytes = values * sizeof(float);
}

const struct tdmi_kernel tdmi_ref_conv = {.needs = needs, .forward = forward, .backward = backward};
