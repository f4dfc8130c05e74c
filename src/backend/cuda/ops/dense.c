/*
 * The op dense. Where cuBLASLt is there and takes them, the products are its (plans.h), on weights
 * that are packed to the tensors' type; else they are dense.cu's. Without training it fuses a relu
 * behind it, which cuBLASLt has in the product.
 *
 * As with convolutions (ops/conv.c), a plan is for max_images, and a ragged batch runs at full
 * size.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/channels.h"
#include "backend/cuda/kernels/conv/conv.h"
#include "backend/cuda/kernels/conv/geometry.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/vendor/plans.h"

/* Only a relu, and only without training: cuBLASLt has no other activation. */
static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    return tdmi_cuda_fuses_clamp(fusion) && fusion->in[0].act == TDMI_ACT_NONE &&
           !fusion->folds_norm && !fusion->adds_residual &&
           (fusion->act == TDMI_ACT_NONE || (fusion->act == TDMI_ACT_RELU && !desc->is_training));
}

static struct tdmi_cuda_dense shape_of(const struct tdmi_op_desc *desc, int n)
{
    return (struct tdmi_cuda_dense){
        .type = desc->storage, .n = n, .in = tdmi_shape_values(desc->in[0]), .out = desc->out.c};
}

/* ---- packed weights: (out, in), then the bias ------------------------------------------------ */

static size_t transposed_bytes(const struct tdmi_op_desc *desc)
{
    const struct tdmi_cuda_dense it = shape_of(desc, 1);
    return ((size_t)(it.in * it.out) * tdmi_dtype_bytes(it.type) + 63) / 64 * 64;
}

static void *bias_in(const struct tdmi_op_desc *desc, const void *packed)
{
    return (char *)(uintptr_t)packed + transposed_bytes(desc);
}

static bool is_packed(const struct tdmi_cuda_plans *plans)
{
    return plans->of[TDMI_CUDNN_FORWARD].product || plans->of[TDMI_CUDNN_OF_INPUT].product;
}

static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    const struct tdmi_cuda_dense it = shape_of(desc, 1);
    const struct tdmi_cuda_weights matrix = {it.type, it.in, (int)it.out};
    const struct tdmi_cuda_weights bias = {it.type, 1, (int)it.out};
    if (!is_packed(&plans))
        return;
    TDMI_CUDA_LAUNCH(stream, "dense, packing weights", tdmi_cuda_weights_transpose, &matrix,
                     call->params[0], NULL, call->packed);
    if (desc->attrs.has_bias)
        TDMI_CUDA_LAUNCH(stream, "dense, packing the bias", tdmi_cuda_weights_transpose, &bias,
                         call->params[1], NULL, bias_in(desc, call->packed));
}

/* ---- running --------------------------------------------------------------------------------- */

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    const struct tdmi_cublaslt_plan *plan = plans.of[TDMI_CUDNN_FORWARD].product;
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    const struct tdmi_cublaslt_call product = {
        .a = call->x[0],
        .b = call->packed,
        .bias = desc->attrs.has_bias ? bias_in(desc, call->packed) : NULL,
        .d = call->y,
        .workspace = call->workspace,
    };
    if (plan)
        tdmi_cuda_note(stream, tdmi_cuda_product_run(stream, plan, &product),
                       "dense by cuBLASLt, forward");
    else
        TDMI_CUDA_LAUNCH(stream, "dense, forward", tdmi_cuda_dense_forward, &it, call->x[0],
                         call->params[0], desc->attrs.has_bias ? call->params[1] : NULL, call->y);
    if (!plans.is_whole && desc->fusion.act != TDMI_ACT_NONE)
        TDMI_CUDA_LAUNCH(stream, "dense, its activation", tdmi_cuda_act, it.type, desc->fusion.act,
                         call->y, call->y, it.n * it.out);
}

static void backward_weights(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call, const struct tdmi_cublaslt_plan *plan)
{
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    const struct tdmi_cublaslt_call product = {
        .a = call->x[0], .b = call->dy, .d = call->dparams[0], .workspace = call->workspace};
    if (plan) {
        tdmi_cuda_clear_tails(stream, desc, call);
        tdmi_cuda_note(stream, tdmi_cuda_product_run(stream, plan, &product),
                       "dense by cuBLASLt, gradient of weights");
    } else
        TDMI_CUDA_LAUNCH(stream, "dense, gradient of weights", tdmi_cuda_dense_weight_gradient, &it,
                         call->x[0], call->dy, call->dparams[0]);
    if (desc->attrs.has_bias)
        TDMI_CUDA_LAUNCH(stream, "dense, gradient of the bias", tdmi_cuda_channel_sum, it.type,
                         call->dy, call->n, desc->out.c, call->dparams[1], call->workspace);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    const struct tdmi_cublaslt_plan *plan = plans.of[TDMI_CUDNN_OF_INPUT].product;
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    const struct tdmi_cublaslt_call product = {
        .a = call->dy, .b = call->packed, .d = call->dx[0], .workspace = call->workspace};
    backward_weights(stream, desc, call, plans.of[TDMI_CUDNN_OF_WEIGHTS].product);
    if (desc->wants_dx && plan)
        tdmi_cuda_note(stream, tdmi_cuda_product_run(stream, plan, &product),
                       "dense by cuBLASLt, gradient of its input");
    else if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "dense, gradient of its input", tdmi_cuda_dense_data_gradient, &it,
                         call->dy, call->params[0], call->dx[0]);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    if (desc->is_training && desc->attrs.has_bias)
        needs->workspace_bytes = tdmi_cuda_columns_sum_bytes(desc->max_images, desc->out.c);
    for (int d = 0; d < TDMI_CUDNN_DIRECTIONS; d++) {
        const size_t room = tdmi_cuda_algorithm_workspace_room(&plans.of[d]);
        if (room > needs->workspace_bytes)
            needs->workspace_bytes = room;
    }
    if (is_packed(&plans))
        needs->packed_bytes = transposed_bytes(desc) +
                              (desc->attrs.has_bias ? (size_t)desc->out.c * sizeof(float) : 0);
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_algorithms *algorithms)
{
    static const char *const names[] = {"dense.cu", "dense.cu", "dense.cu"};
    const struct tdmi_cuda_plans plans = tdmi_cuda_plans_of(desc);
    tdmi_cuda_algorithms_describe(desc, plans.of, names, algorithms);
}

const struct tdmi_kernel tdmi_cuda_dense = {
    .can_fuse = can_fuse,
    .prepare = tdmi_cuda_plans_prepare,
    .release = tdmi_free,
    .needs = needs,
    .describe = describe,
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
