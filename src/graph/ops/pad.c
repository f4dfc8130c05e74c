/* Zeros around the picture, and channels of zeros. */
#include "graph/op.h"

enum { most = 4096 };

TDMI_OP_SHAPE(shape)
{
    const int pads[] = {attrs->pad_top,   attrs->pad_bottom, attrs->pad_left,
                        attrs->pad_right, attrs->pad_front,  attrs->pad_back};
    for (int i = 0; i < 6; i++)
        if (pads[i] < 0 || pads[i] > most)
            return TDM_FAIL(err, TDM_E_INPUT, "padding by %d; 0 to %d are accepted", pads[i], most);
    if (in[0].h > INT32_MAX - 2 * most || in[0].w > INT32_MAX - 2 * most ||
        in[0].c > INT32_MAX - 2 * most)
        return TDM_FAIL(err, TDM_E_INPUT, "padding a picture of %d×%d with %d channels: too large",
                        in[0].w, in[0].h, in[0].c);
    *out = (struct tdmi_shape){in[0].h + pads[0] + pads[1], in[0].w + pads[2] + pads[3],
                               in[0].c + pads[4] + pads[5]};
    return TDM_OK;
}

const struct tdmi_op tdmi_op_pad = {
    .attrs = {"pad_top", "pad_bottom", "pad_left", "pad_right", "pad_front", "pad_back"},
    .shape = shape,
};
