/* The op dense: every shape by dense.cu. */
#include "backend/cuda/channels.h"
#include "backend/cuda/columns.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/dense.h"

static struct tdmi_cuda_dense shape_of(const struct tdmi_op_desc *desc, int n)
{
    return (struct tdmi_cuda_dense){
        .type = desc->storage, .n = n, .in = tdmi_shape_values(desc->in[0]), .out = desc->out.c};
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    tdmi_cuda_note(stream,
                   tdmi_cuda_dense_forward(tdmi_cuda_queue(stream), &it, call->x[0],
                                           call->params[0],
                                           desc->attrs.has_bias ? call->params[1] : NULL, call->y),
                   "dense, forward");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    tdmi_cuda_note(
        stream, tdmi_cuda_dense_weight_gradient(queue, &it, call->x[0], call->dy, call->dparams[0]),
        "dense, gradient of weights");
    if (desc->attrs.has_bias)
        tdmi_cuda_note(stream,
                       tdmi_cuda_channel_sum(queue, desc->storage, call->dy, call->n, desc->out.c,
                                             call->dparams[1], call->workspace),
                       "dense, gradient of the bias");
    if (desc->wants_dx)
        tdmi_cuda_note(
            stream,
            tdmi_cuda_dense_data_gradient(queue, &it, call->dy, call->params[0], call->dx[0]),
            "dense, gradient of its input");
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    if (desc->is_training && desc->attrs.has_bias)
        needs->workspace_bytes = tdmi_cuda_columns_sum_bytes(desc->max_images, desc->out.c);
}

const struct tdmi_kernel tdmi_cuda_dense = {
    .needs = needs, .forward = forward, .backward = backward};
