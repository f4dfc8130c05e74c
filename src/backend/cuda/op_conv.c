/* The op conv: every shape by conv.cu. */
#include "backend/cuda/channels.h"
#include "backend/cuda/columns.h"
#include "backend/cuda/conv.h"
#include "backend/cuda/cuda.h"

static struct tdmi_cuda_conv shape_of(const struct tdmi_op_desc *desc, int n)
{
    const struct tdmi_op_attrs *attrs = &desc->attrs;
    return (struct tdmi_cuda_conv){
        .type = TDMI_DTYPE_F32,
        .in = desc->in[0],
        .out = desc->out,
        .n = n,
        .kernel = attrs->kernel,
        .stride = attrs->stride,
        .dilation = attrs->dilation,
        .groups = attrs->groups,
        .pad_top = attrs->pad_top,
        .pad_left = attrs->pad_left,
    };
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    tdmi_cuda_note(stream,
                   tdmi_cuda_conv_forward(tdmi_cuda_queue(stream), &it, call->x[0], call->params[0],
                                          desc->attrs.has_bias ? call->params[1] : NULL, call->y),
                   "conv, forward");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    tdmi_cuda_note(stream,
                   tdmi_cuda_conv_weight_gradient(queue, &it, call->x[0], call->dy,
                                                  call->dparams[0], call->workspace),
                   "conv, gradient of weights");
    if (desc->attrs.has_bias)
        tdmi_cuda_note(stream,
                       tdmi_cuda_channel_sum(queue, TDMI_DTYPE_F32, call->dy,
                                             (int64_t)call->n * desc->out.h * desc->out.w,
                                             desc->out.c, call->dparams[1], call->workspace),
                       "conv, gradient of the bias");
    if (desc->wants_dx)
        tdmi_cuda_note(
            stream,
            tdmi_cuda_conv_data_gradient(queue, &it, call->dy, call->params[0], call->dx[0]),
            "conv, gradient of its input");
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct tdmi_cuda_conv it = shape_of(desc, desc->max_images);
    if (!desc->is_training)
        return;
    needs->workspace_bytes = tdmi_cuda_conv_workspace_bytes(&it);
    const size_t bias = tdmi_cuda_columns_sum_bytes(
        (int64_t)desc->max_images * desc->out.h * desc->out.w, desc->out.c);
    if (desc->attrs.has_bias && bias > needs->workspace_bytes)
        needs->workspace_bytes = bias;
}

const struct tdmi_kernel tdmi_cuda_conv = {
    .needs = needs, .forward = forward, .backward = backward};
