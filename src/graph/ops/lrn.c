/*
 * Local response normalisation across channels (AlexNet, 2012): every value is divided by
 * (offset + alpha / kernel · Σ x²)^beta, the sum over the `kernel` channels around its own. PyTorch
 * and Caffe divide alpha so; the paper and TensorFlow do not, and their alpha is ours / kernel.
 */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    if (attrs->kernel < 1 || attrs->kernel > 255)
        return TDM_FAIL(err, TDM_E_INPUT, "normalising over %d channels; 1 to 255 are accepted",
                        attrs->kernel);
    if (!(attrs->alpha >= 0.0) || !(attrs->beta >= 0.0) || !(attrs->offset > 0.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "normalising with alpha %g, beta %g and offset %g; at least 0, at least 0, "
                        "and more than 0 are accepted",
                        attrs->alpha, attrs->beta, attrs->offset);
    *out = in[0];
    return TDM_OK;
}

TDMI_OP_FLOPS(flops)
{
    return (2.0 * attrs->kernel + 4.0) * (double)tdmi_shape_values(out);
}

const struct tdmi_op tdmi_op_lrn = {
    .attrs = {"kernel", "alpha", "beta", "offset"},
    .shape = shape,
    .flops = flops,
    .backward_reads_x = true,
};
