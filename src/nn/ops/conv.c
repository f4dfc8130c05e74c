/* Convolution with square windows and explicit padding. */
#include "nn/op.h"
#include "nn/window.h"

static tdm_status shape(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                        struct tdmi_shape *out, tdm_error *err)
{
    if (attrs->channels < 1)
        return TDM_FAIL(err, TDM_E_INPUT, "%d output channels; at least 1 is wanted",
                        attrs->channels);
    TDM_TRY(tdmi_window_shape(attrs, in[0], out, err), err, "a convolution");
    out->c = attrs->channels;
    return TDM_OK;
}

static int params(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                  struct tdmi_tensor_spec *specs)
{
    int64_t fan_in = (int64_t)attrs->kernel * attrs->kernel * in[0].c;
    specs[0] = (struct tdmi_tensor_spec){
        .name = "weight",
        .dims = {attrs->kernel, attrs->kernel, in[0].c, attrs->channels},
        .n_dims = 4,
        .init = TDMI_INIT_HE,
        .fan_in = fan_in,
        .has_decay = true,
    };
    specs[1] = (struct tdmi_tensor_spec){.name = "bias", .dims = {attrs->channels}, .n_dims = 1};
    return attrs->has_bias ? 2 : 1;
}

static double flops(const struct tdmi_op_attrs *attrs, struct tdmi_shape in, struct tdmi_shape out)
{
    return 2.0 * attrs->kernel * attrs->kernel * in.c * (double)tdmi_shape_values(out);
}

const struct tdmi_op tdmi_op_conv = {
    .attrs = {"channels", "kernel", "stride", "pad_before", "pad_after", "has_bias"},
    .shape = shape,
    .params = params,
    .flops = flops,
    .backward_reads_x = true,
};
