/* The op lrn. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/lrn.h"

static struct tdmi_cuda_lrn shape_of(const struct tdmi_op_desc *desc, int n)
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

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_lrn it = shape_of(desc, call->n);
    tdmi_cuda_note(stream, tdmi_cuda_lrn_forward(tdmi_cuda_queue(stream), &it, call->x[0], call->y),
                   "lrn, forward");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_lrn it = shape_of(desc, call->n);
    if (desc->wants_dx)
        tdmi_cuda_note(
            stream,
            tdmi_cuda_lrn_backward(tdmi_cuda_queue(stream), &it, call->x[0], call->dy, call->dx[0]),
            "lrn, backward");
}

const struct tdmi_kernel tdmi_cuda_lrn = {.forward = forward, .backward = backward};
