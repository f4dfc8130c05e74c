/* Choosing a library's algorithms for a convolution. */
#include "backend/cuda/vendor/conv_plans.h"

bool tdmi_cuda_algorithm_exists(const struct tdmi_cuda_algorithm *algorithm)
{
    return algorithm->conv || algorithm->product;
}

size_t tdmi_cuda_algorithm_workspace_room(const struct tdmi_cuda_algorithm *algorithm)
{
    return tdmi_cuda_workspace_room(algorithm->conv      ? algorithm->conv->workspace_bytes
                                    : algorithm->product ? algorithm->product->workspace_bytes
                                                         : 0);
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

/* Pixels are rows. Weights lie transposed (weights.h), as (out, in); their gradient lies as they do
 * themselves, (in, out) in f32, wherever that is. */
static struct tdmi_cublaslt_product product_of(const struct tdmi_op_desc *desc,
                                               enum tdmi_cudnn_direction direction)
{
    const int64_t pixels = desc->max_images * tdmi_shape_pixels(desc->out);
    struct tdmi_cublaslt_product it = {
        .type = desc->storage,
        .result = desc->storage,
        .rows = pixels,
        .columns = desc->out.c,
        .depth = desc->in[0].c,
        .is_b_transposed = direction == TDMI_CUDNN_FORWARD,
        .allows_tf32 = desc->allows_tf32,
        .may_vary = desc->may_vary,
        .alignment = 16,
        .most_workspace = desc->most_workspace,
    };
    if (direction == TDMI_CUDNN_OF_INPUT) {
        it.columns = desc->in[0].c;
        it.depth = desc->out.c;
    }
    if (direction == TDMI_CUDNN_OF_WEIGHTS) {
        it.rows = desc->in[0].c;
        it.depth = pixels;
        it.is_a_transposed = true;
        it.result = TDMI_DTYPE_F32;
        it.alignment = (int)sizeof(float);
    }
    return it;
}

static struct tdmi_cuda_algorithm ask(const struct tdmi_op_desc *desc,
                                      enum tdmi_cudnn_direction direction)
{
    const struct tdmi_cudnn_conv conv = conv_of(desc, direction);
    const struct tdmi_cublaslt_product product = product_of(desc, direction);
    return tdmi_cuda_conv_algorithm(desc->device, &conv, is_product(desc) ? &product : NULL);
}

/* What cuBLASLt has behind a product: a bias and a relu. The bias is of the result's type, so
 * beside bf16 and f16 it would be rounded first; cuDNN's is f32. */
static bool is_whole_product(const struct tdmi_op_desc *desc)
{
    return is_product(desc) && desc->storage == TDMI_DTYPE_F32 && !desc->fusion.adds_residual &&
           (desc->fusion.act == TDMI_ACT_NONE || desc->fusion.act == TDMI_ACT_RELU);
}

/* All of it, where a library takes that: whatever is left is another pass. Else the product alone.
 */
static void ask_forward(const struct tdmi_op_desc *desc, struct tdmi_cuda_conv_plans *plans)
{
    struct tdmi_cudnn_conv whole = conv_of(desc, TDMI_CUDNN_FORWARD);
    whole.has_bias = desc->attrs.has_bias || desc->fusion.folds_norm;
    whole.adds = desc->fusion.adds_residual;
    whole.act = desc->fusion.act;
    struct tdmi_cublaslt_product product = product_of(desc, TDMI_CUDNN_FORWARD);
    product.has_bias = whole.has_bias;
    product.act = whole.act;
    if (whole.has_bias || whole.adds || whole.act != TDMI_ACT_NONE)
        plans->forward = tdmi_cuda_conv_algorithm(desc->device, &whole,
                                                  is_whole_product(desc) ? &product : NULL);
    plans->is_whole = tdmi_cuda_algorithm_exists(&plans->forward);
    if (!plans->is_whole)
        plans->forward = ask(desc, TDMI_CUDNN_FORWARD);
}

struct tdmi_cuda_conv_plans tdmi_cuda_conv_plans_of(const struct tdmi_op_desc *desc)
{
    struct tdmi_cuda_conv_plans plans = {.is_whole = false};
    if (!desc->device)
        return plans;
    ask_forward(desc, &plans);
    if (desc->is_training)
        plans.of_weights = ask(desc, TDMI_CUDNN_OF_WEIGHTS);
    if (desc->is_training && desc->wants_dx)
        plans.of_input = ask(desc, TDMI_CUDNN_OF_INPUT);
    return plans;
}
