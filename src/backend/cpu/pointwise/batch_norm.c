/*
 * Batch norm of backend cpu. As a virtual node, between kernels that fuse its work, it is
 * arithmetic on vectors of channels: sums become the read form, later the gradient form. Where no
 * kernel fuses it, the same vectors are applied by passes of its own.
 */
#include "backend/cpu/conv/carry.h"
#include "backend/cpu/cpu.h"
#include "backend/ref_kernels.h"

#include <string.h>

static int64_t pixels_of(const struct tdmi_op_desc *desc, int n)
{
    return n * tdmi_shape_pixels(desc->out);
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    bool reads_form = fusion->in[0].has_norm || fusion->in[0].act != TDMI_ACT_NONE;
    bool folds = fusion->folds_norm || fusion->adds_residual || fusion->act != TDMI_ACT_NONE;
    return !reads_form && !folds && !fusion->gives_sums && !fusion->reads_gradient_form &&
           (desc->is_training || !fusion->is_virtual);
}

TDMI_KERNEL_RUN(reduce_forward)
{
    int channels = desc->out.c;
    memset(call->norm.sums, 0, 2 * sizeof(double) * (size_t)channels);
    struct tdmi_forward_sums sums = {call->norm.centre, call->norm.sums,
                                     call->norm.sums + channels};
    tdmi_carry_forward_sums(call->x[0], pixels_of(desc, call->n), channels, &sums);
}

TDMI_KERNEL_RUN(forward)
{
    float *own = call->workspace, *scale = desc->is_training ? call->norm.scale : own;
    float *shift = desc->is_training ? call->norm.shift : own + desc->out.c;
    const struct tdmi_read_form form = {scale, shift, TDMI_ACT_NONE};
    if (desc->is_training && desc->keeps_statistics)
        tdmi_ref_norm_keep(desc, call);
    else if (desc->is_training)
        tdmi_ref_norm_finish(desc, call);
    else
        tdmi_ref_norm_form(desc, call, scale, shift);
    if (!desc->fusion.is_virtual)
        tdmi_carry_read(&form, call->x[0], pixels_of(desc, call->n), desc->out.c, call->y);
}

TDMI_KERNEL_RUN(reduce_backward)
{
    int channels = desc->out.c;
    memset(call->norm.sums, 0, 2 * sizeof(double) * (size_t)channels);
    struct tdmi_backward_sums sums = {call->norm.mean, call->norm.sums, call->norm.sums + channels};
    tdmi_carry_backward_sums(call->dy, call->x[0], pixels_of(desc, call->n), channels, &sums);
}

/* With x^ = (x - mean) · s:  dshift = Σ dy,  dscale = Σ dy · x^,
 * dx = scale · s · (dy - dshift / m - x^ · dscale / m), m values a channel, which is the gradient
 * form. The gradients of scale and shift are this group's part; dx needs the sums over all that
 * share statistics. Where mean and s are kept they do not depend on x, and dx = scale · s · dy. */
TDMI_KERNEL_RUN(backward)
{
    const struct tdmi_norm *norm = &call->norm;
    int channels = desc->out.c;
    double m = (double)pixels_of(desc, norm->total_images);
    const bool is_fixed = desc->keeps_statistics;
    for (int c = 0; c < channels; c++) {
        double rstd = (double)norm->rstd[c], scale = (double)norm->scale[c];
        double slope = is_fixed ? 0.0 : norm->total[channels + c] * rstd * rstd / m;
        double offset = is_fixed ? 0.0 : slope * (double)norm->mean[c] - norm->total[c] / m;
        call->dparams[0][c] = (float)(norm->sums[channels + c] * rstd);
        call->dparams[1][c] = (float)norm->sums[c];
        norm->of_g[c] = norm->scale[c];
        norm->of_x[c] = (float)(-scale * slope);
        norm->one[c] = (float)(scale * offset);
    }
    struct tdmi_gradient_form form = {norm->of_g, norm->of_x, norm->one};
    if (call->dx[0] && !desc->fusion.is_virtual)
        tdmi_carry_gradient(&form, call->dy, call->x[0], pixels_of(desc, call->n), channels,
                            call->dx[0]);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    needs->workspace_bytes = desc->is_training ? 0 : (size_t)desc->out.c * 2 * sizeof(float);
}

const struct tdmi_kernel tdmi_cpu_batch_norm = {
    .can_fuse = can_fuse,
    .needs = needs,
    .forward = forward,
    .backward = backward,
    .reduce_forward = reduce_forward,
    .reduce_backward = reduce_backward,
};
