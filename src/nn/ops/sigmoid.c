/* 1 / (1 + exp(-x)). */
#include "nn/op.h"

static tdm_status shape(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                        struct tdmi_shape *out, tdm_error *err)
{
    (void)attrs;
    (void)err;
    *out = in[0];
    return TDM_OK;
}

const struct tdmi_op tdmi_op_sigmoid = {
    .shape = shape,
    .flops = tdmi_flops_elementwise,
    .backward_reads_y = true,
    .act = TDMI_ACT_SIGMOID,
};
