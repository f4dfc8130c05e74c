/* The ops hswish and sigmoid. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/curves.h"

static enum tdmi_act act_of(const struct tdmi_op_desc *desc)
{
    return desc->kind == TDMI_OP_HSWISH ? TDMI_ACT_HSWISH : TDMI_ACT_SIGMOID;
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    tdmi_cuda_note(stream,
                   tdmi_cuda_curve(tdmi_cuda_queue(stream), desc->storage, act_of(desc), call->x[0],
                                   call->y, call->n * tdmi_shape_values(desc->out)),
                   "activation, forward");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    if (!desc->wants_dx)
        return;
    const float *kept = desc->kind == TDMI_OP_HSWISH ? call->x[0] : call->y;
    tdmi_cuda_note(stream,
                   tdmi_cuda_curve_gradient(tdmi_cuda_queue(stream), desc->storage, act_of(desc),
                                            kept, call->dy, call->dx[0],
                                            call->n * tdmi_shape_values(desc->out)),
                   "activation, backward");
}

const struct tdmi_kernel tdmi_cuda_hswish = {.forward = forward, .backward = backward};
const struct tdmi_kernel tdmi_cuda_sigmoid = {.forward = forward, .backward = backward};
