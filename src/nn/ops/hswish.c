/* x · min(max(x + 3, 0), 6) / 6, the swish of MobileNetV3. */
#include "nn/op.h"

static tdm_status shape(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                        struct tdmi_shape *out, tdm_error *err)
{
    (void)attrs;
    (void)err;
    *out = in[0];
    return TDM_OK;
}

const struct tdmi_op tdmi_op_hswish = {
    .shape = shape,
    .flops = tdmi_flops_elementwise,
    .backward_reads_x = true,
    .act = TDMI_ACT_HSWISH,
};
