/*
 * Ops of backend cpu that are passes over whole tensors: add, relu, relu6 and global_pool. What a
 * desc and a call mean in terms of elementwise.h.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/op_forms.h"

TDMI_TABLE_OF(const struct tdmi_elementwise_kernels *tdmi_elementwise_kernels, tdmi_elementwise)

static const struct tdmi_elementwise_kernels *kernels(void)
{
    return tdmi_elementwise_kernels(tdmi_isa_best());
}

static bool can_read_and_activate(const struct tdmi_op_desc *desc)
{
    return tdmi_cpu_can_read(desc) && tdmi_cpu_is_clamp(desc->fusion.act);
}

/* The gradient of input k of y = act(sum of inputs), or of a global pool. */
static void backward_of_input(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                              int k, enum tdmi_act act)
{
    const bool is_pool = desc->kind == TDMI_OP_GLOBAL_POOL;
    bool is_there = call->dx[k] == call->dy && act == TDMI_ACT_NONE && !call->dx_add[k] &&
                    !tdmi_cpu_masked_input(desc, call, k);
    if (!call->dx[k] || is_there)
        return;
    kernels()->combine_backward(&(struct tdmi_combine_gradient){
        .is_pool = is_pool,
        .n = is_pool ? call->n : 1,
        .pixels = (is_pool ? 1 : call->n) * tdmi_shape_pixels(desc->in[k]),
        .channels = desc->out.c,
        .dy = call->dy,
        .y = act == TDMI_ACT_NONE ? NULL : call->y,
        .act = act,
        .x = tdmi_cpu_masked_input(desc, call, k),
        .form = tdmi_cpu_form_of(desc, call, k),
        .dx = call->dx[k],
        .add = call->dx_add[k],
        .sums = tdmi_cpu_sums_of(desc, call, k),
    });
}

/* ---- add --------------------------------------------------------------------------------------
 */

TDMI_KERNEL_RUN(add_forward)
{
    kernels()->combine(&(struct tdmi_combine){
        .pixels = call->n * tdmi_shape_pixels(desc->out),
        .channels = desc->out.c,
        .x = {call->x[0], call->x[1]},
        .form = {tdmi_cpu_form_of(desc, call, 0), tdmi_cpu_form_of(desc, call, 1)},
        .act = desc->fusion.act,
        .y = call->y,
    });
}

TDMI_KERNEL_RUN(add_backward)
{
    backward_of_input(desc, call, 0, TDMI_ACT_NONE);
    backward_of_input(desc, call, 1, TDMI_ACT_NONE);
}

const struct tdmi_kernel tdmi_cpu_add = {
    .can_fuse = can_read_and_activate,
    .adds_dx = true,
    .forward = add_forward,
    .backward = add_backward,
};

/* ---- relu, relu6 ------------------------------------------------------------------------------
 */

static enum tdmi_act act_of(const struct tdmi_op_desc *desc)
{
    return desc->kind == TDMI_OP_RELU6 ? TDMI_ACT_RELU6 : TDMI_ACT_RELU;
}

TDMI_KERNEL_RUN(activation_forward)
{
    kernels()->combine(&(struct tdmi_combine){
        .pixels = call->n * tdmi_shape_pixels(desc->out),
        .channels = desc->out.c,
        .x = {call->x[0], NULL},
        .form = {tdmi_cpu_form_of(desc, call, 0), {NULL, NULL, TDMI_ACT_NONE}},
        .act = act_of(desc),
        .y = call->y,
    });
}

TDMI_KERNEL_RUN(activation_backward)
{
    backward_of_input(desc, call, 0, act_of(desc));
}

const struct tdmi_kernel tdmi_cpu_activation = {
    .can_fuse = tdmi_cpu_can_only_read,
    .adds_dx = true,
    .forward = activation_forward,
    .backward = activation_backward,
};

/* ---- global pooling ---------------------------------------------------------------------------
 */

TDMI_KERNEL_RUN(global_pool_forward)
{
    kernels()->global_pool(&(struct tdmi_global_pool){.n = call->n,
                                                      .pixels = tdmi_shape_pixels(desc->in[0]),
                                                      .channels = desc->in[0].c,
                                                      .x = call->x[0],
                                                      .form = tdmi_cpu_form_of(desc, call, 0),
                                                      .y = call->y});
}

TDMI_KERNEL_RUN(global_pool_backward)
{
    backward_of_input(desc, call, 0, TDMI_ACT_NONE);
}

const struct tdmi_kernel tdmi_cpu_global_pool = {
    .can_fuse = tdmi_cpu_can_only_read,
    .adds_dx = true,
    .forward = global_pool_forward,
    .backward = global_pool_backward,
};
