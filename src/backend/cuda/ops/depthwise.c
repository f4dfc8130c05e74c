/*
 * The op conv where every channel is on its own. It fuses a batch norm, folded into packed weights,
 * and an activation behind it, without training; and always an activation that its input is read
 * through.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/channels.h"
#include "backend/cuda/kernels/conv/depthwise.h"
#include "backend/cuda/vendor/plans.h"

static bool can_run(const struct tdmi_op_desc *desc)
{
    return desc->attrs.groups == desc->in[0].c && desc->out.c == desc->in[0].c;
}

/* A batch norm in training is never virtual on a GPU: it carries its own activation. */
static bool can_fuse(const struct tdmi_op_desc *desc)
{
    return tdmi_cuda_fuses_clamp(&desc->fusion) && !desc->fusion.adds_residual &&
           tdmi_cuda_is_clamp(desc->fusion.in[0].act);
}

static int64_t weights_of(const struct tdmi_op_desc *desc)
{
    return (int64_t)desc->attrs.kernel * desc->attrs.kernel * desc->out.c;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, desc->max_images);
    if (desc->is_training)
        needs->workspace_bytes = tdmi_cuda_depthwise_workspace_bytes(&shape);
    if (desc->fusion.folds_norm)
        needs->packed_bytes = (size_t)(weights_of(desc) + desc->out.c) * sizeof(float);
}

static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    if (!desc->fusion.folds_norm)
        return;
    const struct tdmi_cuda_depthwise_fold fold = {
        .taps = desc->attrs.kernel * desc->attrs.kernel,
        .channels = desc->out.c,
        .weights = call->params[0],
        .bias = desc->attrs.has_bias ? call->params[1] : NULL,
        .scale = call->norm_params[0],
        .shift = call->norm_params[1],
        .mean = call->norm_states[0],
        .variance = call->norm_states[1],
        .epsilon = call->norm_epsilon,
        .packed = call->packed,
    };
    TDMI_CUDA_LAUNCH(stream, "depthwise, folding a batch norm", tdmi_cuda_depthwise_fold, &fold);
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    const float *packed = call->packed;
    struct tdmi_cuda_depthwise_forward work = {
        .x = call->x[0],
        .x_act = desc->fusion.in[0].act,
        .weights = call->params[0],
        .bias = desc->attrs.has_bias ? call->params[1] : NULL,
        .act = desc->fusion.act,
        .y = call->y,
    };
    if (desc->fusion.folds_norm) {
        work.weights = packed;
        work.bias = packed + weights_of(desc);
    }
    TDMI_CUDA_LAUNCH(stream, "depthwise, forward", tdmi_cuda_depthwise_forward, &shape, &work);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    const struct tdmi_cuda_depthwise_weights of_weights = {.x = call->x[0],
                                                           .dy = call->dy,
                                                           .x_act = desc->fusion.in[0].act,
                                                           .dweights = call->dparams[0],
                                                           .workspace = call->workspace};
    const struct tdmi_cuda_depthwise_data of_input = {.dy = call->dy,
                                                      .weights = call->params[0],
                                                      .x = call->x[0],
                                                      .x_act = desc->fusion.in[0].act,
                                                      .add = call->dx_add[0],
                                                      .dx = call->dx[0]};
    TDMI_CUDA_LAUNCH(stream, "depthwise, gradient of weights", tdmi_cuda_depthwise_weights, &shape,
                     &of_weights);
    if (desc->attrs.has_bias)
        TDMI_CUDA_LAUNCH(stream, "depthwise, gradient of a bias", tdmi_cuda_channel_sum,
                         desc->storage, call->dy, call->n * tdmi_shape_pixels(desc->out),
                         desc->out.c, call->dparams[1], call->workspace);
    if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "depthwise, gradient of its input", tdmi_cuda_depthwise_data,
                         &shape, &of_input);
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_algorithms *algorithms)
{
    static const struct tdmi_cuda_algorithm ours[TDMI_CUDNN_DIRECTIONS];
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, desc->max_images);
    const bool is_spread = shape.stride == 2 && tdmi_cuda_depthwise_is_usual(&shape);
    const char *const names[] = {"depthwise.cu", is_spread ? "depthwise_spread.cu" : "depthwise.cu",
                                 "depthwise_weights.cu"};
    tdmi_cuda_algorithms_describe(desc, ours, names, algorithms);
}

const struct tdmi_kernel tdmi_cuda_depthwise = {
    .can_run = can_run,
    .can_fuse = can_fuse,
    .adds_dx = true,
    .needs = needs,
    .describe = describe,
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
