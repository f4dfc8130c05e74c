/* Two tensors of one height and width behind each other: the channels of the first, then those of
 * the second. More than two are joined one after the other. */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    if (in[0].h != in[1].h || in[0].w != in[1].w || in[0].c > INT32_MAX - in[1].c)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "joins %d×%d×%d and %d×%d×%d; two tensors of one height and width are "
                        "wanted",
                        in[0].h, in[0].w, in[0].c, in[1].h, in[1].w, in[1].c);
    *out = (struct tdmi_shape){in[0].h, in[0].w, in[0].c + in[1].c};
    return TDM_OK;
}

const struct tdmi_op tdmi_op_concat = {.shape = shape};
