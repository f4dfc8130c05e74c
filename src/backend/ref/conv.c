/*
 * Convolution, weights (kernel, kernel, in, out). The picture is copied into a padded frame first;
 * then, because NHWC keeps the window's row contiguous, each output row is one matrix product per
 * kernel row:
 *
 *     y[row] (out_w × out)  +=  frame row (out_w windows × kernel·in)  ·  w[ky] (kernel·in × out)
 *
 * The gradient of the input is the same convolution, stride 1, over the output's gradient spread
 * out with zeros, with the weights mirrored and transposed. The gradient of the weights is the
 * product with the roles of window and pixel exchanged.
 */
#include "backend/ref/ref.h"
#include "base/multiversion.h"

#include <string.h>

/* A picture with a border of zeros and, for backward, zeros between its pixels. */
struct frame {
    int h, w; /* of the frame */
    int step; /* distance of neighbouring pixels in it */
    int border;
};

static struct frame forward_frame(const struct tdmi_op_desc *desc)
{
    int pads = desc->attrs.pad_before + desc->attrs.pad_after;
    return (struct frame){desc->in[0].h + pads, desc->in[0].w + pads, 1, desc->attrs.pad_before};
}

/* Sized so that a stride-1 convolution over it gives exactly the input's shape. */
static struct frame backward_frame(const struct tdmi_op_desc *desc)
{
    int reach = desc->attrs.kernel - 1;
    return (struct frame){desc->in[0].h + reach, desc->in[0].w + reach, desc->attrs.stride,
                          reach - desc->attrs.pad_before};
}

static size_t frame_values(struct frame frame, int channels)
{
    return (size_t)frame.h * (size_t)frame.w * (size_t)channels;
}

/* The frame must be zero where no pixel falls: it is cleared once a call, and every image of the
 * call writes the same places. Pixels that fall outside (a kernel smaller than its stride, or
 * padding wider than the kernel) are left out. */
static void fill_frame(struct frame frame, struct tdmi_shape shape, const float *image, float *to)
{
    size_t row_bytes = (size_t)shape.c * sizeof(float);
    for (int y = 0; y < shape.h; y++) {
        int frame_y = frame.border + y * frame.step;
        if (frame_y < 0 || frame_y >= frame.h)
            continue;
        for (int x = 0; x < shape.w; x++) {
            int frame_x = frame.border + x * frame.step;
            if (frame_x >= 0 && frame_x < frame.w)
                memcpy(to + ((int64_t)frame_y * frame.w + frame_x) * shape.c,
                       image + ((int64_t)y * shape.w + x) * shape.c, row_bytes);
        }
    }
}

static void conv_rows(struct frame frame, int kernel, int stride, int in_channels,
                      struct tdmi_shape out, const float *framed, const float *weights, float *y)
{
    for (int row = 0; row < out.h; row++) {
        for (int ky = 0; ky < kernel; ky++) {
            tdmi_ref_multiply_add(&(struct tdmi_product){
                .rows = out.w,
                .columns = out.c,
                .depth = kernel * in_channels,
                .a = framed + (int64_t)(row * stride + ky) * frame.w * in_channels,
                .a_row = (int64_t)stride * in_channels,
                .a_column = 1,
                .b = weights + (int64_t)ky * kernel * in_channels * out.c,
                .b_row = out.c,
                .c = y + (int64_t)row * out.w * out.c,
                .c_row = out.c,
            });
        }
    }
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    (void)stream;
    struct frame frame = forward_frame(desc);
    float *framed = call->workspace;
    memset(framed, 0, frame_values(frame, desc->in[0].c) * sizeof(float));
    for (int i = 0; i < call->n; i++) {
        float *y = call->y + i * tdmi_shape_values(desc->out);
        for (int64_t p = 0; p < tdmi_shape_pixels(desc->out); p++)
            for (int c = 0; c < desc->out.c; c++)
                y[p * desc->out.c + c] = desc->attrs.has_bias ? call->params[1][c] : 0.0f;
        fill_frame(frame, desc->in[0], call->x[0] + i * tdmi_shape_values(desc->in[0]), framed);
        conv_rows(frame, desc->attrs.kernel, desc->attrs.stride, desc->in[0].c, desc->out, framed,
                  call->params[0], y);
    }
}

static void backward_weights(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    struct frame frame = forward_frame(desc);
    struct tdmi_shape in = desc->in[0], out = desc->out;
    int row_values = desc->attrs.kernel * in.c;
    float *framed = call->workspace;
    memset(framed, 0, frame_values(frame, in.c) * sizeof(float));
    memset(call->dparams[0], 0,
           sizeof(float) * (size_t)desc->attrs.kernel * (size_t)row_values * (size_t)out.c);
    for (int i = 0; i < call->n; i++) {
        fill_frame(frame, in, call->x[0] + i * tdmi_shape_values(in), framed);
        for (int row = 0; row < out.h; row++) {
            for (int ky = 0; ky < desc->attrs.kernel; ky++) {
                tdmi_ref_multiply_add(&(struct tdmi_product){
                    .rows = row_values,
                    .columns = out.c,
                    .depth = out.w,
                    .a = framed + (int64_t)(row * desc->attrs.stride + ky) * frame.w * in.c,
                    .a_row = 1,
                    .a_column = (int64_t)desc->attrs.stride * in.c,
                    .b = call->dy + i * tdmi_shape_values(out) + (int64_t)row * out.w * out.c,
                    .b_row = out.c,
                    .c = call->dparams[0] + (int64_t)ky * row_values * out.c,
                    .c_row = out.c,
                });
            }
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

static void backward_input(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    struct frame frame = backward_frame(desc);
    struct tdmi_shape in = desc->in[0], out = desc->out;
    int kernel = desc->attrs.kernel;
    float *framed = call->workspace;
    float *mirrored = framed + frame_values(frame, out.c);
    for (int at = 0; at < kernel * kernel; at++)
        tdmi_ref_transpose(call->params[0] + (int64_t)at * in.c * out.c, in.c, out.c,
                           mirrored + (int64_t)(kernel * kernel - 1 - at) * in.c * out.c);
    memset(framed, 0, frame_values(frame, out.c) * sizeof(float));
    memset(call->dx, 0, sizeof(float) * (size_t)(call->n * tdmi_shape_values(in)));
    for (int i = 0; i < call->n; i++) {
        fill_frame(frame, out, call->dy + i * tdmi_shape_values(out), framed);
        conv_rows(frame, kernel, 1, out.c, in, framed, mirrored,
                  call->dx + i * tdmi_shape_values(in));
    }
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    (void)stream;
    backward_weights(desc, call);
    if (desc->attrs.has_bias)
        backward_bias(desc, call);
    if (desc->wants_dx)
        backward_input(desc, call);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    size_t kernel = (size_t)desc->attrs.kernel;
    size_t values = frame_values(forward_frame(desc), desc->in[0].c);
    size_t backward_values = frame_values(backward_frame(desc), desc->out.c) +
                             kernel * kernel * (size_t)desc->in[0].c * (size_t)desc->out.c;
    if (desc->is_training && desc->wants_dx && backward_values > values)
        values = backward_values;
    needs->workspace_bytes = values * sizeof(float);
}

const struct tdmi_kernel tdmi_ref_conv = {NULL, needs, forward, backward};
