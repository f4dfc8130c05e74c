/*
 * The op dense. Where cuBLASLt is there and takes them, the products are its (libraries.h), on
 * weights that are packed to the tensors' type; else they are dense.cu's. Without training it
 * carries a relu behind it, which cuBLASLt has in the product.
 *
 * As with convolutions (ops/conv.c), a plan is for max_images, and a ragged batch runs at full
 * size.
 */
#include "backend/cuda/kernels/channels.h"
#include "backend/cuda/kernels/conv/columns.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/conv/dense.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/vendor/libraries.h"
#include "backend/cuda/kernels/conv/weights.h"
#include "base/memory.h"

/* NULL: by dense.cu. */
struct plans {
    const struct tdmi_cublaslt_plan *forward, *of_input, *of_weights;
    bool is_whole; /* forward: the activation, too */
};

/* Only a relu, and only without training: cuBLASLt has no other activation. */
static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    const bool has_more = fusion->folds_norm || fusion->adds_residual || fusion->gives_sums ||
                          fusion->reads_gradient_form || fusion->pool || fusion->in[0].has_norm ||
                          fusion->in[0].act != TDMI_ACT_NONE;
    return !has_more &&
           (fusion->act == TDMI_ACT_NONE || (fusion->act == TDMI_ACT_RELU && !desc->is_training));
}

static struct tdmi_cuda_dense shape_of(const struct tdmi_op_desc *desc, int n)
{
    return (struct tdmi_cuda_dense){
        .type = desc->storage, .n = n, .in = tdmi_shape_values(desc->in[0]), .out = desc->out.c};
}

/* ---- plans ---------------------------------------------------------------------------------- */

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    const struct tdmi_cuda_dense it = shape_of(desc, desc->max_images);
    const struct tdmi_cublaslt_product forward = {.type = it.type,
                                                  .result = it.type,
                                                  .rows = it.n,
                                                  .columns = it.out,
                                                  .depth = it.in,
                                                  .is_b_transposed = true,
                                                  .has_bias = desc->attrs.has_bias,
                                                  .allows_tf32 = desc->allows_tf32,
                                                  .may_vary = desc->may_vary,
                                                  .alignment = 16,
                                                  .most_workspace = desc->most_workspace};
    struct tdmi_cublaslt_product of_input = forward, of_weights = forward;
    of_input.columns = of_weights.rows = it.in;
    of_input.depth = it.out;
    of_weights.depth = it.n;
    of_input.is_b_transposed = of_weights.is_b_transposed = false;
    of_input.has_bias = of_weights.has_bias = false;
    of_weights.is_a_transposed = true;
    of_weights.result = TDMI_DTYPE_F32;
    of_weights.alignment = (int)sizeof(float); /* gradients lie where they lie */
    *prepared = NULL;
    if (!desc->device)
        return TDM_OK;
    struct plans *plans = tdmi_alloc(1, sizeof *plans);
    if (!plans)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing a dense layer: out of memory");
    struct tdmi_cublaslt_product whole = forward;
    whole.act = desc->fusion.act;
    plans->forward = tdmi_cuda_product_plan(desc->device, &whole);
    plans->is_whole = plans->forward != NULL;
    if (!plans->forward && whole.act != TDMI_ACT_NONE)
        plans->forward = tdmi_cuda_product_plan(desc->device, &forward);
    if (desc->is_training)
        plans->of_weights = tdmi_cuda_product_plan(desc->device, &of_weights);
    if (desc->is_training && desc->wants_dx)
        plans->of_input = tdmi_cuda_product_plan(desc->device, &of_input);
    *prepared = plans;
    return TDM_OK;
}

static void release(void *prepared)
{
    tdmi_free(prepared);
}

static struct plans plans_of(const struct tdmi_op_desc *desc)
{
    return desc->prepared ? *(const struct plans *)desc->prepared : (struct plans){0};
}

/* ---- packed weights ------------------------------------------------------------------------- */

static size_t whole_lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* (out, in), then the bias */
static size_t transposed_bytes(const struct tdmi_op_desc *desc)
{
    const struct tdmi_cuda_dense it = shape_of(desc, 1);
    return whole_lines((size_t)(it.in * it.out) * tdmi_dtype_bytes(it.type));
}

static void *bias_in(const struct tdmi_op_desc *desc, const void *packed)
{
    return (char *)(uintptr_t)packed + transposed_bytes(desc);
}

static bool is_packed(const struct tdmi_op_desc *desc)
{
    const struct plans plans = plans_of(desc);
    return plans.forward || plans.of_input;
}

static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    const struct tdmi_cuda_dense it = shape_of(desc, 1);
    const struct tdmi_cuda_weights matrix = {it.type, it.in, (int)it.out};
    const struct tdmi_cuda_weights bias = {it.type, 1, (int)it.out};
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    if (!is_packed(desc))
        return;
    tdmi_cuda_note(stream,
                   tdmi_cuda_weights_transpose(queue, &matrix, call->params[0], NULL, call->packed),
                   "dense, packing weights");
    if (desc->attrs.has_bias)
        tdmi_cuda_note(stream,
                       tdmi_cuda_weights_transpose(queue, &bias, call->params[1], NULL,
                                                   bias_in(desc, call->packed)),
                       "dense, packing the bias");
}

/* ---- running -------------------------------------------------------------------------------- */

static void multiply(tdmi_stream *stream, const struct tdmi_cublaslt_plan *plan,
                     struct tdmi_cublaslt_call call, const char *what)
{
    tdmi_cuda_note(stream, tdmi_cuda_product_run(stream, plan, &call), what);
}

/* The activation in place, as a separate pass. */
static void activate(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    tdmi_cuda_note(stream,
                   tdmi_cuda_add_act(tdmi_cuda_queue(stream), it.type, desc->fusion.act, call->y,
                                     NULL, call->y, it.n * it.out),
                   "dense, what is behind it");
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct plans plans = plans_of(desc);
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    const struct tdmi_cublaslt_call product = {
        .a = call->x[0],
        .b = call->packed,
        .bias = desc->attrs.has_bias ? bias_in(desc, call->packed) : NULL,
        .d = call->y,
        .workspace = call->workspace,
    };
    if (plans.forward)
        multiply(stream, plans.forward, product, "dense by cuBLASLt, forward");
    else
        tdmi_cuda_note(
            stream,
            tdmi_cuda_dense_forward(tdmi_cuda_queue(stream), &it, call->x[0], call->params[0],
                                    desc->attrs.has_bias ? call->params[1] : NULL, call->y),
            "dense, forward");
    if (!plans.is_whole && desc->fusion.act != TDMI_ACT_NONE)
        activate(stream, desc, call);
}

static void backward_weights(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call, const struct plans *plans)
{
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    const struct tdmi_cublaslt_call product = {
        .a = call->x[0], .b = call->dy, .d = call->dparams[0], .workspace = call->workspace};
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    if (plans->of_weights) {
        tdmi_cuda_clear_tail(stream, desc, call->n, desc->in[0], call->x[0]);
        tdmi_cuda_clear_tail(stream, desc, call->n, desc->out, call->dy);
        multiply(stream, plans->of_weights, product, "dense by cuBLASLt, gradient of weights");
    } else
        tdmi_cuda_note(
            stream,
            tdmi_cuda_dense_weight_gradient(queue, &it, call->x[0], call->dy, call->dparams[0]),
            "dense, gradient of weights");
    if (desc->attrs.has_bias)
        tdmi_cuda_note(stream,
                       tdmi_cuda_channel_sum(queue, it.type, call->dy, call->n, desc->out.c,
                                             call->dparams[1], call->workspace),
                       "dense, gradient of the bias");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct plans plans = plans_of(desc);
    const struct tdmi_cuda_dense it = shape_of(desc, call->n);
    const struct tdmi_cublaslt_call product = {
        .a = call->dy, .b = call->packed, .d = call->dx[0], .workspace = call->workspace};
    backward_weights(stream, desc, call, &plans);
    if (desc->wants_dx && plans.of_input)
        multiply(stream, plans.of_input, product, "dense by cuBLASLt, gradient of its input");
    else if (desc->wants_dx)
        tdmi_cuda_note(stream,
                       tdmi_cuda_dense_data_gradient(tdmi_cuda_queue(stream), &it, call->dy,
                                                     call->params[0], call->dx[0]),
                       "dense, gradient of its input");
}

static void want(struct tdmi_kernel_needs *needs, const struct tdmi_cublaslt_plan *plan)
{
    const size_t room = plan ? tdmi_cuda_workspace_room(plan->workspace_bytes) : 0;
    if (room > needs->workspace_bytes)
        needs->workspace_bytes = room;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct plans plans = plans_of(desc);
    if (desc->is_training && desc->attrs.has_bias)
        needs->workspace_bytes = tdmi_cuda_columns_sum_bytes(desc->max_images, desc->out.c);
    want(needs, plans.forward);
    want(needs, plans.of_input);
    want(needs, plans.of_weights);
    if (is_packed(desc))
        needs->packed_bytes = transposed_bytes(desc) +
                              (desc->attrs.has_bias ? (size_t)desc->out.c * sizeof(float) : 0);
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_algorithms *ways)
{
    const struct plans plans = plans_of(desc);
    const struct tdmi_cuda_algorithm forward = {.product = plans.forward};
    const struct tdmi_cuda_algorithm of_input = {.product = plans.of_input};
    const struct tdmi_cuda_algorithm of_weights = {.product = plans.of_weights};
    tdmi_cuda_algorithm_describe(desc->device, &forward, "dense.cu", &ways->forward);
    if (desc->is_training && desc->wants_dx)
        tdmi_cuda_algorithm_describe(desc->device, &of_input, "dense.cu", &ways->of_input);
    if (desc->is_training)
        tdmi_cuda_algorithm_describe(desc->device, &of_weights, "dense.cu", &ways->of_weights);
}

const struct tdmi_kernel tdmi_cuda_dense = {
    .can_fuse = can_fuse,
    .prepare = prepare,
    .release = release,
    .needs = needs,
    .describe = describe,
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
