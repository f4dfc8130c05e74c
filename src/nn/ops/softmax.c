/* Probabilities of the classes, and in training the cross-entropy with the labels. */
#include "nn/op.h"

static tdm_status shape(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                        struct tdmi_shape *out, tdm_error *err)
{
    (void)attrs;
    if (tdmi_shape_pixels(in[0]) != 1)
        return TDM_FAIL(err, TDM_E_INPUT, "softmax over a picture of %d×%d; 1×1 is wanted", in[0].w,
                        in[0].h);
    *out = in[0];
    return TDM_OK;
}

const struct tdmi_op tdmi_op_softmax = {
    .shape = shape,
    .flops = tdmi_flops_elementwise,
    .backward_reads_y = true,
};
