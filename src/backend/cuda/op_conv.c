/*
 * The op conv: what op_depthwise.c can run is handed on to it, with all that it takes over from its
 * neighbours; every other shape is the op alone, by conv.cu.
 */
#include "backend/cuda/channels.h"
#include "backend/cuda/columns.h"
#include "backend/cuda/conv.h"
#include "backend/cuda/cuda.h"

static bool is_handed_on(const struct tdmi_op_desc *desc)
{
    return tdmi_cuda_depthwise.can_run(desc);
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    return is_handed_on(desc) && tdmi_cuda_depthwise.can_fuse(desc);
}

static struct tdmi_cuda_conv shape_of(const struct tdmi_op_desc *desc, int n)
{
    const struct tdmi_op_attrs *attrs = &desc->attrs;
    return (struct tdmi_cuda_conv){
        .type = desc->storage,
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
    if (is_handed_on(desc)) {
        tdmi_cuda_depthwise.forward(stream, desc, call);
        return;
    }
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    tdmi_cuda_note(stream,
                   tdmi_cuda_conv_forward(tdmi_cuda_queue(stream), &it, call->x[0], call->params[0],
                                          desc->attrs.has_bias ? call->params[1] : NULL, call->y),
                   "conv, forward");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    if (is_handed_on(desc)) {
        tdmi_cuda_depthwise.backward(stream, desc, call);
        return;
    }
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    tdmi_cuda_note(stream,
                   tdmi_cuda_conv_weight_gradient(queue, &it, call->x[0], call->dy,
                                                  call->dparams[0], call->workspace),
                   "conv, gradient of weights");
    if (desc->attrs.has_bias)
        tdmi_cuda_note(stream,
                       tdmi_cuda_channel_sum(queue, desc->storage, call->dy,
                                             (int64_t)call->n * desc->out.h * desc->out.w,
                                             desc->out.c, call->dparams[1], call->workspace),
                       "conv, gradient of the bias");
    if (desc->wants_dx)
        tdmi_cuda_note(stream,
                       tdmi_cuda_conv_data_gradient(queue, &it, call->dy, call->params[0],
                                                    call->dx_add[0], call->dx[0]),
                       "conv, gradient of its input");
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    if (is_handed_on(desc)) {
        tdmi_cuda_depthwise.needs(desc, needs);
        return;
    }
    const struct tdmi_cuda_conv it = shape_of(desc, desc->max_images);
    if (!desc->is_training)
        return;
    needs->workspace_bytes = tdmi_cuda_conv_workspace_bytes(&it);
    const size_t bias = tdmi_cuda_columns_sum_bytes(
        (int64_t)desc->max_images * desc->out.h * desc->out.w, desc->out.c);
    if (desc->attrs.has_bias && bias > needs->workspace_bytes)
        needs->workspace_bytes = bias;
}

static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    if (is_handed_on(desc))
        tdmi_cuda_depthwise.pack(stream, desc, call);
}

const struct tdmi_kernel tdmi_cuda_conv = {
    .can_fuse = can_fuse,
    .adds_dx = true,
    .needs = needs,
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
