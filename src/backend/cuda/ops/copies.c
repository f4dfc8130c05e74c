/* The ops concat and pad. */
#include "backend/cuda/kernels/copies.h"
#include "backend/cuda/cuda.h"

/* ---- concat ----------------------------------------------------------------------------- */

/* Input k beside the output, in the direction of the gradient or not. */
static struct tdmi_cuda_channels_copy part(const struct tdmi_op_desc *desc, int n, int k,
                                           bool is_back)
{
    const int own = desc->in[k].c, all = desc->out.c, first = k == 0 ? 0 : desc->in[0].c;
    return (struct tdmi_cuda_channels_copy){
        .type = desc->storage,
        .pixels = n * tdmi_shape_pixels(desc->out),
        .channels = own,
        .from_channels = is_back ? all : own,
        .to_channels = is_back ? own : all,
        .from_first = is_back ? first : 0,
        .to_first = is_back ? 0 : first,
    };
}

static void concat_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call)
{
    for (int k = 0; k < 2; k++) {
        const struct tdmi_cuda_channels_copy copy = part(desc, call->n, k, false);
        tdmi_cuda_note(stream,
                       tdmi_cuda_copy_channels(tdmi_cuda_queue(stream), &copy, call->x[k], call->y),
                       "concat, forward");
    }
}

static void concat_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    for (int k = 0; k < 2; k++) {
        const struct tdmi_cuda_channels_copy copy = part(desc, call->n, k, true);
        if (call->dx[k])
            tdmi_cuda_note(
                stream,
                tdmi_cuda_copy_channels(tdmi_cuda_queue(stream), &copy, call->dy, call->dx[k]),
                "concat, backward");
    }
}

/* ---- pad -------------------------------------------------------------------------------- */

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
    tdmi_cuda_note(stream,
                   tdmi_cuda_frame_put(tdmi_cuda_queue(stream), &frame, call->x[0], call->y),
                   "pad, forward");
}

static void pad_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_frame frame = frame_of(desc, call->n);
    if (desc->wants_dx)
        tdmi_cuda_note(stream,
                       tdmi_cuda_frame_take(tdmi_cuda_queue(stream), &frame, call->dy, call->dx[0]),
                       "pad, backward");
}

const struct tdmi_kernel tdmi_cuda_concat = {.forward = concat_forward,
                                             .backward = concat_backward};
const struct tdmi_kernel tdmi_cuda_pad = {.forward = pad_forward, .backward = pad_backward};
