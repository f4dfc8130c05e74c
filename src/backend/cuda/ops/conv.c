/*
 * The op conv. Convolutions that ops/depthwise.c can run are passed on to it. The rest goes to
 * cuDNN or cuBLASLt where they are there and take it (plans.h), on packed weights, and else to
 * conv.cu. Without training all of them fuse the batch norm, residual and activation behind them.
 *
 * A library's plan is for max_images. A ragged batch runs at full size: forward and the gradient of
 * x on whatever the tails of the arrays hold, so that the result of an image does not depend on how
 * many there are; the gradient of the weights, which is a sum, after the tails of x and dy were
 * cleared.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/channels.h"
#include "backend/cuda/kernels/conv/conv.h"
#include "backend/cuda/kernels/conv/geometry.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/vendor/plans.h"

static bool is_depthwise(const struct tdmi_op_desc *desc)
{
    return tdmi_cuda_depthwise.can_run(desc);
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    if (is_depthwise(desc))
        return tdmi_cuda_depthwise.can_fuse(desc);
    return !desc->is_training && tdmi_cuda_fuses_clamp(&desc->fusion) &&
           desc->fusion.in[0].act == TDMI_ACT_NONE;
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

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    *prepared = NULL;
    return is_depthwise(desc) ? TDM_OK : tdmi_cuda_plans_prepare(desc, prepared, err);
}

/* ---- packed weights ------------------------------------------------------------------------- */

/* Offsets in the packed memory; whole: its size, 0 where nothing is packed. */
struct packed {
    size_t transposed; /* (out, …), for libraries */
    size_t folded;     /* (…, out), for conv.cu, where a batch norm is folded in */
    size_t factor, bias, whole;
    bool is_transposed, is_folded, has_bias;
};

static size_t rounded(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static size_t claim(size_t *whole, bool is_needed, size_t bytes)
{
    const size_t at = *whole;
    *whole += is_needed ? rounded(bytes, 64) : 0;
    return at;
}

static struct packed packed_of(const struct tdmi_op_desc *desc)
{
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    const bool has_forward = tdmi_cuda_algorithm_exists(&plans.of[TDMI_CUDNN_FORWARD]);
    const struct tdmi_cuda_weights matrix = matrix_of(desc);
    const size_t values = (size_t)matrix.rows * (size_t)matrix.columns;
    const size_t channels = sizeof(float) * (size_t)matrix.columns;
    struct packed it = {.is_transposed = has_forward ||
                                         tdmi_cuda_algorithm_exists(&plans.of[TDMI_CUDNN_OF_INPUT]),
                        .is_folded = desc->fusion.folds_norm && !has_forward};
    it.has_bias =
        (it.is_transposed || it.is_folded) && (desc->attrs.has_bias || desc->fusion.folds_norm);
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
    if (is_depthwise(desc)) {
        tdmi_cuda_depthwise.pack(stream, desc, call);
        return;
    }
    const struct packed it = packed_of(desc);
    const struct tdmi_cuda_weights matrix = matrix_of(desc);
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
        TDMI_CUDA_LAUNCH(stream, "conv, folding a batch norm", tdmi_cuda_weights_fold, &norm);
    if (it.is_folded)
        TDMI_CUDA_LAUNCH(stream, "conv, folding a batch norm", tdmi_cuda_scale_shift, &scaled);
    if (it.is_transposed)
        TDMI_CUDA_LAUNCH(stream, "conv, packing weights", tdmi_cuda_weights_transpose, &matrix,
                         call->params[0], folds ? norm.factor : NULL,
                         at(call->packed, it.transposed));
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Run a library's algorithm on the tensors of the convolution, by enum tdmi_cudnn_tensor. */
static void run_by_library(tdmi_stream *stream, const struct tdmi_cuda_algorithm *algorithm,
                           void *const tensors[TDMI_CUDNN_TENSORS],
                           const struct tdmi_cublaslt_call *product, void *workspace,
                           const char *what)
{
    tdmi_cuda_note(stream,
                   algorithm->product
                       ? tdmi_cuda_product_run(stream, algorithm->product, product)
                       : tdmi_cuda_conv_run(stream, algorithm->conv, tensors, workspace),
                   what);
}

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
        TDMI_CUDA_LAUNCH(stream, "conv, bias, residual and activation", tdmi_cuda_scale_shift,
                         &rest);
}

static void forward_by_libraries(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                                 const struct tdmi_op_call *call,
                                 const struct tdmi_cuda_plans *plans)
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
    run_by_library(stream, &plans->of[TDMI_CUDNN_FORWARD], tensors, &product, call->workspace,
                   "conv by a library, forward");
    if (!plans->is_whole)
        finish(stream, desc, call, bias);
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    if (is_depthwise(desc)) {
        tdmi_cuda_depthwise.forward(stream, desc, call);
        return;
    }
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    if (tdmi_cuda_algorithm_exists(&plans.of[TDMI_CUDNN_FORWARD])) {
        forward_by_libraries(stream, desc, call, &plans);
        return;
    }
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    const struct packed packed = packed_of(desc);
    const float *weights = packed.is_folded ? at(call->packed, packed.folded) : call->params[0];
    const float *bias = packed.is_folded       ? at(call->packed, packed.bias)
                        : desc->attrs.has_bias ? call->params[1]
                                               : NULL;
    TDMI_CUDA_LAUNCH(stream, "conv, forward", tdmi_cuda_conv_forward, &it, call->x[0], weights,
                     bias, call->y);
    finish(stream, desc, call, NULL);
}

/* ---- backward ------------------------------------------------------------------------------- */

/* Workspace for the gradient of the weights by cuDNN, before it is transposed. */
static size_t transposed_bytes(const struct tdmi_op_desc *desc)
{
    const struct tdmi_cuda_weights matrix = matrix_of(desc);
    return rounded((size_t)matrix.rows * (size_t)matrix.columns * tdmi_dtype_bytes(matrix.type),
                   256);
}

static void weights_by_library(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                               const struct tdmi_op_call *call,
                               const struct tdmi_cuda_algorithm *algorithm)
{
    const struct tdmi_cuda_weights matrix = matrix_of(desc);
    const struct tdmi_cublaslt_call product = {
        .a = call->x[0], .b = call->dy, .d = call->dparams[0], .workspace = call->workspace};
    void *const tensors[TDMI_CUDNN_TENSORS] = {
        [TDMI_CUDNN_X] = (void *)(uintptr_t)call->x[0],
        [TDMI_CUDNN_W] = call->workspace,
        [TDMI_CUDNN_Y] = (void *)(uintptr_t)call->dy,
    };
    tdmi_cuda_clear_tails(stream, desc, call);
    run_by_library(stream, algorithm, tensors, &product,
                   at(call->workspace, transposed_bytes(desc)),
                   "conv by a library, gradient of weights");
    if (algorithm->conv)
        TDMI_CUDA_LAUNCH(stream, "conv, transposing the gradient of weights",
                         tdmi_cuda_weights_transpose_back, &matrix, call->workspace,
                         call->dparams[0]);
}

static void backward_weights(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call,
                             const struct tdmi_cuda_algorithm *algorithm)
{
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    if (tdmi_cuda_algorithm_exists(algorithm))
        weights_by_library(stream, desc, call, algorithm);
    else
        TDMI_CUDA_LAUNCH(stream, "conv, gradient of weights", tdmi_cuda_conv_weight_gradient, &it,
                         call->x[0], call->dy, call->dparams[0], call->workspace);
    if (desc->attrs.has_bias)
        TDMI_CUDA_LAUNCH(stream, "conv, gradient of the bias", tdmi_cuda_channel_sum, desc->storage,
                         call->dy, call->n * tdmi_shape_pixels(desc->out), desc->out.c,
                         call->dparams[1], call->workspace);
}

static size_t dx_bytes(const struct tdmi_op_desc *desc)
{
    return rounded((size_t)desc->max_images * (size_t)tdmi_shape_values(desc->in[0]) *
                       tdmi_dtype_bytes(desc->storage),
                   256);
}

/* dx_add may be dx itself, so cuDNN's gradient goes to the workspace first. cuBLASLt's result is
 * their sum, in the same place or another. */
static void input_by_library(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call,
                             const struct tdmi_cuda_algorithm *algorithm)
{
    const struct packed it = packed_of(desc);
    const float *add = call->dx_add[0];
    void *const dx = add ? call->workspace : call->dx[0];
    const struct tdmi_cublaslt_call product = {.a = call->dy,
                                               .b = at(call->packed, it.transposed),
                                               .added = add,
                                               .d = call->dx[0],
                                               .workspace = call->workspace};
    void *const tensors[TDMI_CUDNN_TENSORS] = {
        [TDMI_CUDNN_X] = dx,
        [TDMI_CUDNN_W] = at(call->packed, it.transposed),
        [TDMI_CUDNN_Y] = (void *)(uintptr_t)call->dy,
    };
    run_by_library(stream, algorithm, tensors, &product, at(call->workspace, dx_bytes(desc)),
                   "conv by a library, gradient of its input");
    if (add && algorithm->conv)
        TDMI_CUDA_LAUNCH(stream, "conv, adding to the gradient of its input", tdmi_cuda_sum,
                         desc->storage, dx, add, call->dx[0],
                         call->n * tdmi_shape_values(desc->in[0]));
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    if (is_depthwise(desc)) {
        tdmi_cuda_depthwise.backward(stream, desc, call);
        return;
    }
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    const struct tdmi_cuda_algorithm *of_input = &plans.of[TDMI_CUDNN_OF_INPUT];
    const struct tdmi_cuda_conv it = shape_of(desc, call->n);
    backward_weights(stream, desc, call, &plans.of[TDMI_CUDNN_OF_WEIGHTS]);
    if (desc->wants_dx && tdmi_cuda_algorithm_exists(of_input))
        input_by_library(stream, desc, call, of_input);
    else if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "conv, gradient of its input", tdmi_cuda_conv_data_gradient, &it,
                         call->dy, call->params[0], call->dx_add[0], call->dx[0]);
}

static void need(struct tdmi_kernel_needs *needs, size_t bytes)
{
    if (bytes > needs->workspace_bytes)
        needs->workspace_bytes = bytes;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    if (is_depthwise(desc)) {
        tdmi_cuda_depthwise.needs(desc, needs);
        return;
    }
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    const struct tdmi_cuda_algorithm *of_input = &plans.of[TDMI_CUDNN_OF_INPUT];
    const struct tdmi_cuda_algorithm *of_weights = &plans.of[TDMI_CUDNN_OF_WEIGHTS];
    const struct tdmi_cuda_conv it = shape_of(desc, desc->max_images);
    needs->packed_bytes = packed_of(desc).whole;
    need(needs, tdmi_cuda_algorithm_workspace_room(&plans.of[TDMI_CUDNN_FORWARD]));
    if (!desc->is_training)
        return;
    if (!tdmi_cuda_algorithm_exists(of_weights))
        need(needs, tdmi_cuda_conv_workspace_bytes(&it));
    if (desc->attrs.has_bias)
        need(needs, tdmi_cuda_columns_sum_bytes(desc->max_images * tdmi_shape_pixels(desc->out),
                                                desc->out.c));
    need(needs, (of_weights->conv ? transposed_bytes(desc) : 0) +
                    tdmi_cuda_algorithm_workspace_room(of_weights));
    need(needs,
         (of_input->conv ? dx_bytes(desc) : 0) + tdmi_cuda_algorithm_workspace_room(of_input));
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_algorithms *algorithms)
{
    static const char *const names[] = {"conv.cu", "conv.cu", "conv.cu"};
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    if (is_depthwise(desc))
        tdmi_cuda_depthwise.describe(desc, algorithms);
    else
        tdmi_cuda_algorithms_describe(desc, plans.of, names, algorithms);
}

const struct tdmi_kernel tdmi_cuda_conv = {
    .can_fuse = can_fuse,
    .adds_dx = true,
    .prepare = prepare,
    .release = tdmi_free,
    .needs = needs,
    .describe = describe,
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
