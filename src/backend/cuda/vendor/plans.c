/* Choosing the libraries' algorithms for a convolution or a dense layer. */
#include "backend/cuda/vendor/plans.h"
#include "base/scope.h"

#include <stdio.h>

bool tdmi_cuda_algorithm_exists(const struct tdmi_cuda_algorithm *algorithm)
{
    return algorithm->conv || algorithm->product;
}

static size_t workspace_of(const struct tdmi_cuda_algorithm *algorithm)
{
    return algorithm->conv      ? algorithm->conv->workspace_bytes
           : algorithm->product ? algorithm->product->workspace_bytes
                                : 0;
}

size_t tdmi_cuda_algorithm_workspace_room(const struct tdmi_cuda_algorithm *algorithm)
{
    return tdmi_cuda_workspace_room(workspace_of(algorithm));
}

/* The convolution alone, without bias and activation. */
static struct tdmi_cudnn_conv conv_of(const struct tdmi_op_desc *desc,
                                      enum tdmi_cudnn_direction direction)
{
    const struct tdmi_op_attrs *attrs = &desc->attrs;
    return (struct tdmi_cudnn_conv){
        .direction = direction,
        .type = desc->storage,
        .allows_tf32 = desc->allows_tf32,
        .may_vary = desc->may_vary,
        .in = desc->in[0],
        .out = desc->out,
        .n = desc->max_images,
        .kernel = attrs->kernel,
        .stride = attrs->stride,
        .dilation = attrs->dilation,
        .groups = attrs->groups,
        .top = attrs->pad_top,
        .left = attrs->pad_left,
        .bottom = attrs->pad_bottom,
        .right = attrs->pad_right,
        .most_workspace = desc->most_workspace,
    };
}

static bool is_product(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_attrs *attrs = &desc->attrs;
    return attrs->kernel == 1 && attrs->stride == 1 && attrs->groups == 1 && attrs->pad_top == 0 &&
           attrs->pad_left == 0 && attrs->pad_bottom == 0 && attrs->pad_right == 0;
}

/* Rows are pixels, or the images of a dense layer. Weights lie transposed (kernels/conv/conv.h), as
 * (out, in); their gradient lies as parameters do, (in, out) in f32, at any address. */
static struct tdmi_cublaslt_product product_of(const struct tdmi_op_desc *desc,
                                               enum tdmi_cudnn_direction direction)
{
    const bool is_dense = desc->kind == TDMI_OP_DENSE;
    const int64_t rows = desc->max_images * (is_dense ? 1 : tdmi_shape_pixels(desc->out));
    const int64_t in = is_dense ? tdmi_shape_values(desc->in[0]) : desc->in[0].c;
    struct tdmi_cublaslt_product it = {
        .type = desc->storage,
        .result = desc->storage,
        .rows = rows,
        .columns = desc->out.c,
        .depth = in,
        .is_b_transposed = direction == TDMI_CUDNN_FORWARD,
        .allows_tf32 = desc->allows_tf32,
        .may_vary = desc->may_vary,
        .alignment = 16,
        .most_workspace = desc->most_workspace,
    };
    if (direction == TDMI_CUDNN_OF_INPUT) {
        it.columns = in;
        it.depth = desc->out.c;
    }
    if (direction == TDMI_CUDNN_OF_WEIGHTS) {
        it.rows = in;
        it.depth = rows;
        it.is_a_transposed = true;
        it.result = TDMI_DTYPE_F32;
        it.alignment = (int)sizeof(float);
    }
    return it;
}

static struct tdmi_cuda_algorithm choose(const struct tdmi_op_desc *desc,
                                         enum tdmi_cudnn_direction direction)
{
    const struct tdmi_cudnn_conv conv = conv_of(desc, direction);
    const struct tdmi_cublaslt_product product = product_of(desc, direction);
    if (desc->kind == TDMI_OP_DENSE)
        return (struct tdmi_cuda_algorithm){.product =
                                                tdmi_cuda_product_plan(desc->device, &product)};
    return tdmi_cuda_conv_algorithm(desc->device, &conv, is_product(desc) ? &product : NULL);
}

/* In f32 a library computes everything, if it can. In bf16 and f16 it computes the convolution
 * alone, and another pass does the rest: cuDNN would compile a kernel, which takes almost a second
 * for each shape (27 s for MobileNetV2, which millions of images would repay), and cuBLASLt rounds
 * the bias. */
static void choose_forward_conv(const struct tdmi_op_desc *desc, struct tdmi_cuda_plans *plans)
{
    struct tdmi_cuda_algorithm *forward = &plans->of[TDMI_CUDNN_FORWARD];
    const enum tdmi_act act = desc->fusion.act;
    struct tdmi_cudnn_conv whole = conv_of(desc, TDMI_CUDNN_FORWARD);
    struct tdmi_cublaslt_product product = product_of(desc, TDMI_CUDNN_FORWARD);
    whole.has_bias = product.has_bias = desc->attrs.has_bias || desc->fusion.folds_norm;
    whole.act = product.act = act;
    whole.adds = desc->fusion.adds_residual;
    const bool is_whole_product =
        is_product(desc) && !whole.adds && (act == TDMI_ACT_NONE || act == TDMI_ACT_RELU);
    if (desc->storage == TDMI_DTYPE_F32 && (whole.has_bias || whole.adds || act != TDMI_ACT_NONE))
        *forward =
            tdmi_cuda_conv_algorithm(desc->device, &whole, is_whole_product ? &product : NULL);
    plans->is_whole = tdmi_cuda_algorithm_exists(forward);
    if (!plans->is_whole)
        *forward = choose(desc, TDMI_CUDNN_FORWARD);
}

/* The product with its bias, and with the activation where cuBLASLt takes that. */
static void choose_forward_dense(const struct tdmi_op_desc *desc, struct tdmi_cuda_plans *plans)
{
    struct tdmi_cuda_algorithm *forward = &plans->of[TDMI_CUDNN_FORWARD];
    struct tdmi_cublaslt_product product = product_of(desc, TDMI_CUDNN_FORWARD);
    product.has_bias = desc->attrs.has_bias;
    product.act = desc->fusion.act;
    forward->product = tdmi_cuda_product_plan(desc->device, &product);
    plans->is_whole = forward->product != NULL;
    product.act = TDMI_ACT_NONE;
    if (!plans->is_whole && desc->fusion.act != TDMI_ACT_NONE)
        forward->product = tdmi_cuda_product_plan(desc->device, &product);
}

static bool is_computed(const struct tdmi_op_desc *desc, enum tdmi_cudnn_direction direction)
{
    return direction == TDMI_CUDNN_FORWARD ||
           (desc->is_training && (direction == TDMI_CUDNN_OF_WEIGHTS || desc->wants_dx));
}

struct tdmi_cuda_plans tdmi_cuda_plans_choose(const struct tdmi_op_desc *desc)
{
    static const enum tdmi_cudnn_direction gradients[] = {TDMI_CUDNN_OF_WEIGHTS,
                                                          TDMI_CUDNN_OF_INPUT};
    struct tdmi_cuda_plans plans = {.is_whole = false};
    if (!desc->device)
        return plans;
    if (desc->kind == TDMI_OP_DENSE)
        choose_forward_dense(desc, &plans);
    else
        choose_forward_conv(desc, &plans);
    for (int i = 0; i < 2; i++)
        if (is_computed(desc, gradients[i]))
            plans.of[gradients[i]] = choose(desc, gradients[i]);
    return plans;
}

tdm_status tdmi_cuda_plans_prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    struct tdmi_cuda_plans *plans = NULL;
    *prepared = NULL;
    if (!desc->device)
        return TDM_OK;
    TDMI_TRY(TDMI_NEW(plans, 1, err));
    *plans = tdmi_cuda_plans_choose(desc);
    *prepared = plans;
    return TDM_OK;
}

struct tdmi_cuda_plans tdmi_cuda_plans_of(const struct tdmi_op_desc *desc)
{
    return desc->prepared ? *(const struct tdmi_cuda_plans *)desc->prepared
                          : (struct tdmi_cuda_plans){.is_whole = false};
}

void tdmi_cuda_algorithms_describe(const struct tdmi_op_desc *desc,
                                   const struct tdmi_cuda_algorithm of[TDMI_CUDNN_DIRECTIONS],
                                   const char *const ours[TDMI_CUDNN_DIRECTIONS],
                                   struct tdmi_kernel_algorithms *to)
{
    struct tdmi_kernel_algorithm *const all[] = {&to->forward, &to->of_input, &to->of_weights};
    for (int d = 0; d < TDMI_CUDNN_DIRECTIONS; d++) {
        if (!is_computed(desc, (enum tdmi_cudnn_direction)d))
            continue;
        all[d]->workspace_bytes = workspace_of(&of[d]);
        if (tdmi_cuda_algorithm_exists(&of[d]))
            tdmi_cuda_algorithm_name(desc->device, &of[d], all[d]->by, sizeof all[d]->by);
        else
            snprintf(all[d]->by, sizeof all[d]->by, "%s", ours[d]);
    }
}

static void clear_tail(tdmi_stream *stream, const struct tdmi_op_desc *desc, int n,
                       struct tdmi_shape shape, const void *array)
{
    const size_t image = (size_t)tdmi_shape_values(shape) * tdmi_dtype_bytes(desc->storage);
    if (n < desc->max_images)
        tdmi_cuda_clear(stream, (char *)(uintptr_t)array + (size_t)n * image,
                        (size_t)(desc->max_images - n) * image);
}

void tdmi_cuda_clear_tails(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call)
{
    clear_tail(stream, desc, call->n, desc->in[0], call->x[0]);
    clear_tail(stream, desc, call->n, desc->out, call->dy);
}
