/* The shape rule that convolution and pooling share: only whole windows count. */
#include "nn/window.h"

static int grid(const struct tdmi_op_attrs *attrs, int size)
{
    int padded = size + attrs->pad_before + attrs->pad_after;
    return padded < attrs->kernel ? 0 : (padded - attrs->kernel) / attrs->stride + 1;
}

tdm_status tdmi_window_shape(const struct tdmi_op_attrs *attrs, struct tdmi_shape in,
                             struct tdmi_shape *out, tdm_error *err)
{
    if (attrs->kernel < 1 || attrs->kernel > 15 || attrs->stride < 1 || attrs->stride > 15)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "window of %d pixels with stride %d; 1 to 15 of both are accepted",
                        attrs->kernel, attrs->stride);
    if (attrs->pad_before < 0 || attrs->pad_after < 0 || attrs->pad_before >= attrs->kernel ||
        attrs->pad_after >= attrs->kernel)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "padding %d before and %d after a window of %d; 0 to %d are accepted",
                        attrs->pad_before, attrs->pad_after, attrs->kernel, attrs->kernel - 1);
    *out = (struct tdmi_shape){grid(attrs, in.h), grid(attrs, in.w), in.c};
    if (out->h < 1 || out->w < 1)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "a picture of %d×%d with padding %d + %d has no room for a window of %d; a "
                        "larger --size is wanted",
                        in.w, in.h, attrs->pad_before, attrs->pad_after, attrs->kernel);
    return TDM_OK;
}
