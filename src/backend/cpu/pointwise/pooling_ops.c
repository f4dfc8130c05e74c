/*
 * max_pool and avg_pool of backend cpu: what a desc and a call mean in terms of pooling.h. Saved:
 * the winners of max_pool, so that its backward needs neither input nor output unless it masks.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/op_forms.h"
#include "backend/cpu/pointwise/pooling.h"

size_t tdmi_pooling_winner_bytes(const struct tdmi_pooling *pool, int n)
{
    size_t values = (size_t)n * (size_t)pool->out_h * (size_t)pool->out_w * (size_t)pool->channels;
    return (values + 63) / 64 * 64 + 64;
}

TDMI_TABLE_OF(const struct tdmi_pooling_kernels *tdmi_pooling_kernels, tdmi_pooling)

static const struct tdmi_pooling_kernels *kernels(void)
{
    return tdmi_pooling_kernels(tdmi_isa_best());
}

static struct tdmi_pooling pooling_of(const struct tdmi_op_desc *desc)
{
    return (struct tdmi_pooling){.h = desc->in[0].h,
                                 .w = desc->in[0].w,
                                 .channels = desc->in[0].c,
                                 .out_h = desc->out.h,
                                 .out_w = desc->out.w,
                                 .kernel = desc->attrs.kernel,
                                 .stride = desc->attrs.stride,
                                 .top = desc->attrs.pad_top,
                                 .left = desc->attrs.pad_left,
                                 .counts_padding = desc->attrs.counts_padding};
}

static struct tdmi_pooling_forward forward_of(const struct tdmi_op_desc *desc,
                                              const struct tdmi_op_call *call)
{
    return (struct tdmi_pooling_forward){
        .n = call->n, .x = call->x[0], .form = tdmi_cpu_form_of(desc, call, 0), .y = call->y};
}

static struct tdmi_pooling_backward backward_of(const struct tdmi_op_desc *desc,
                                                const struct tdmi_op_call *call)
{
    return (struct tdmi_pooling_backward){.n = call->n,
                                          .dy = call->dy,
                                          .x = tdmi_cpu_masked_input(desc, call, 0),
                                          .form = tdmi_cpu_form_of(desc, call, 0),
                                          .dx = call->dx[0],
                                          .add = call->dx_add[0],
                                          .sums = tdmi_cpu_sums_of(desc, call, 0)};
}

/* ---- max --------------------------------------------------------------------------------------
 */

static void needs_winners(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct tdmi_pooling pool = pooling_of(desc);
    if (desc->is_training)
        needs->saved_bytes = tdmi_pooling_winner_bytes(&pool, desc->max_images);
}

TDMI_KERNEL_RUN(max_forward)
{
    const struct tdmi_pooling pool = pooling_of(desc);
    struct tdmi_pooling_forward work = forward_of(desc, call);
    work.winners = desc->is_training ? call->saved : NULL;
    kernels()->max(&pool, &work);
}

TDMI_KERNEL_RUN(max_backward)
{
    const struct tdmi_pooling pool = pooling_of(desc);
    struct tdmi_pooling_backward work = backward_of(desc, call);
    work.winners = call->saved;
    if (work.dx)
        kernels()->max_backward(&pool, &work);
}

const struct tdmi_kernel tdmi_cpu_max_pool = {
    .can_fuse = tdmi_cpu_can_only_read,
    .adds_dx = true,
    .needs = needs_winners,
    .forward = max_forward,
    .backward = max_backward,
};

/* ---- average ----------------------------------------------------------------------------------
 */

TDMI_KERNEL_RUN(average_forward)
{
    const struct tdmi_pooling pool = pooling_of(desc);
    const struct tdmi_pooling_forward work = forward_of(desc, call);
    kernels()->average(&pool, &work);
}

TDMI_KERNEL_RUN(average_backward)
{
    const struct tdmi_pooling pool = pooling_of(desc);
    const struct tdmi_pooling_backward work = backward_of(desc, call);
    if (work.dx)
        kernels()->average_backward(&pool, &work);
}

const struct tdmi_kernel tdmi_cpu_avg_pool = {
    .can_fuse = tdmi_cpu_can_only_read,
    .adds_dx = true,
    .forward = average_forward,
    .backward = average_backward,
};
