/*
 * Convolution with square windows, explicit padding, dilation and groups: the channels in and out
 * are cut into equally many runs, and each run of outputs reads one run of inputs. As many groups
 * as input channels: depthwise.
 */
#include "graph/op.h"
#include "graph/window.h"

TDMI_OP_SHAPE(shape)
{
    if (attrs->channels < 1)
        return TDM_FAIL(err, TDM_E_INPUT, "%d output channels; at least 1 is required",
                        attrs->channels);
    if (attrs->groups < 1 || in[0].c % attrs->groups != 0 || attrs->channels % attrs->groups != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%d groups of %d input and %d output channels; at least 1, and a divisor "
                        "of both, is accepted",
                        attrs->groups, in[0].c, attrs->channels);
    TDM_TRY(tdmi_window_shape(attrs, attrs->dilation, in[0], out, err), err, "a convolution");
    out->c = attrs->channels;
    return TDM_OK;
}

TDMI_OP_TENSORS(params)
{
    int depth = in[0].c / attrs->groups;
    specs[0] = (struct tdmi_tensor_spec){
        .name = "weight",
        .dims = {attrs->kernel, attrs->kernel, depth, attrs->channels},
        .n_dims = 4,
        .init = TDMI_INIT_HE,
        .fan_in = (int64_t)attrs->kernel * attrs->kernel * depth,
        .has_decay = true,
    };
    specs[1] = (struct tdmi_tensor_spec){.name = "bias", .dims = {attrs->channels}, .n_dims = 1};
    return attrs->has_bias ? 2 : 1;
}

TDMI_OP_FLOPS(flops)
{
    return 2.0 * attrs->kernel * attrs->kernel * (in.c / attrs->groups) *
           (double)tdmi_shape_values(out);
}

const struct tdmi_op tdmi_op_conv = {
    .attrs = {"channels", "kernel", "stride", "dilation", "groups", "pad_top", "pad_bottom",
              "pad_left", "pad_right", "has_bias"},
    .shape = shape,
    .params = params,
    .flops = flops,
    .backward_reads_x = true,
};
