/* x · min(max(x + 3, 0), 6) / 6. Its slope is 0 up to -3, (2x + 3) / 6 to 3, then 1. */
#include "backend/ref/ref.h"

static float swish(float x)
{
    if (x <= -3.0f)
        return 0.0f;
    return x >= 3.0f ? x : x * (x + 3.0f) / 6.0f;
}

static float slope(float x)
{
    if (x <= -3.0f)
        return 0.0f;
    return x >= 3.0f ? 1.0f : (2.0f * x + 3.0f) / 6.0f;
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    (void)stream;
    int64_t n = call->n * tdmi_shape_values(desc->out);
    for (int64_t i = 0; i < n; i++)
        call->y[i] = swish(call->x[0][i]);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    (void)stream;
    if (!desc->wants_dx)
        return;
    int64_t n = call->n * tdmi_shape_values(desc->out);
    for (int64_t i = 0; i < n; i++)
        call->dx[0][i] = call->dy[i] * slope(call->x[0][i]);
}

const struct tdmi_kernel tdmi_ref_hswish = {.forward = forward, .backward = backward};
