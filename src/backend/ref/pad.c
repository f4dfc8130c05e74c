/* Zeros around the picture and its channels. The gradient is the middle of the output's. */
#include "backend/ref/ref.h"

#include <string.h>

/* The channels of input pixel (y, x) begin here in the output. */
static int64_t place_of(const struct tdmi_op_desc *desc, int64_t image, int y, int x)
{
    const struct tdmi_op_attrs *attrs = &desc->attrs;
    int64_t row = image * desc->out.h + y + attrs->pad_top;
    return (row * desc->out.w + x + attrs->pad_left) * desc->out.c + attrs->pad_front;
}

TDMI_KERNEL_RUN(forward)
{
    struct tdmi_shape in = desc->in[0];
    const float *x = call->x[0];
    memset(call->y, 0, sizeof(float) * (size_t)(call->n * tdmi_shape_values(desc->out)));
    for (int i = 0; i < call->n; i++)
        for (int row = 0; row < in.h; row++)
            for (int column = 0; column < in.w; column++, x += in.c)
                memcpy(call->y + place_of(desc, i, row, column), x, sizeof(float) * (size_t)in.c);
}

TDMI_KERNEL_RUN(backward)
{
    if (!desc->wants_dx)
        return;
    struct tdmi_shape in = desc->in[0];
    float *dx = call->dx[0];
    for (int i = 0; i < call->n; i++)
        for (int row = 0; row < in.h; row++)
            for (int column = 0; column < in.w; column++, dx += in.c)
                memcpy(dx, call->dy + place_of(desc, i, row, column), sizeof(float) * (size_t)in.c);
}

const struct tdmi_kernel tdmi_ref_pad = {
    .forward = forward, .backward = backward, TDMI_SHARES_IMAGES};
