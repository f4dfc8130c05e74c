/*
 * The kernel of thin convolutions (conv_thin.h): few channels, pictures that fit the second cache,
 * shards that fill the lanes of a vector, training. Of its neighbours' work it carries that of a
 * max pool, with ReLU between or not, whose winners alone then go backward (conv_winners.h).
 */
#include "backend/cpu/conv/conv_thin.h"
#include "backend/cpu/conv/conv_winners.h"
#include "backend/cpu/cpu.h"
#include "base/memory.h"

#include <stdio.h>

enum {
    MOST_IN = 15,
    MOST_OUT = 16,       /* more fill vectors of channels themselves */
    MOST_BYTES = 1 << 20 /* of frames and sums */
};

struct way {
    struct tdmi_conv_thin conv;
    size_t backward_at; /* bytes into packed */
};

static struct tdmi_conv_thin conv_of(const struct tdmi_op_desc *desc)
{
    return (struct tdmi_conv_thin){.h = desc->in[0].h,
                                   .w = desc->in[0].w,
                                   .in = desc->in[0].c,
                                   .out_h = desc->out.h,
                                   .out_w = desc->out.w,
                                   .out = desc->out.c,
                                   .kernel = desc->attrs.kernel,
                                   .top = desc->attrs.pad_top,
                                   .left = desc->attrs.pad_left,
                                   .wants_dx = desc->wants_dx,
                                   .pool = desc->fusion.pool,
                                   .act = desc->fusion.act,
                                   .isa = tdmi_isa_best()};
}

static bool can_run(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    const bool is_thin = desc->in[0].c <= MOST_IN && desc->out.c <= MOST_OUT;
    if (!desc->is_training || !is_thin || a->groups != 1 || a->stride != 1 || a->dilation != 1 ||
        a->kernel == 1)
        return false;
    const struct tdmi_conv_thin conv = conv_of(desc);
    return conv.isa >= TDMI_ISA_AVX2 && desc->max_images >= tdmi_conv_thin_lanes(conv.isa) &&
           tdmi_conv_thin_workspace_bytes(&conv) <= MOST_BYTES;
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const struct tdmi_op_fusion *fusion = &desc->fusion;
    const struct tdmi_conv_thin conv = conv_of(desc);
    bool has_more = fusion->folds_norm || fusion->adds_residual || fusion->gives_sums ||
                    fusion->reads_gradient_form || fusion->in[0].has_norm ||
                    fusion->in[0].act != TDMI_ACT_NONE;
    return !has_more && tdmi_conv_winners_can(&conv) &&
           (fusion->act == TDMI_ACT_NONE || fusion->act == TDMI_ACT_RELU);
}

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    struct way *way = tdmi_alloc(1, sizeof *way);
    if (!way)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing a convolution: out of memory");
    way->conv = conv_of(desc);
    way->backward_at = (tdmi_conv_thin_packed_bytes(&way->conv, TDMI_CONV_FORWARD) + 63) / 64 * 64;
    *prepared = way;
    return TDM_OK;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct way *way = desc->prepared;
    needs->workspace_bytes = tdmi_conv_thin_workspace_bytes(&way->conv);
    needs->packed_bytes = way->backward_at;
    if (way->conv.pool) {
        size_t bytes = tdmi_conv_winners_workspace_bytes(&way->conv);
        needs->saved_bytes =
            (size_t)desc->max_images * (size_t)tdmi_shape_values(tdmi_op_result(desc));
        if (bytes > needs->workspace_bytes)
            needs->workspace_bytes = bytes;
    }
    if (desc->wants_dx)
        needs->packed_bytes += way->conv.pool
                                   ? tdmi_conv_winners_packed_bytes(&way->conv)
                                   : tdmi_conv_thin_packed_bytes(&way->conv, TDMI_CONV_BACKWARD);
}

static float *backward_part(const struct way *way, const void *packed)
{
    return (float *)(void *)((const char *)packed + way->backward_at);
}

static void pack(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                 const struct tdmi_pack_call *call)
{
    const struct way *way = desc->prepared;
    (void)stream;
    tdmi_conv_thin_pack(&way->conv, TDMI_CONV_FORWARD, call->params[0], call->packed);
    if (desc->wants_dx && way->conv.pool)
        tdmi_conv_winners_pack(&way->conv, call->params[0], backward_part(way, call->packed));
    else if (desc->wants_dx)
        tdmi_conv_thin_pack(&way->conv, TDMI_CONV_BACKWARD, call->params[0],
                            backward_part(way, call->packed));
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct way *way = desc->prepared;
    (void)stream;
    tdmi_conv_thin_forward(&way->conv,
                           &(struct tdmi_conv_forward){
                               .n = call->n,
                               .x = call->x[0],
                               .packed = call->packed,
                               .bias = desc->attrs.has_bias ? call->params[1] : NULL,
                               .y = call->y,
                               .workspace = call->workspace,
                           },
                           call->saved);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct way *way = desc->prepared;
    (void)stream;
    const struct tdmi_conv_backward own = {
        .n = call->n,
        .x = call->x[0],
        .g = call->dy,
        .packed = desc->wants_dx ? backward_part(way, call->packed) : NULL,
        .dweights = call->dparams[0],
        .dbias = desc->attrs.has_bias ? call->dparams[1] : NULL,
        .dx = call->dx[0],
        .workspace = call->workspace,
    };
    if (way->conv.pool)
        tdmi_conv_winners_backward(&way->conv, &own, call->saved);
    else
        tdmi_conv_thin_backward(&way->conv, &own);
}

static void describe(const struct tdmi_op_desc *desc, struct tdmi_kernel_ways *ways)
{
    (void)desc;
    snprintf(ways->forward.by, sizeof ways->forward.by, "lanes of images");
}

const struct tdmi_kernel tdmi_conv_by_thin = {
    .can_run = can_run,
    .can_fuse = can_fuse,
    .prepare = prepare,
    .release = tdmi_free,
    .needs = needs,
    .describe = describe,
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
