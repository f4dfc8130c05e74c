/* The sum of two tensors. */
#include "backend/ref/ref.h"

#include <string.h>

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    (void)stream;
    int64_t n = call->n * tdmi_shape_values(desc->out);
    for (int64_t i = 0; i < n; i++)
        call->y[i] = call->x[0][i] + call->x[1][i];
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    (void)stream;
    size_t bytes = sizeof(float) * (size_t)(call->n * tdmi_shape_values(desc->out));
    for (int k = 0; k < 2; k++)
        if (call->dx[k] && call->dx[k] != call->dy) /* they may be one (graph/share.c) */
            memcpy(call->dx[k], call->dy, bytes);
}

const struct tdmi_kernel tdmi_ref_add = {.forward = forward, .backward = backward};
