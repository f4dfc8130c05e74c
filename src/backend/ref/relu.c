/* max(x, 0). Backward asks the output, so that the input need not live so long. */
#include "backend/ref/ref.h"

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    (void)stream;
    int64_t n = call->n * tdmi_shape_values(desc->out);
    for (int64_t i = 0; i < n; i++)
        call->y[i] = call->x[0][i] > 0.0f ? call->x[0][i] : 0.0f;
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    (void)stream;
    if (!desc->wants_dx)
        return;
    int64_t n = call->n * tdmi_shape_values(desc->out);
    for (int64_t i = 0; i < n; i++)
        call->dx[0][i] = call->y[i] > 0.0f ? call->dy[i] : 0.0f;
}

const struct tdmi_kernel tdmi_ref_relu = {.forward = forward, .backward = backward};
