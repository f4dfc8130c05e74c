/*
 * The op batch_norm: sums, then what each channel has of them, then one pass over the tensor, which
 * adds a residual and applies an activation where they follow. Backward needs the activation's
 * input: without a residual it computes it again from x, with one it reads y. The residual's
 * gradient is dx[1].
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/channels.h"

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    return tdmi_cuda_fuses_clamp(fusion) && fusion->in[0].act == TDMI_ACT_NONE &&
           !fusion->folds_norm && !fusion->is_virtual;
}

static struct tdmi_cuda_norm norm_of(const struct tdmi_op_desc *desc,
                                     const struct tdmi_op_call *call)
{
    const int64_t pixels = tdmi_shape_pixels(desc->out);
    return (struct tdmi_cuda_norm){
        .type = desc->storage,
        .act = desc->fusion.act,
        .x = call->x[0],
        .y = desc->fusion.adds_residual && desc->fusion.act != TDMI_ACT_NONE ? call->y : NULL,
        .dy = call->dy,
        .dx = call->dx[0],
        .g = call->dx[1] == call->dy ? NULL : call->dx[1], /* they may be one (graph/share.c) */
        .pixels = call->n * pixels,
        .channels = desc->out.c,
        .norm = call->norm,
        .total_pixels = (double)(call->norm.total_images * pixels),
        .workspace = call->workspace,
    };
}

static struct tdmi_cuda_norm_finish finish_of(const struct tdmi_op_desc *desc,
                                              const struct tdmi_op_call *call)
{
    return (struct tdmi_cuda_norm_finish){
        .norm = call->norm,
        .channels = desc->out.c,
        .total_pixels = (double)(call->norm.total_images * tdmi_shape_pixels(desc->out)),
        .epsilon = desc->attrs.epsilon,
        .n = call->n,
        .is_biased = desc->attrs.is_biased,
        .is_kept = desc->keeps_statistics,
        .scale = call->params[0],
        .shift = call->params[1],
        .running_mean = call->states[0],
        .running_variance = call->states[1],
        .sum_of_means = call->state_sums[0],
        .sum_of_variances = call->state_sums[1],
    };
}

static void reduce_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_norm norm = norm_of(desc, call);
    TDMI_CUDA_LAUNCH(stream, "batch_norm, statistics", tdmi_cuda_norm_sums, &norm);
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_norm_finish finish = finish_of(desc, call);
    float *own = call->workspace;
    if (desc->is_training)
        TDMI_CUDA_LAUNCH(stream, "batch_norm, forward", tdmi_cuda_norm_finish, &finish);
    else
        TDMI_CUDA_LAUNCH(stream, "batch_norm, forward", tdmi_cuda_norm_fold, &finish, own,
                         own + desc->out.c);
    const struct tdmi_cuda_channels pass = {
        .type = desc->storage,
        .act = desc->fusion.act,
        .x = call->x[0],
        .residual = desc->fusion.adds_residual ? call->residual : NULL,
        .y = call->y,
        .scale = desc->is_training ? call->norm.scale : own,
        .shift = desc->is_training ? call->norm.shift : own + desc->out.c,
        .pixels = call->n * tdmi_shape_pixels(desc->out),
        .channels = desc->out.c,
    };
    TDMI_CUDA_LAUNCH(stream, "batch_norm, forward", tdmi_cuda_scale_shift, &pass);
}

static void reduce_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_norm norm = norm_of(desc, call);
    TDMI_CUDA_LAUNCH(stream, "batch_norm, sums of the gradient", tdmi_cuda_norm_gradient_sums,
                     &norm);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_norm norm = norm_of(desc, call);
    TDMI_CUDA_LAUNCH(stream, "batch_norm, backward", tdmi_cuda_norm_backward, &norm,
                     desc->keeps_statistics, call->dparams[0], call->dparams[1]);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    needs->workspace_bytes = tdmi_cuda_norm_workspace_bytes(
        desc->max_images * tdmi_shape_pixels(desc->out), desc->out.c);
}

const struct tdmi_kernel tdmi_cuda_batch_norm = {
    .can_fuse = can_fuse,
    .needs = needs,
    .forward = forward,
    .backward = backward,
    .reduce_forward = reduce_forward,
    .reduce_backward = reduce_backward,
};
