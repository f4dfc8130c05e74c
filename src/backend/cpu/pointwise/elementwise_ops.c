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

/* Images and pixels of an image as combine_backward counts them. */
static int images_of(const struct tdmi_op_desc *desc, int n)
{
    return desc->kind == TDMI_OP_GLOBAL_POOL ? n : 1;
}

static int64_t pixels_of(const struct tdmi_op_desc *desc, int n, int k)
{
    return (desc->kind == TDMI_OP_GLOBAL_POOL ? 1 : n) * tdmi_shape_pixels(desc->in[k]);
}

/* Pieces of the larger input, where teams take sums. */
static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    if (!desc->is_training || desc->team < 2 ||
        !(desc->fusion.in[0].has_norm || desc->fusion.in[1].has_norm))
        return;
    const int64_t stretches = tdmi_combine_stretches(images_of(desc, desc->max_images),
                                                     pixels_of(desc, desc->max_images, 0));
    needs->workspace_bytes = sizeof(float) * (size_t)tdmi_pieces_floats(stretches, desc->in[0].c);
}

/* The gradient of input k of y = act(sum of inputs), or of a global pool. */
static void backward_of_input(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                              int k, enum tdmi_act act)
{
    const int n = images_of(desc, call->n);
    const int64_t pixels = pixels_of(desc, call->n, k),
                  stretches = tdmi_combine_stretches(n, pixels);
    const struct tdmi_backward_sums sums = tdmi_cpu_sums_of(desc, call, k);
    float *pieces = call->member && sums.sum ? call->workspace : NULL;
    bool is_there = call->dx[k] == call->dy && act == TDMI_ACT_NONE && !call->dx_add[k] &&
                    !tdmi_cpu_masked_input(desc, call, k);
    if (!call->dx[k] || is_there)
        return;
    const struct tdmi_share mine = tdmi_member_share(call->member, stretches);
    if (mine.first < mine.end)
        kernels()->combine_backward(&(struct tdmi_combine_gradient){
            .is_pool = desc->kind == TDMI_OP_GLOBAL_POOL,
            .n = n,
            .pixels = pixels,
            .channels = desc->out.c,
            .dy = call->dy,
            .y = act == TDMI_ACT_NONE ? NULL : call->y,
            .act = act,
            .x = tdmi_cpu_masked_input(desc, call, k),
            .form = tdmi_cpu_form_of(desc, call, k),
            .dx = call->dx[k],
            .add = call->dx_add[k],
            .sums = sums,
            .stretches = mine,
            .pieces = pieces,
        });
    if (pieces)
        tdmi_cpu_add_sums(call->member, pieces, stretches, desc->out.c, &sums);
}

/* ---- add --------------------------------------------------------------------------------------
 */

/* y of a member's pixels. */
static void combine(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int inputs,
                    enum tdmi_act act)
{
    const int channels = desc->out.c;
    const struct tdmi_share mine =
        tdmi_member_share(call->member, call->n * tdmi_shape_pixels(desc->out));
    const int64_t at = mine.first * channels;
    struct tdmi_combine own = {
        .pixels = mine.end - mine.first, .channels = channels, .act = act, .y = call->y + at};
    for (int k = 0; k < inputs; k++) {
        own.x[k] = call->x[k] + at;
        own.form[k] = tdmi_cpu_form_of(desc, call, k);
    }
    kernels()->combine(&own);
}

TDMI_KERNEL_RUN(add_forward)
{
    combine(desc, call, 2, desc->fusion.act);
}

TDMI_KERNEL_RUN(add_backward)
{
    backward_of_input(desc, call, 0, TDMI_ACT_NONE);
    tdmi_member_wait(call->member); /* pieces of both lie in one place, and dx may be dy */
    backward_of_input(desc, call, 1, TDMI_ACT_NONE);
}

const struct tdmi_kernel tdmi_cpu_add = {
    .can_fuse = can_read_and_activate,
    .adds_dx = true,
    .needs = needs,
    .shares_forward = TDMI_SHARING_OWN,
    .shares_backward = TDMI_SHARING_OWN,
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
    combine(desc, call, 1, act_of(desc));
}

TDMI_KERNEL_RUN(activation_backward)
{
    backward_of_input(desc, call, 0, act_of(desc));
}

const struct tdmi_kernel tdmi_cpu_activation = {
    .can_fuse = tdmi_cpu_can_only_read,
    .adds_dx = true,
    .needs = needs,
    .shares_forward = TDMI_SHARING_OWN,
    .shares_backward = TDMI_SHARING_OWN,
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
    .needs = needs,
    .shares_forward = TDMI_SHARING_IMAGES,
    .shares_backward = TDMI_SHARING_OWN,
    .forward = global_pool_forward,
    .backward = global_pool_backward,
};
