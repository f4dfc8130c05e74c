/* The mean of every channel over the picture. */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    *out = (struct tdmi_shape){1, 1, in[0].c};
    return TDM_OK;
}

TDMI_OP_FLOPS(flops)
{
    return (double)tdmi_shape_values(in);
}

const struct tdmi_op tdmi_op_global_pool = {.shape = shape, .flops = flops};
