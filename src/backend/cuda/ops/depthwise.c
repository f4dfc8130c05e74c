/*
 * The op conv where every channel is on its own. What it takes over from its neighbours: a batch
 * norm folded into packed weights and an activation behind them, without training; an activation
 * that its input is read through, always.
 */
#include "backend/cuda/kernels/channels.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/conv/depthwise.h"
#include "backend/cuda/vendor/libraries.h"

static bool can_run(const struct tdmi_op_desc *desc)
{
    return desc->attrs.groups == desc->in[0].c && desc->out.c == desc->in[0].c;
}

static bool is_carried(enum tdmi_act act)
{
    return act == TDMI_ACT_NONE || act == TDMI_ACT_RELU || act == TDMI_ACT_RELU6;
}

/* A batch norm in training is never virtual on a GPU: it carries its own activation. */
static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    const bool has_more = fusion->adds_residual || fusion->gives_sums ||
                          fusion->reads_gradient_form || fusion->in[0].has_norm || fusion->pool;
    return !has_more && is_carried(fusion->act) && is_carried(fusion->in[0].act);
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
    tdmi_cuda_note(stream, tdmi_cuda_depthwise_fold(tdmi_cuda_queue(stream), &fold),
                   "depthwise, folding a batch norm");
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
    tdmi_cuda_note(stream, tdmi_cuda_depthwise_forward(tdmi_cuda_queue(stream), &shape, &work),
                   "depthwise, forward");
}

static void backward_params(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    const struct tdmi_cuda_depthwise_weights work = {.x = call->x[0],
                                                     .dy = call->dy,
                                                     .x_act = desc->fusion.in[0].act,
                                                     .dweights = call->dparams[0],
                                                     .workspace = call->workspace};
    tdmi_cuda_note(stream, tdmi_cuda_depthwise_weights(tdmi_cuda_queue(stream), &shape, &work),
                   "depthwise, gradient of weights");
    if (desc->attrs.has_bias)
        tdmi_cuda_note(stream,
                       tdmi_cuda_channel_sum(tdmi_cuda_queue(stream), desc->storage, call->dy,
                                             call->n * tdmi_shape_pixels(desc->out), desc->out.c,
                                             call->dparams[1], call->workspace),
                       "depthwise, gradient of a bias");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    backward_params(stream, desc, call);
    if (!desc->wants_dx)
        return;
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    const struct tdmi_cuda_depthwise_data work = {.dy = call->dy,
                                                  .weights = call->params[0],
                                                  .x = call->x[0],
                                                  .x_act = desc->fusion.in[0].act,
                                                  .add = call->dx_add[0],
                                                  .dx = call->dx[0]};
    tdmi_cuda_note(stream, tdmi_cuda_depthwise_data(tdmi_cuda_queue(stream), &shape, &work),
                   "depthwise, gradient of the input");
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_algorithms *ways)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, desc->max_images);
    const struct tdmi_cuda_algorithm ours = {.conv = NULL};
    const bool is_spread = shape.stride == 2 && tdmi_cuda_depthwise_is_usual(&shape);
    tdmi_cuda_algorithm_describe(desc->device, &ours, "depthwise.cu", &ways->forward);
    if (desc->is_training && desc->wants_dx)
        tdmi_cuda_algorithm_describe(desc->device, &ours,
                                     is_spread ? "depthwise_spread.cu" : "depthwise.cu",
                                     &ways->of_input);
    if (desc->is_training)
        tdmi_cuda_algorithm_describe(desc->device, &ours, "depthwise_weights.cu",
                                     &ways->of_weights);
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
