/* Batch norm over the channels. */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    if (!(attrs->epsilon > 0.0) || !(attrs->momentum >= 0.0 && attrs->momentum <= 1.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "batch norm with epsilon %g and momentum %g; more than 0, and 0 to 1, are "
                        "accepted",
                        attrs->epsilon, attrs->momentum);
    *out = in[0];
    return TDM_OK;
}

TDMI_OP_TENSORS(params)
{
    specs[0] = (struct tdmi_tensor_spec){
        .name = "weight", .dims = {in[0].c}, .n_dims = 1, .init = TDMI_INIT_ONE};
    specs[1] = (struct tdmi_tensor_spec){.name = "bias", .dims = {in[0].c}, .n_dims = 1};
    return 2;
}

TDMI_OP_TENSORS(states)
{
    specs[0] = (struct tdmi_tensor_spec){.name = "running_mean", .dims = {in[0].c}, .n_dims = 1};
    specs[1] = (struct tdmi_tensor_spec){
        .name = "running_var", .dims = {in[0].c}, .n_dims = 1, .init = TDMI_INIT_ONE};
    return 2;
}

const struct tdmi_op tdmi_op_batch_norm = {
    .attrs = {"epsilon", "momentum", "is_biased"},
    .shape = shape,
    .params = params,
    .states = states,
    .flops = tdmi_flops_elementwise,
    .backward_reads_x = true,
};
