/*
 * The kernel of our own convolutions: a desc becomes a tdmi_conv_gemm when it is prepared, and
 * calls are translated. All that can be fused with a convolution of one group is.
 */
#include "backend/cpu/conv/conv_chain.h"
#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/op_forms.h"
#include "backend/cpu/gemm/strassen.h"
#include "backend/cpu/conv/winograd.h"
#include "base/memory.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

struct way {
    struct tdmi_conv_gemm conv;
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
        .isa = isa,
        .is_split =
            !desc->is_training && a->kernel == 1 && a->stride == 1 &&
            desc->fusion.act != TDMI_ACT_HSWISH &&
            tdmi_strassen_is_for(isa, tdmi_shape_pixels(desc->in[0]), desc->in[0].c, desc->out.c),
    };
}

/* bench/run kernels-pointwise kernels-window: in training it does in one pass what oneDNN needs
 * passes around it for; without, oneDNN's windows are 5 to 10 % faster where they are not computed
 * by tiles, its 1 × 1 are not. A window of a picture is ours, too: a chain that begins with it
 * saves more. */
static bool is_best(const struct tdmi_op_desc *desc)
{
    const struct tdmi_conv_gemm conv = tdmi_conv_gemm_of(desc);
    return can_run(desc) && conv.isa >= TDMI_ISA_AVX2 &&
           (desc->is_training || desc->attrs.kernel == 1 || tdmi_winograd_is_for(&conv) ||
            tdmi_conv_gemm_is_of_picture(&conv));
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const enum tdmi_act read = desc->fusion.in[0].act;
    bool reads_clamp = read == TDMI_ACT_RELU || read == TDMI_ACT_RELU6;
    return (read == TDMI_ACT_NONE || (reads_clamp && desc->is_training)) &&
           desc->fusion.act != TDMI_ACT_SIGMOID;
}

static size_t reserve(size_t *total, size_t bytes)
{
    size_t at = *total;
    *total += (bytes + 63) / 64 * 64;
    return at;
}

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    struct way *way = tdmi_alloc(1, sizeof *way);
    if (!way)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing a convolution: out of memory");
    way->conv = tdmi_conv_gemm_of(desc);
    way->has_bias = desc->attrs.has_bias || desc->fusion.folds_norm;
    way->has_backward = desc->is_training && desc->wants_dx;
    /* Bias, and the factors of a folded norm while they are needed. */
    way->bias_at = reserve(&way->packed_bytes, 2 * sizeof(float) * (size_t)desc->out.c);
    way->forward_at =
        reserve(&way->packed_bytes, tdmi_conv_gemm_packed_bytes(&way->conv, TDMI_CONV_FORWARD));
    if (way->has_backward)
        way->backward_at = reserve(&way->packed_bytes,
                                   tdmi_conv_gemm_packed_bytes(&way->conv, TDMI_CONV_BACKWARD));
    *prepared = way;
    return TDM_OK;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct way *way = desc->prepared;
    needs->workspace_bytes = tdmi_conv_gemm_workspace_bytes(&way->conv);
    needs->packed_bytes = way->packed_bytes;
}

/* y = factor · conv(x) + bias: what a frozen batch norm, or none, makes of a convolution. */
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

static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    const struct way *way = desc->prepared;
    char *packed = call->packed;
    float *bias = (float *)(void *)(packed + way->bias_at), *factors = bias + desc->out.c;
    (void)stream;
    fold(desc, call, bias, factors);
    tdmi_conv_gemm_pack(&way->conv, TDMI_CONV_FORWARD, call->params[0],
                        desc->fusion.folds_norm ? factors : NULL,
                        (float *)(void *)(packed + way->forward_at));
    if (way->has_backward)
        tdmi_conv_gemm_pack(&way->conv, TDMI_CONV_BACKWARD, call->params[0], NULL,
                            (float *)(void *)(packed + way->backward_at));
}

static const float *part_of(const void *packed, size_t at)
{
    return (const float *)(const void *)((const char *)packed + at);
}

struct tdmi_conv_infer tdmi_conv_gemm_call_of(const struct tdmi_op_desc *desc,
                                              const struct tdmi_op_call *call)
{
    const struct way *way = desc->prepared;
    return (struct tdmi_conv_infer){
        .n = call->n,
        .x = call->x[0],
        .packed = part_of(call->packed, way->forward_at),
        .bias = way->has_bias ? part_of(call->packed, way->bias_at) : NULL,
        .residual = desc->fusion.adds_residual ? call->residual : NULL,
        .act = desc->fusion.act,
        .y = call->y,
        .workspace = call->workspace,
    };
}

static void infer(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call)
{
    const struct way *way = desc->prepared;
    const struct tdmi_conv_infer it = tdmi_conv_gemm_call_of(desc, call);
    tdmi_conv_gemm_infer(&way->conv, &it);
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct way *way = desc->prepared;
    (void)stream;
    if (!desc->is_training) {
        infer(desc, call);
        return;
    }
    struct tdmi_conv_forward training = {
        .n = call->n,
        .x = call->x[0],
        .read = tdmi_cpu_form_of(desc, call, 0),
        .packed = part_of(call->packed, way->forward_at),
        .bias = way->has_bias ? part_of(call->packed, way->bias_at) : NULL,
        .y = call->y,
        .workspace = call->workspace,
    };
    if (desc->fusion.gives_sums)
        training.sums = (struct tdmi_forward_sums){call->norm.centre, call->norm.sums,
                                                   call->norm.sums + desc->out.c};
    tdmi_conv_gemm_forward(&way->conv, &training);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct way *way = desc->prepared;
    struct tdmi_conv_backward training = {
        .n = call->n,
        .x = call->x[0],
        .read = tdmi_cpu_form_of(desc, call, 0),
        .g = call->dy,
        .dweights = call->dparams[0],
        .dbias = desc->attrs.has_bias ? call->dparams[1] : NULL,
        .dx = way->has_backward ? call->dx[0] : NULL,
        .workspace = call->workspace,
    };
    (void)stream;
    if (desc->fusion.reads_gradient_form) {
        training.y = call->y;
        training.gradient =
            (struct tdmi_gradient_form){call->norm.of_g, call->norm.of_x, call->norm.one};
    }
    if (training.dx) {
        training.packed = part_of(call->packed, way->backward_at);
        training.add = call->dx_add[0];
        if (call->dx_sums[0])
            training.sums = (struct tdmi_backward_sums){call->in_norm[0].mean, call->dx_sums[0],
                                                        call->dx_sums[0] + desc->in[0].c};
    }
    tdmi_conv_gemm_backward(&way->conv, &training);
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_ways *ways)
{
    (void)desc;
    snprintf(ways->forward.by, sizeof ways->forward.by, "products of its own");
}

const struct tdmi_kernel tdmi_conv_by_gemm = {
    .can_run = can_run,
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

const struct tdmi_kernel tdmi_conv_by_gemm_if_best = {
    .can_run = is_best,
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
