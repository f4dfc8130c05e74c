/* The op dropout. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/dropout.h"
#include "backend/cuda/kernels/elementwise.h"

static struct tdmi_cuda_dropout draws_of(const struct tdmi_op_desc *desc,
                                         const struct tdmi_op_call *call)
{
    return (struct tdmi_cuda_dropout){
        .type = desc->storage,
        .n = call->n,
        .values = tdmi_shape_values(desc->out),
        .draws = call->draws,
        .first = (uint32_t)desc->attrs.stream << 24,
        .rate = (float)desc->attrs.rate,
        .scale = (float)(1.0 / (1.0 - desc->attrs.rate)),
    };
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_dropout draws = draws_of(desc, call);
    const int code =
        desc->is_training
            ? tdmi_cuda_dropout_apply(tdmi_cuda_queue(stream), &draws, call->x[0], call->y)
            : tdmi_cuda_add_act(tdmi_cuda_queue(stream), desc->storage, TDMI_ACT_NONE, call->x[0],
                                NULL, call->y, call->n * draws.values);
    tdmi_cuda_note(stream, code, "dropout, forward");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    if (!desc->wants_dx)
        return;
    const struct tdmi_cuda_dropout draws = draws_of(desc, call);
    tdmi_cuda_note(stream,
                   tdmi_cuda_dropout_apply(tdmi_cuda_queue(stream), &draws, call->dy, call->dx[0]),
                   "dropout, backward");
}

const struct tdmi_kernel tdmi_cuda_dropout = {.forward = forward, .backward = backward};
