/* The ops relu, relu6 and add. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/elementwise.h"

static int64_t values_of(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    return call->n * tdmi_shape_values(desc->out);
}

static enum tdmi_act act_of(const struct tdmi_op_desc *desc)
{
    return desc->kind == TDMI_OP_RELU6 ? TDMI_ACT_RELU6 : TDMI_ACT_RELU;
}

static void act_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call)
{
    tdmi_cuda_note(stream,
                   tdmi_cuda_add_act(tdmi_cuda_queue(stream), desc->storage, act_of(desc),
                                     call->x[0], NULL, call->y, values_of(desc, call)),
                   "activation, forward");
}

static void act_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    if (!desc->wants_dx)
        return;
    tdmi_cuda_note(stream,
                   tdmi_cuda_act_gradient(tdmi_cuda_queue(stream), desc->storage, act_of(desc),
                                          call->y, call->dy, call->dx[0], values_of(desc, call)),
                   "activation, backward");
}

static void add_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call)
{
    tdmi_cuda_note(stream,
                   tdmi_cuda_add_act(tdmi_cuda_queue(stream), desc->storage, TDMI_ACT_NONE,
                                     call->x[0], call->x[1], call->y, values_of(desc, call)),
                   "add, forward");
}

static void add_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    for (int k = 0; k < 2; k++)
        if (call->dx[k] && call->dx[k] != call->dy) /* they may be one (graph/share.c) */
            tdmi_cuda_note(stream,
                           tdmi_cuda_add_act(tdmi_cuda_queue(stream), desc->storage, TDMI_ACT_NONE,
                                             call->dy, NULL, call->dx[k], values_of(desc, call)),
                           "add, backward");
}

const struct tdmi_kernel tdmi_cuda_relu = {.forward = act_forward, .backward = act_backward};
const struct tdmi_kernel tdmi_cuda_relu6 = {.forward = act_forward, .backward = act_backward};
const struct tdmi_kernel tdmi_cuda_add = {.forward = add_forward, .backward = add_backward};
