/*
 * Depthwise convolutions of backend cpu by kernels of its own (depthwise.h): one channel out for
 * each channel in. Without training a folded batch norm lies in packed weights and bias.
 */
#include "backend/cpu/conv/conv_chain.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/depthwise/depthwise.h"
#include "backend/cpu/op_forms.h"
#include "base/memory.h"

#include <stdio.h>
#include <math.h>

struct way {
    struct tdmi_depthwise shape;
    const struct tdmi_depthwise_kernels *kernels;
};

static bool is_carried(enum tdmi_act act)
{
    return act == TDMI_ACT_NONE || act == TDMI_ACT_RELU || act == TDMI_ACT_RELU6;
}

static bool can_run(const struct tdmi_op_desc *desc)
{
    return desc->attrs.groups == desc->in[0].c && desc->out.c == desc->in[0].c && desc->out.c > 1;
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    return !desc->fusion.adds_residual && is_carried(desc->fusion.act) &&
           is_carried(desc->fusion.in[0].act);
}

struct tdmi_depthwise tdmi_depthwise_of(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    return (struct tdmi_depthwise){
        .h = desc->in[0].h,
        .w = desc->in[0].w,
        .channels = desc->out.c,
        .out_h = desc->out.h,
        .out_w = desc->out.w,
        .kernel = a->kernel,
        .stride = a->stride,
        .dilation = a->dilation,
        .top = a->pad_top,
        .left = a->pad_left,
    };
}

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    struct way *way = tdmi_alloc(1, sizeof *way);
    if (!way)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing a depthwise convolution: out of memory");
    way->kernels = tdmi_depthwise_kernels(tdmi_isa_best());
    way->shape = tdmi_depthwise_of(desc);
    *prepared = way;
    return TDM_OK;
}

static size_t packed_weights(const struct tdmi_op_desc *desc)
{
    return (size_t)desc->attrs.kernel * (size_t)desc->attrs.kernel * (size_t)desc->out.c;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct way *way = desc->prepared;
    needs->workspace_bytes = tdmi_depthwise_workspace_bytes(&way->shape);
    if (desc->fusion.folds_norm)
        needs->packed_bytes = sizeof(float) * (packed_weights(desc) + (size_t)desc->out.c);
}

/* Weights, then the bias. */
static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    const int channels = desc->out.c;
    const size_t n_weights = packed_weights(desc);
    float *weights = call->packed, *bias = weights + n_weights;
    (void)stream;
    if (!desc->fusion.folds_norm)
        return;
    for (int c = 0; c < channels; c++) {
        double rstd = 1.0 / sqrt((double)call->norm_states[1][c] + call->norm_epsilon);
        double factor = (double)call->norm_params[0][c] * rstd;
        double own = desc->attrs.has_bias ? (double)call->params[1][c] : 0.0;
        bias[c] = (float)((double)call->norm_params[1][c] +
                          (own - (double)call->norm_states[0][c]) * factor);
        for (size_t at = (size_t)c; at < n_weights; at += (size_t)channels)
            weights[at] = (float)((double)call->params[0][at] * factor);
    }
}

struct tdmi_depthwise_forward tdmi_depthwise_call_of(const struct tdmi_op_desc *desc,
                                                     const struct tdmi_op_call *call)
{
    struct tdmi_depthwise_forward it = {
        .n = call->n,
        .x = call->x[0],
        .form = tdmi_cpu_form_of(desc, call, 0),
        .weights = call->params[0],
        .bias = desc->attrs.has_bias ? call->params[1] : NULL,
        .act = desc->fusion.act,
        .y = call->y,
        .workspace = call->workspace,
    };
    if (desc->fusion.folds_norm) {
        it.weights = call->packed;
        it.bias = it.weights + packed_weights(desc);
    }
    if (desc->fusion.gives_sums)
        it.sums = (struct tdmi_forward_sums){call->norm.centre, call->norm.sums,
                                             call->norm.sums + desc->out.c};
    return it;
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct way *way = desc->prepared;
    const struct tdmi_depthwise_forward it = tdmi_depthwise_call_of(desc, call);
    (void)stream;
    way->kernels->forward(&way->shape, &it);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct way *way = desc->prepared;
    struct tdmi_depthwise_backward it = {
        .n = call->n,
        .x = call->x[0],
        .form = tdmi_cpu_form_of(desc, call, 0),
        .g = call->dy,
        .weights = call->params[0],
        .dweights = call->dparams[0],
        .dbias = desc->attrs.has_bias ? call->dparams[1] : NULL,
        .dx = call->dx[0],
        .add = call->dx_add[0],
        .workspace = call->workspace,
    };
    (void)stream;
    if (desc->fusion.reads_gradient_form) {
        it.y = call->y;
        it.gradient = (struct tdmi_gradient_form){call->norm.of_g, call->norm.of_x, call->norm.one};
    }
    if (call->dx_sums[0])
        it.sums = (struct tdmi_backward_sums){call->in_norm[0].mean, call->dx_sums[0],
                                              call->dx_sums[0] + desc->in[0].c};
    way->kernels->backward(&way->shape, &it);
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_ways *ways)
{
    (void)desc;
    snprintf(ways->forward.by, sizeof ways->forward.by, "walks over planes");
}

const struct tdmi_kernel tdmi_conv_by_depthwise = {
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
