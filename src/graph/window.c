/* The shape rule that convolution and pooling share: only whole windows count. */
#include "graph/window.h"

static int grid(int size, int pads, int reach, int stride)
{
    int padded = size + pads;
    return padded < reach ? 0 : (padded - reach) / stride + 1;
}

tdm_status tdmi_window_shape(const struct tdmi_op_attrs *attrs, int dilation, struct tdmi_shape in,
                             struct tdmi_shape *out, tdm_error *err)
{
    if (attrs->kernel < 1 || attrs->kernel > 15 || attrs->stride < 1 || attrs->stride > 15 ||
        dilation < 1 || dilation > 15)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "window of %d pixels with stride %d and dilation %d; 1 to 15 of each are "
                        "accepted",
                        attrs->kernel, attrs->stride, dilation);
    const int reach = dilation * (attrs->kernel - 1) + 1;
    const int pads[] = {attrs->pad_top, attrs->pad_bottom, attrs->pad_left, attrs->pad_right};
    for (int i = 0; i < 4; i++)
        if (pads[i] < 0 || pads[i] >= reach)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "padding %d above, %d below, %d left and %d right of a window of %d; 0 "
                            "to %d are accepted",
                            pads[0], pads[1], pads[2], pads[3], reach, reach - 1);
    *out = (struct tdmi_shape){grid(in.h, pads[0] + pads[1], reach, attrs->stride),
                               grid(in.w, pads[2] + pads[3], reach, attrs->stride), in.c};
    if (out->h < 1 || out->w < 1)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "a picture of %d×%d with padding %d + %d and %d + %d has no room for a "
                        "window of %d; choose a larger --size",
                        in.w, in.h, pads[2], pads[3], pads[0], pads[1], reach);
    return TDM_OK;
}

tdm_status tdmi_pool_shape(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                           struct tdmi_shape *out, tdm_error *err)
{
    return tdmi_window_shape(attrs, 1, in[0], out, err);
}

double tdmi_pool_flops(const struct tdmi_op_attrs *attrs, struct tdmi_shape in,
                       struct tdmi_shape out)
{
    (void)in;
    return (double)attrs->kernel * attrs->kernel * (double)tdmi_shape_values(out);
}
