/* A dense layer over the flattened picture. */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    if (attrs->channels < 1)
        return TDM_FAIL(err, TDM_E_INPUT, "a dense layer of %d outputs; at least 1 is required",
                        attrs->channels);
    if (tdmi_shape_values(in[0]) > INT32_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "a dense layer over %lld inputs; at most %d are accepted",
                        (long long)tdmi_shape_values(in[0]), INT32_MAX);
    *out = (struct tdmi_shape){1, 1, attrs->channels};
    return TDM_OK;
}

TDMI_OP_TENSORS(params)
{
    int64_t inputs = tdmi_shape_values(in[0]);
    specs[0] = (struct tdmi_tensor_spec){
        .name = "weight",
        .dims = {(int)inputs, attrs->channels},
        .n_dims = 2,
        .init = TDMI_INIT_HE,
        .fan_in = inputs,
        .has_decay = true,
    };
    specs[1] = (struct tdmi_tensor_spec){.name = "bias", .dims = {attrs->channels}, .n_dims = 1};
    return attrs->has_bias ? 2 : 1;
}

TDMI_OP_FLOPS(flops)
{
    return 2.0 * (double)tdmi_shape_values(in) * out.c;
}

const struct tdmi_op tdmi_op_dense = {
    .attrs = {"channels", "has_bias"},
    .shape = shape,
    .params = params,
    .flops = flops,
    .backward_reads_x = true,
};
