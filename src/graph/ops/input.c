/* The pictures, normalised: where every network begins. */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    const struct tdmi_preprocess *p = &attrs->preprocess;
    if (p->width < 1 || p->height < 1 || (p->channels != 1 && p->channels != 3))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "an input of %d×%d pixels and %d channels; at least 1×1 and 1 or 3 "
                        "channels are accepted",
                        p->width, p->height, p->channels);
    *out = (struct tdmi_shape){p->height, p->width, p->channels};
    return TDM_OK;
}

const struct tdmi_op tdmi_op_input = {
    .attrs = {"preprocess"},
    .shape = shape,
    .flops = tdmi_flops_elementwise,
};
