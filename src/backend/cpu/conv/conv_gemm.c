/*
 * Our own convolutions of all channels: the algorithms, best first, and the kernel of the op, which
 * can fuse everything. A desc becomes a tdmi_conv_gemm in prepare, and calls are translated.
 */
#include "backend/cpu/conv/conv_chain.h"
#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm/strassen.h"
#include "backend/cpu/op_forms.h"
#include "base/scope.h"

#include <math.h>

enum { IMAGE_CHANNELS = 3 };

/* ---- algorithms ---- */

bool tdmi_conv_gemm_is_of_picture(const struct tdmi_conv_gemm *desc)
{
    return desc->kernel_h == 3 && desc->kernel_w == 3 && desc->in_c <= IMAGE_CHANNELS;
}

const struct tdmi_conv_algorithm *tdmi_conv_gemm_algorithm(const struct tdmi_conv_gemm *desc)
{
    /* Best first. The choice depends only on shape and instruction set, never on timing, because
     * it decides bits. */
    static const struct tdmi_conv_algorithm *const algorithms[] = {&tdmi_conv_by_pointwise,
                                                                   &tdmi_conv_by_winograd};
    for (int i = 0; i < 2; i++)
        if (algorithms[i]->accepts(desc))
            return algorithms[i];
    return &tdmi_conv_by_window;
}

/* ---- the kernel of the op ---- */

struct conv_gemm_state {
    struct tdmi_conv_gemm conv;
    const struct tdmi_conv_algorithm *algorithm;
    /* Offsets of packed weights in bytes. */
    size_t bias_at, forward_at, backward_at, packed_bytes;
    bool has_bias, has_backward;
};

static bool can_run(const struct tdmi_op_desc *desc)
{
    return desc->attrs.groups == 1;
}

struct tdmi_conv_gemm tdmi_conv_gemm_of(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    const enum tdmi_isa isa = tdmi_isa_best();
    const int64_t pixels = tdmi_shape_pixels(desc->in[0]);
    const bool is_pointwise = a->kernel == 1 && a->stride == 1;
    return (struct tdmi_conv_gemm){
        .max_images = desc->max_images,
        .in_h = desc->in[0].h,
        .in_w = desc->in[0].w,
        .in_c = desc->in[0].c,
        .out_h = desc->out.h,
        .out_w = desc->out.w,
        .out_c = desc->out.c,
        .kernel_h = a->kernel,
        .kernel_w = a->kernel,
        .stride = a->stride,
        .dilation = a->dilation,
        .pad_top = a->pad_top,
        .pad_left = a->pad_left,
        .team = desc->team,
        .isa = isa,
        .only_infers = !desc->is_training,
        .is_split = !desc->is_training && is_pointwise && desc->fusion.act != TDMI_ACT_HSWISH &&
                    tdmi_strassen_is_for(isa, pixels, desc->in[0].c, desc->out.c),
        .trains_split = desc->is_training && desc->splits_products && is_pointwise &&
                        tdmi_strassen_trains(isa, pixels, desc->in[0].c, desc->out.c),
    };
}

/* In training it needs one pass where oneDNN needs passes around its own. In inference oneDNN is 5
 * to 10 % faster at windows that Winograd does not compute, but not at 1 × 1 (bench/run
 * kernels-pointwise kernels-window). The first convolution of a network is ours too, because the
 * chain that begins with it saves more. */
static bool is_best(const struct tdmi_op_desc *desc)
{
    const struct tdmi_conv_gemm conv = tdmi_conv_gemm_of(desc);
    return can_run(desc) && conv.isa >= TDMI_ISA_AVX2 &&
           (desc->is_training || desc->attrs.kernel == 1 ||
            tdmi_conv_gemm_algorithm(&conv) == &tdmi_conv_by_winograd ||
            tdmi_conv_gemm_is_of_picture(&conv));
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const enum tdmi_act read = desc->fusion.in[0].act;
    bool reads_clamp = read == TDMI_ACT_RELU || read == TDMI_ACT_RELU6;
    return (read == TDMI_ACT_NONE || (reads_clamp && desc->is_training)) &&
           desc->fusion.act != TDMI_ACT_SIGMOID;
}

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    struct conv_gemm_state *state = NULL;
    TDMI_TRY(TDMI_NEW(state, 1, err));
    state->conv = tdmi_conv_gemm_of(desc);
    state->algorithm = tdmi_conv_gemm_algorithm(&state->conv);
    state->has_bias = desc->attrs.has_bias || desc->fusion.folds_norm;
    state->has_backward = desc->is_training && desc->wants_dx;
    /* The bias, then the factors of a folded batch norm. */
    size_t *end = &state->packed_bytes;
    state->bias_at = tdmi_cpu_reserve(end, 2 * sizeof(float) * (size_t)desc->out.c);
    state->forward_at =
        tdmi_cpu_reserve(end, state->algorithm->packed_bytes(&state->conv, TDMI_CONV_FORWARD));
    if (state->has_backward)
        state->backward_at =
            tdmi_cpu_reserve(end, state->algorithm->packed_bytes(&state->conv, TDMI_CONV_BACKWARD));
    *prepared = state;
    return TDM_OK;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct conv_gemm_state *state = desc->prepared;
    needs->workspace_bytes = state->algorithm->workspace_bytes(&state->conv);
    needs->packed_bytes = state->packed_bytes;
}

/* Bias and factors of y = factor · conv(x) + bias: a convolution with its folded batch norm. */
static void fold(const struct tdmi_op_desc *desc, const struct tdmi_pack_call *call, float *bias,
                 float *factors)
{
    for (int c = 0; c < desc->out.c; c++) {
        double own = desc->attrs.has_bias ? (double)call->params[1][c] : 0.0;
        double factor = 1.0, shift = 0.0;
        if (desc->fusion.folds_norm) {
            factor = (double)call->norm_params[0][c] /
                     sqrt((double)call->norm_states[1][c] + call->norm_epsilon);
            shift = (double)call->norm_params[1][c] - (double)call->norm_states[0][c] * factor;
        }
        bias[c] = (float)(own * factor + shift);
        factors[c] = (float)factor;
    }
}

TDMI_KERNEL_PACK(pack)
{
    const struct conv_gemm_state *state = desc->prepared;
    char *packed = call->packed;
    float *bias = (float *)(void *)(packed + state->bias_at), *factors = bias + desc->out.c;
    fold(desc, call, bias, factors);
    state->algorithm->pack(&state->conv, TDMI_CONV_FORWARD, call->params[0],
                           desc->fusion.folds_norm ? factors : NULL,
                           (float *)(void *)(packed + state->forward_at));
    if (state->has_backward)
        state->algorithm->pack(&state->conv, TDMI_CONV_BACKWARD, call->params[0], NULL,
                               (float *)(void *)(packed + state->backward_at));
}

static const float *part_of(const void *packed, size_t at)
{
    return (const float *)(const void *)((const char *)packed + at);
}

struct tdmi_conv_infer tdmi_conv_gemm_call_of(const struct tdmi_op_desc *desc,
                                              const struct tdmi_op_call *call)
{
    const struct conv_gemm_state *state = desc->prepared;
    return (struct tdmi_conv_infer){
        .n = call->n,
        .member = call->member,
        .x = call->x[0],
        .packed = part_of(call->packed, state->forward_at),
        .bias = state->has_bias ? part_of(call->packed, state->bias_at) : NULL,
        .residual = desc->fusion.adds_residual ? call->residual : NULL,
        .act = desc->fusion.act,
        .y = call->y,
        .workspace = call->workspace,
    };
}

TDMI_KERNEL_RUN(forward)
{
    const struct conv_gemm_state *state = desc->prepared;
    const struct tdmi_conv_infer own = tdmi_conv_gemm_call_of(desc, call);
    if (!desc->is_training) {
        state->algorithm->infer(&state->conv, &own);
        return;
    }
    state->algorithm->forward(&state->conv, &(struct tdmi_conv_forward){
                                                .n = call->n,
                                                .member = call->member,
                                                .x = call->x[0],
                                                .read = tdmi_cpu_form_of(desc, call, 0),
                                                .packed = own.packed,
                                                .bias = own.bias,
                                                .y = call->y,
                                                .sums = tdmi_cpu_forward_sums_of(desc, call),
                                                .workspace = call->workspace,
                                            });
}

TDMI_KERNEL_RUN(backward)
{
    const struct conv_gemm_state *state = desc->prepared;
    struct tdmi_conv_backward training = {
        .n = call->n,
        .member = call->member,
        .x = call->x[0],
        .read = tdmi_cpu_form_of(desc, call, 0),
        .g = call->dy,
        .y = desc->fusion.reads_gradient_form ? call->y : NULL,
        .gradient = tdmi_cpu_gradient_form_of(desc, call),
        .dweights = call->dparams[0],
        .dbias = desc->attrs.has_bias ? call->dparams[1] : NULL,
        .workspace = call->workspace,
    };
    if (state->has_backward && call->dx[0]) {
        training.dx = call->dx[0];
        training.packed = part_of(call->packed, state->backward_at);
        training.add = call->dx_add[0];
        training.sums = tdmi_cpu_sums_of(desc, call, 0);
    }
    state->algorithm->backward(&state->conv, &training);
}

#define GEMM_KERNEL(runs)                                                                       \
    {                                                                                           \
        .can_run = runs, .can_fuse = can_fuse, .adds_dx = true, .prepare = prepare,             \
        .shares_forward = TDMI_SHARING_OWN, .shares_backward = TDMI_SHARING_OWN,                \
        .release = tdmi_free, .needs = needs, .algorithm = "products of its own", .pack = pack, \
        .forward = forward, .backward = backward                                                \
    }

const struct tdmi_kernel tdmi_conv_by_gemm = GEMM_KERNEL(can_run);
const struct tdmi_kernel tdmi_conv_by_gemm_if_best = GEMM_KERNEL(is_best);
