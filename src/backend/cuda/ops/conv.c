/*
 * The op conv. What ops/depthwise.c can run is handed on to it, with all that it takes over from
 * its neighbours. The rest goes to cuDNN or cuBLASLt where they are there and take it
 * (conv_plans.h), on weights that are packed as they want them, and else to conv.cu. Without
 * training all of them carry the batch norm, residual and activation behind them.
 *
 * A library's plan is for max_images. A ragged batch runs at full size: forward and the gradient of
 * x on whatever the tails of the arrays hold, so that the result of an image does not depend on how
 * many there are; the gradient of the weights, which is a sum, after the tails of x and dy were
 * cleared.
 */
#include "backend/cuda/kernels/channels.h"
#include "backend/cuda/kernels/conv/columns.h"
#include "backend/cuda/kernels/conv/conv.h"
#include "backend/cuda/vendor/conv_plans.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/conv/weights.h"
#include "base/memory.h"

static bool is_handed_on(const struct tdmi_op_desc *desc)
{
    return tdmi_cuda_depthwise.can_run(desc);
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    if (is_handed_on(desc))
        return tdmi_cuda_depthwise.can_fuse(desc);
    const bool has_more = fusion->gives_sums || fusion->reads_gradient_form || fusion->pool ||
                          fusion->in[0].has_norm || fusion->in[0].act != TDMI_ACT_NONE;
    return !desc->is_training && !has_more &&
           (fusion->act == TDMI_ACT_NONE || fusion->act == TDMI_ACT_RELU ||
            fusion->act == TDMI_ACT_RELU6);
}

static struct tdmi_cuda_conv shape_of(const struct tdmi_op_desc *desc, int n)
{
    const struct tdmi_op_attrs *attrs = &desc->attrs;
    return (struct tdmi_cuda_conv){
        .type = desc->storage,
        .in = desc->in[0],
        .out = desc->out,
        .n = n,
        .kernel = attrs->kernel,
        .stride = attrs->stride,
        .dilation = attrs->dilation,
        .groups = attrs->groups,
        .pad_top = attrs->pad_top,
        .pad_left = attrs->pad_left,
    };
}

static struct tdmi_cuda_weights matrix_of(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_attrs *attrs = &desc->attrs;
    return (struct tdmi_cuda_weights){
        .type = desc->storage,
        .rows = (int64_t)attrs->kernel * attrs->kernel * (desc->in[0].c / attrs->groups),
        .columns = desc->out.c,
    };
}

static bool has_bias(const struct tdmi_op_desc *desc)
{
    return desc->attrs.has_bias || desc->fusion.folds_norm;
}

/* ---- plans ---------------------------------------------------------------------------------- */

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    *prepared = NULL;
    if (!desc->device || is_handed_on(desc))
        return TDM_OK;
    struct tdmi_cuda_conv_plans *plans = tdmi_alloc(1, sizeof *plans);
    if (!plans)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing a convolution: out of memory");
    *plans = tdmi_cuda_conv_plans_of(desc);
    *prepared = plans;
    return TDM_OK;
}

static void release(void *prepared)
{
    tdmi_free(prepared);
}

static struct tdmi_cuda_conv_plans plans_of(const struct tdmi_op_desc *desc)
{
    return desc->prepared ? *(const struct tdmi_cuda_conv_plans *)desc->prepared
                          : (struct tdmi_cuda_conv_plans){.is_whole = false};
}

/* ---- packed weights ------------------------------------------------------------------------- */

/* Offsets in the packed memory; whole: its size, 0 where nothing is packed. */
struct packed {
    size_t transposed; /* (out, …), for libraries */
    size_t folded;     /* (…, out), for conv.cu, where a batch norm is folded in */
    size_t factor, bias, whole;
    bool is_transposed, is_folded, has_bias;
};

static size_t claim(size_t *whole, bool is_wanted, size_t bytes)
{
    const size_t at = *whole;
    *whole += is_wanted ? (bytes + 63) / 64 * 64 : 0;
    return at;
}

static struct packed packed_of(const struct tdmi_op_desc *desc)
{
    const struct tdmi_cuda_conv_plans plans = plans_of(desc);
    const bool has_forward = tdmi_cuda_algorithm_exists(&plans.forward);
    const struct tdmi_cuda_weights matrix = matrix_of(desc);
    const size_t values = (size_t)matrix.rows * (size_t)matrix.columns;
    const size_t channels = sizeof(float) * (size_t)matrix.columns;
    struct packed it = {.is_transposed = has_forward || tdmi_cuda_algorithm_exists(&plans.of_input),
                        .is_folded = desc->fusion.folds_norm && !has_forward};
    it.has_bias = (it.is_transposed || it.is_folded) && has_bias(desc);
    it.transposed = claim(&it.whole, it.is_transposed, values * tdmi_dtype_bytes(matrix.type));
    it.folded = claim(&it.whole, it.is_folded, values * sizeof(float));
    it.factor = claim(&it.whole, it.has_bias, channels);
    it.bias = claim(&it.whole, it.has_bias, channels);
    return it;
}

static void *at(const void *packed, size_t offset)
{
    return (char *)(uintptr_t)packed + offset;
}

static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    if (is_handed_on(desc)) {
        tdmi_cuda_depthwise.pack(stream, desc, call);
        return;
    }
    const struct packed it = packed_of(desc);
    const struct tdmi_cuda_weights matrix = matrix_of(desc);
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    const bool folds = desc->fusion.folds_norm;
    const struct tdmi_cuda_weights_fold norm = {
        .channels = desc->out.c,
        .old_bias = desc->attrs.has_bias ? call->params[1] : NULL,
        .scale = folds ? call->norm_params[0] : NULL,
        .shift = folds ? call->norm_params[1] : NULL,
        .mean = folds ? call->norm_states[0] : NULL,
        .variance = folds ? call->norm_states[1] : NULL,
        .epsilon = call->norm_epsilon,
        .factor = at(call->packed, it.factor),
        .bias = at(call->packed, it.bias),
    };
    const struct tdmi_cuda_channels scaled = {
        .type = TDMI_DTYPE_F32,
        .x = call->params[0],
        .y = at(call->packed, it.folded),
        .scale = norm.factor,
        .pixels = matrix.rows,
        .channels = matrix.columns,
    };
    if (it.has_bias)
        tdmi_cuda_note(stream, tdmi_cuda_weights_fold(queue, &norm), "conv, folding a batch norm");
    if (it.is_folded)
        tdmi_cuda_note(stream, tdmi_cuda_scale_shift(queue, &scaled), "conv, folding a batch norm");
    if (it.is_transposed)
        tdmi_cuda_note(stream,
                       tdmi_cuda_weights_transpose(queue, &matrix, call->params[0],
                                                   folds ? norm.factor : NULL,
                                                   at(call->packed, it.transposed)),
                       "conv, packing weights");
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Bias, residual and activation after the product, in place. */
static void finish(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                   const struct tdmi_op_call *call, const float *bias)
{
    const struct tdmi_cuda_channels rest = {
        .type = desc->storage,
        .act = desc->fusion.act,
        .x = call->y,
        .residual = desc->fusion.adds_residual ? call->residual : NULL,
        .y = call->y,
        .shift = bias,
        .pixels = call->n * tdmi_shape_pixels(desc->out),
        .channels = desc->out.c,
    };
    if (bias || rest.residual || rest.act != TDMI_ACT_NONE)
        tdmi_cuda_note(stream, tdmi_cuda_scale_shift(tdmi_cuda_queue(stream), &rest),
                       "conv, what is behind it");
}

static void multiply(tdmi_stream *stream, const struct tdmi_cublaslt_plan *plan,
                     struct tdmi_cublaslt_call call, const char *what)
{
    tdmi_cuda_note(stream, tdmi_cuda_product_run(stream, plan, &call), what);
}

static void forward_by_libraries(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                                 const struct tdmi_op_call *call,
                                 const struct tdmi_cuda_conv_plans *plans)
{
    const struct packed it = packed_of(desc);
    float *bias = it.has_bias ? at(call->packed, it.bias) : NULL;
    const struct tdmi_cublaslt_call product = {.a = call->x[0],
                                               .b = at(call->packed, it.transposed),
                                               .bias = plans->is_whole ? bias : NULL,
                                               .d = call->y,
                                               .workspace = call->workspace};
    void *const tensors[TDMI_CUDNN_TENSORS] = {
        [TDMI_CUDNN_X] = (void *)(uintptr_t)call->x[0],
        [TDMI_CUDNN_W] = at(call->packed, it.transposed),
        [TDMI_CUDNN_Y] = call->y,
        [TDMI_CUDNN_BIAS] = plans->is_whole ? bias : NULL,
        [TDMI_CUDNN_ADDED] = plans->is_whole && desc->fusion.adds_residual
                                 ? (void *)(uintptr_t)call->residual
                                 : NULL,
    };
    if (plans->forward.product)
        multiply(stream, plans->forward.product, product, "conv by cuBLASLt, forward");
    else
        tdmi_cuda_note(stream,
                       tdmi_cuda_conv_run(stream, plans->forward.conv, tensors, call->workspace),
                       "conv by cuDNN, forward");
    if (!plans->is_whole)
        finish(stream, desc, call, bias);
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    if (is_handed_on(desc)) {
        tdmi_cuda_depthwise.forward(stream, desc, call);
        return;
    }
    const struct tdmi_cuda_conv_plans plans = plans_of(desc);
    if (tdmi_cuda_algorithm_exists(&plans.forward)) {
        forward_by_libraries(stream, desc, call, &plans);
        return;
    }
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    const struct packed packed = packed_of(desc);
    const float *weights = packed.is_folded ? at(call->packed, packed.folded) : call->params[0];
    const float *bias = desc->attrs.has_bias ? call->params[1] : NULL;
    if (packed.is_folded)
        bias = at(call->packed, packed.bias);
    tdmi_cuda_note(
        stream,
        tdmi_cuda_conv_forward(tdmi_cuda_queue(stream), &it, call->x[0], weights, bias, call->y),
        "conv, forward");
    finish(stream, desc, call, NULL);
}

/* ---- backward ------------------------------------------------------------------------------- */

static size_t whole_lines(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static size_t transposed_bytes(const struct tdmi_op_desc *desc)
{
    const struct tdmi_cuda_weights matrix = matrix_of(desc);
    return whole_lines((size_t)matrix.rows * (size_t)matrix.columns *
                       tdmi_dtype_bytes(matrix.type));
}

static void weights_by_cudnn(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call, const struct tdmi_cudnn_plan *plan)
{
    const struct tdmi_cuda_weights matrix = matrix_of(desc);
    void *const tensors[TDMI_CUDNN_TENSORS] = {
        [TDMI_CUDNN_X] = (void *)(uintptr_t)call->x[0],
        [TDMI_CUDNN_W] = call->workspace,
        [TDMI_CUDNN_Y] = (void *)(uintptr_t)call->dy,
    };
    tdmi_cuda_note(
        stream,
        tdmi_cuda_conv_run(stream, plan, tensors, at(call->workspace, transposed_bytes(desc))),
        "conv by cuDNN, gradient of weights");
    tdmi_cuda_note(stream,
                   tdmi_cuda_weights_transpose_back(tdmi_cuda_queue(stream), &matrix,
                                                    call->workspace, call->dparams[0]),
                   "conv, turning the gradient of weights");
}

static size_t dx_bytes(const struct tdmi_op_desc *desc)
{
    return whole_lines((size_t)desc->max_images * (size_t)tdmi_shape_values(desc->in[0]) *
                       tdmi_dtype_bytes(desc->storage));
}

/* cuBLASLt's result is their sum, in the same place or another. */
static void input_by_cublaslt(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                              const struct tdmi_op_call *call,
                              const struct tdmi_cublaslt_plan *plan)
{
    const struct packed it = packed_of(desc);
    const struct tdmi_cublaslt_call product = {.a = call->dy,
                                               .b = at(call->packed, it.transposed),
                                               .added = call->dx_add[0],
                                               .d = call->dx[0],
                                               .workspace = call->workspace};
    multiply(stream, plan, product, "conv by cuBLASLt, gradient of its input");
}

/* dx_add may be dx itself, so the gradient goes to the workspace first. */
static void input_by_cudnn(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call, const struct tdmi_cudnn_plan *plan)
{
    const struct packed it = packed_of(desc);
    const float *add = call->dx_add[0];
    void *const dx = add ? call->workspace : call->dx[0];
    void *const tensors[TDMI_CUDNN_TENSORS] = {
        [TDMI_CUDNN_X] = dx,
        [TDMI_CUDNN_W] = at(call->packed, it.transposed),
        [TDMI_CUDNN_Y] = (void *)(uintptr_t)call->dy,
    };
    tdmi_cuda_note(stream,
                   tdmi_cuda_conv_run(stream, plan, tensors, at(call->workspace, dx_bytes(desc))),
                   "conv by cuDNN, gradient of its input");
    if (add)
        tdmi_cuda_note(stream,
                       tdmi_cuda_add_act(tdmi_cuda_queue(stream), desc->storage, TDMI_ACT_NONE, dx,
                                         add, call->dx[0],
                                         call->n * tdmi_shape_values(desc->in[0])),
                       "conv, adding to the gradient of its input");
}

static void backward_weights(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call,
                             const struct tdmi_cuda_algorithm *algorithm)
{
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    const struct tdmi_cublaslt_call product = {
        .a = call->x[0], .b = call->dy, .d = call->dparams[0], .workspace = call->workspace};
    if (tdmi_cuda_algorithm_exists(algorithm)) {
        tdmi_cuda_clear_tail(stream, desc, call->n, desc->in[0], call->x[0]);
        tdmi_cuda_clear_tail(stream, desc, call->n, desc->out, call->dy);
    }
    if (algorithm->product)
        multiply(stream, algorithm->product, product, "conv by cuBLASLt, gradient of weights");
    else if (algorithm->conv)
        weights_by_cudnn(stream, desc, call, algorithm->conv);
    else
        tdmi_cuda_note(stream,
                       tdmi_cuda_conv_weight_gradient(tdmi_cuda_queue(stream), &it, call->x[0],
                                                      call->dy, call->dparams[0], call->workspace),
                       "conv, gradient of weights");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    if (is_handed_on(desc)) {
        tdmi_cuda_depthwise.backward(stream, desc, call);
        return;
    }
    const struct tdmi_cuda_conv_plans plans = plans_of(desc);
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    backward_weights(stream, desc, call, &plans.of_weights);
    if (desc->attrs.has_bias)
        tdmi_cuda_note(stream,
                       tdmi_cuda_channel_sum(queue, desc->storage, call->dy,
                                             (int64_t)call->n * desc->out.h * desc->out.w,
                                             desc->out.c, call->dparams[1], call->workspace),
                       "conv, gradient of the bias");
    if (desc->wants_dx && plans.of_input.product)
        input_by_cublaslt(stream, desc, call, plans.of_input.product);
    else if (desc->wants_dx && plans.of_input.conv)
        input_by_cudnn(stream, desc, call, plans.of_input.conv);
    else if (desc->wants_dx)
        tdmi_cuda_note(stream,
                       tdmi_cuda_conv_data_gradient(queue, &it, call->dy, call->params[0],
                                                    call->dx_add[0], call->dx[0]),
                       "conv, gradient of its input");
}

static void want(struct tdmi_kernel_needs *needs, size_t bytes)
{
    if (bytes > needs->workspace_bytes)
        needs->workspace_bytes = bytes;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    if (is_handed_on(desc)) {
        tdmi_cuda_depthwise.needs(desc, needs);
        return;
    }
    const struct tdmi_cuda_conv_plans plans = plans_of(desc);
    const struct tdmi_cuda_conv it = shape_of(desc, desc->max_images);
    needs->packed_bytes = packed_of(desc).whole;
    want(needs, tdmi_cuda_algorithm_workspace_room(&plans.forward));
    if (!desc->is_training)
        return;
    if (!tdmi_cuda_algorithm_exists(&plans.of_weights))
        want(needs, tdmi_cuda_conv_workspace_bytes(&it));
    if (desc->attrs.has_bias)
        want(needs, tdmi_cuda_columns_sum_bytes(
                        (int64_t)desc->max_images * desc->out.h * desc->out.w, desc->out.c));
    want(needs, (plans.of_weights.conv ? transposed_bytes(desc) : 0) +
                    tdmi_cuda_algorithm_workspace_room(&plans.of_weights));
    want(needs, (plans.of_input.conv ? dx_bytes(desc) : 0) +
                    tdmi_cuda_algorithm_workspace_room(&plans.of_input));
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_algorithms *ways)
{
    const struct tdmi_cuda_conv_plans plans = plans_of(desc);
    if (is_handed_on(desc)) {
        tdmi_cuda_depthwise.describe(desc, ways);
        return;
    }
    tdmi_cuda_algorithm_describe(desc->device, &plans.forward, "conv.cu", &ways->forward);
    if (desc->is_training && desc->wants_dx)
        tdmi_cuda_algorithm_describe(desc->device, &plans.of_input, "conv.cu", &ways->of_input);
    if (desc->is_training)
        tdmi_cuda_algorithm_describe(desc->device, &plans.of_weights, "conv.cu", &ways->of_weights);
}

const struct tdmi_kernel tdmi_cuda_conv = {
    .can_fuse = can_fuse,
    .adds_dx = true,
    .prepare = prepare,
    .release = release,
    .needs = needs,
    .describe = describe,
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
