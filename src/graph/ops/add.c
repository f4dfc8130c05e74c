/* The sum of two tensors of one shape: how residual networks join their branches. */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    if (!tdmi_shape_equal(in[0], in[1]))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "adds %d×%d×%d and %d×%d×%d; two tensors of one shape are required",
                        in[0].h, in[0].w, in[0].c, in[1].h, in[1].w, in[1].c);
    *out = in[0];
    return TDM_OK;
}

TDMI_OP_FLOPS(flops)
{
    return (double)tdmi_shape_values(out);
}

const struct tdmi_op tdmi_op_add = {.shape = shape, .flops = flops};
