/*
 * Dropout: in training a part of the values becomes zero and the rest grows by 1 / (1 - rate), so
 * that means stay; otherwise the identity. Which values: draws of (seed, epoch, sample, stream), so
 * neither threads nor restarts change them. They are drawn again in backward and never stored.
 */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    if (!(attrs->rate >= 0.0 && attrs->rate < 1.0))
        return TDM_FAIL(err, TDM_E_INPUT, "dropout of %g; 0 to less than 1 is accepted",
                        attrs->rate);
    if (attrs->stream < 0 || attrs->stream > 255)
        return TDM_FAIL(err, TDM_E_INPUT, "dropout with stream %d of draws; 0 to 255 are accepted",
                        attrs->stream);
    if (tdmi_shape_values(in[0]) > 1 << 26)
        return TDM_FAIL(err, TDM_E_INPUT, "dropout of %lld values; at most %d are accepted",
                        (long long)tdmi_shape_values(in[0]), 1 << 26);
    *out = in[0];
    return TDM_OK;
}

const struct tdmi_op tdmi_op_dropout = {
    .attrs = {"rate", "stream"},
    .shape = shape,
    .flops = tdmi_flops_elementwise,
};
