/*
 * max_pool and avg_pool of backend cpu: translation of a desc and a call to pooling.h. Saved: the
 * winners of max_pool, so that its backward needs neither input nor output unless it masks.
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
                                 .is_max = desc->kind == TDMI_OP_MAX_POOL,
                                 .counts_padding = desc->attrs.counts_padding};
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct tdmi_pooling pool = pooling_of(desc);
    if (desc->is_training && pool.is_max)
        needs->saved_bytes = tdmi_pooling_winner_bytes(&pool, desc->max_images);
    if (desc->is_training && desc->team > 1 && desc->fusion.in[0].has_norm)
        needs->workspace_bytes =
            sizeof(float) * (size_t)tdmi_pieces_floats(
                                tdmi_pooling_stretches(&pool, desc->max_images), pool.channels);
}

TDMI_KERNEL_RUN(forward)
{
    const struct tdmi_pooling pool = pooling_of(desc);
    const struct tdmi_share mine = tdmi_member_share(call->member, (int64_t)call->n * pool.out_h);
    if (mine.first < mine.end)
        kernels()->forward(&pool, &(struct tdmi_pooling_forward){
                                      .n = call->n,
                                      .x = call->x[0],
                                      .form = tdmi_cpu_form_of(desc, call, 0),
                                      .y = call->y,
                                      .winners = desc->is_training ? call->saved : NULL,
                                      .rows = mine,
                                  });
}

TDMI_KERNEL_RUN(backward)
{
    const struct tdmi_pooling pool = pooling_of(desc);
    const int64_t stretches = tdmi_pooling_stretches(&pool, call->n);
    const struct tdmi_backward_sums sums = tdmi_cpu_sums_of(desc, call, 0);
    float *pieces = call->member && sums.sum ? call->workspace : NULL;
    if (!call->dx[0])
        return;
    const struct tdmi_share mine = tdmi_member_share(call->member, stretches);
    if (mine.first < mine.end)
        kernels()->backward(&pool, &(struct tdmi_pooling_backward){
                                       .n = call->n,
                                       .dy = call->dy,
                                       .winners = call->saved,
                                       .x = tdmi_cpu_masked_input(desc, call, 0),
                                       .form = tdmi_cpu_form_of(desc, call, 0),
                                       .dx = call->dx[0],
                                       .add = call->dx_add[0],
                                       .sums = sums,
                                       .stretches = mine,
                                       .pieces = pieces,
                                   });
    if (pieces)
        tdmi_cpu_add_sums(call->member, pieces, stretches, pool.channels, &sums);
}

const struct tdmi_kernel tdmi_cpu_pool = {
    .can_fuse = tdmi_cpu_can_only_read,
    .adds_dx = true,
    .needs = needs,
    .shares_forward = TDMI_SHARING_OWN,
    .shares_backward = TDMI_SHARING_OWN,
    .forward = forward,
    .backward = backward,
};
