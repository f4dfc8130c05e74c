/* Ops that are one pass over their tensors: activations, add, dropout, lrn, concat and pad. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/copies.h"
#include "backend/cuda/kernels/elementwise.h"

static int64_t values_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    return call->n * tdmi_shape_values(desc->out);
}

/* ---- relu, relu6, hswish, sigmoid ------------------------------------------------------------ */

static enum tdmi_act act_of(const struct tdmi_op_desc *desc)
{
    return desc->kind == TDMI_OP_RELU      ? TDMI_ACT_RELU
           : desc->kind == TDMI_OP_RELU6   ? TDMI_ACT_RELU6
           : desc->kind == TDMI_OP_HSWISH  ? TDMI_ACT_HSWISH
           : desc->kind == TDMI_OP_SIGMOID ? TDMI_ACT_SIGMOID
                                           : TDMI_ACT_NONE;
}

/* A new op needs its activation above, and below what its gradient reads: y or x. */
static bool is_known(const struct tdmi_op_desc *desc)
{
    return act_of(desc) != TDMI_ACT_NONE;
}

static void act_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call)
{
    TDMI_CUDA_LAUNCH(stream, "activation, forward", tdmi_cuda_act, desc->storage, act_of(desc),
                     call->x[0], call->y, values_of(desc, call));
}

static void act_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "activation, backward", tdmi_cuda_act_gradient, desc->storage,
                         act_of(desc), desc->kind == TDMI_OP_HSWISH ? call->x[0] : call->y,
                         call->dy, call->dx[0], values_of(desc, call));
}

const struct tdmi_kernel tdmi_cuda_activation = {
    .can_run = is_known, .forward = act_forward, .backward = act_backward};

/* ---- add ------------------------------------------------------------------------------------- */

static void add_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call)
{
    TDMI_CUDA_LAUNCH(stream, "add, forward", tdmi_cuda_sum, desc->storage, call->x[0], call->x[1],
                     call->y, values_of(desc, call));
}

static void add_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    for (int k = 0; k < 2; k++)
        if (call->dx[k] && call->dx[k] != call->dy) /* they may be one (graph/share.c) */
            TDMI_CUDA_LAUNCH(stream, "add, backward", tdmi_cuda_act, desc->storage, TDMI_ACT_NONE,
                             call->dy, call->dx[k], values_of(desc, call));
}

const struct tdmi_kernel tdmi_cuda_add = {.forward = add_forward, .backward = add_backward};

/* ---- dropout --------------------------------------------------------------------------------- */

static void drop(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_op_call *call, const void *from, void *to, const char *what)
{
    const struct tdmi_cuda_dropout draws = {
        .type = desc->storage,
        .n = call->n,
        .values = tdmi_shape_values(desc->out),
        .draws = call->draws,
        .first = (uint32_t)desc->attrs.stream << 24,
        .rate = (float)desc->attrs.rate,
        .scale = (float)(1.0 / (1.0 - desc->attrs.rate)),
    };
    TDMI_CUDA_LAUNCH(stream, what, tdmi_cuda_dropout_apply, &draws, from, to);
}

static void dropout_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    if (desc->is_training)
        drop(stream, desc, call, call->x[0], call->y, "dropout, forward");
    else
        TDMI_CUDA_LAUNCH(stream, "dropout, forward", tdmi_cuda_act, desc->storage, TDMI_ACT_NONE,
                         call->x[0], call->y, values_of(desc, call));
}

static void dropout_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call)
{
    if (desc->wants_dx)
        drop(stream, desc, call, call->dy, call->dx[0], "dropout, backward");
}

const struct tdmi_kernel tdmi_cuda_dropout = {.forward = dropout_forward,
                                              .backward = dropout_backward};

/* ---- lrn ------------------------------------------------------------------------------------- */

static struct tdmi_cuda_lrn lrn_of(const struct tdmi_op_desc *desc, int n)
{
    return (struct tdmi_cuda_lrn){
        .type = desc->storage,
        .pixels = n * tdmi_shape_pixels(desc->out),
        .channels = desc->out.c,
        .kernel = desc->attrs.kernel,
        .part = (float)(desc->attrs.alpha / desc->attrs.kernel),
        .beta = (float)desc->attrs.beta,
        .offset = (float)desc->attrs.offset,
    };
}

static void lrn_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_lrn it = lrn_of(desc, call->n);
    TDMI_CUDA_LAUNCH(stream, "lrn, forward", tdmi_cuda_lrn_forward, &it, call->x[0], call->y);
}

static void lrn_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_lrn it = lrn_of(desc, call->n);
    if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "lrn, backward", tdmi_cuda_lrn_backward, &it, call->x[0], call->dy,
                         call->dx[0]);
}

const struct tdmi_kernel tdmi_cuda_lrn = {.forward = lrn_forward, .backward = lrn_backward};

/* ---- concat ---------------------------------------------------------------------------------- */

/* Copy the channels of input k to their place in the output, or back. */
static void copy_part(tdmi_stream *stream, const struct tdmi_op_desc *desc, int n, int k,
                      bool is_back, const void *from, void *to)
{
    const int own = desc->in[k].c, all = desc->out.c, first = k == 0 ? 0 : desc->in[0].c;
    const struct tdmi_cuda_channels_copy copy = {
        .type = desc->storage,
        .pixels = n * tdmi_shape_pixels(desc->out),
        .channels = own,
        .from_channels = is_back ? all : own,
        .to_channels = is_back ? own : all,
        .from_first = is_back ? first : 0,
        .to_first = is_back ? 0 : first,
    };
    TDMI_CUDA_LAUNCH(stream, is_back ? "concat, backward" : "concat, forward",
                     tdmi_cuda_copy_channels, &copy, from, to);
}

static void concat_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call)
{
    for (int k = 0; k < 2; k++)
        copy_part(stream, desc, call->n, k, false, call->x[k], call->y);
}

static void concat_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    for (int k = 0; k < 2; k++)
        if (call->dx[k])
            copy_part(stream, desc, call->n, k, true, call->dy, call->dx[k]);
}

const struct tdmi_kernel tdmi_cuda_concat = {.forward = concat_forward,
                                             .backward = concat_backward};

/* ---- pad ------------------------------------------------------------------------------------- */

static struct tdmi_cuda_frame frame_of(const struct tdmi_op_desc *desc, int n)
{
    const struct tdmi_shape in = desc->in[0], out = desc->out;
    return (struct tdmi_cuda_frame){
        .type = desc->storage,
        .n = n,
        .h = in.h,
        .w = in.w,
        .channels = in.c,
        .out_h = out.h,
        .out_w = out.w,
        .out_channels = out.c,
        .top = desc->attrs.pad_top,
        .left = desc->attrs.pad_left,
        .front = desc->attrs.pad_front,
    };
}

static void pad_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_frame frame = frame_of(desc, call->n);
    TDMI_CUDA_LAUNCH(stream, "pad, forward", tdmi_cuda_frame_put, &frame, call->x[0], call->y);
}

static void pad_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_frame frame = frame_of(desc, call->n);
    if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "pad, backward", tdmi_cuda_frame_take, &frame, call->dy,
                         call->dx[0]);
}

const struct tdmi_kernel tdmi_cuda_pad = {.forward = pad_forward, .backward = pad_backward};
