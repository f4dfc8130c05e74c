/* 1 / (1 + exp(-x)), whose slope is y (1 - y). */
#include "backend/ref/ref.h"

#include <math.h>

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    (void)stream;
    int64_t n = call->n * tdmi_shape_values(desc->out);
    for (int64_t i = 0; i < n; i++)
        call->y[i] = (float)(1.0 / (1.0 + exp(-(double)call->x[0][i])));
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    (void)stream;
    if (!desc->wants_dx)
        return;
    int64_t n = call->n * tdmi_shape_values(desc->out);
    for (int64_t i = 0; i < n; i++)
        call->dx[0][i] = call->dy[i] * call->y[i] * (1.0f - call->y[i]);
}

const struct tdmi_kernel tdmi_ref_sigmoid = {.forward = forward, .backward = backward};
