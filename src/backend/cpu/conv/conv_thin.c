/*
 * Thin convolutions (conv_thin.h): sizes, packed weights, and the kernel of the op. It runs shapes
 * of few channels, images that fit the second cache and groups that fill the lanes of a vector, in
 * training. It can fuse a max pool, with or without ReLU between; only the winners of that pool
 * then have a gradient (conv_winners.h).
 */
#include "backend/cpu/conv/conv_thin.h"
#include "backend/cpu/conv/conv_winners.h"
#include "backend/cpu/cpu.h"
#include "base/scope.h"

enum {
    STRETCH_PIXELS = 48,
    MOST_IN = 15,
    MOST_OUT = 16,       /* more fill vectors of channels themselves */
    MOST_BYTES = 1 << 20 /* of frames and sums */
};

TDMI_TABLE_OF(static const struct tdmi_conv_thin_kernels *kernels_of, tdmi_conv_thin)

int tdmi_conv_thin_lanes(enum tdmi_isa isa)
{
    return kernels_of(isa)->lanes;
}

/* Channels of one block of results. */
static int wide_of(int channels)
{
    static const int wides[] = {6, 4, 3, 2};
    for (size_t i = 0; i < sizeof wides / sizeof *wides; i++)
        if (channels % wides[i] == 0)
            return wides[i];
    return 1;
}

struct tdmi_thin_walk tdmi_conv_thin_walk(const struct tdmi_conv_thin *desc,
                                          enum tdmi_conv_direction direction)
{
    const int last = desc->kernel - 1;
    struct tdmi_thin_walk walk = {.h = desc->h,
                                  .w = desc->w,
                                  .in = desc->in,
                                  .out_h = desc->out_h,
                                  .out_w = desc->out_w,
                                  .out = desc->out,
                                  .kernel = desc->kernel,
                                  .top = desc->top,
                                  .left = desc->left};
    /* The gradient of the input is a correlation over dy with the window turned around. */
    if (direction == TDMI_CONV_BACKWARD)
        walk = (struct tdmi_thin_walk){.h = desc->out_h,
                                       .w = desc->out_w,
                                       .in = desc->out,
                                       .out_h = desc->h,
                                       .out_w = desc->w,
                                       .out = desc->in,
                                       .kernel = desc->kernel,
                                       .top = last - desc->top,
                                       .left = last - desc->left};
    walk.frame_w = walk.out_w + last;
    walk.wide = wide_of(walk.out);
    return walk;
}

int tdmi_conv_thin_rows(const struct tdmi_conv_thin *desc)
{
    int rows = (STRETCH_PIXELS + desc->out_w - 1) / desc->out_w;
    return rows < desc->out_h ? rows : desc->out_h;
}

struct tdmi_thin_scratch tdmi_conv_thin_scratch(const struct tdmi_conv_thin *desc, void *workspace)
{
    const struct tdmi_thin_walk forward = tdmi_conv_thin_walk(desc, TDMI_CONV_FORWARD);
    const struct tdmi_thin_walk backward = tdmi_conv_thin_walk(desc, TDMI_CONV_BACKWARD);
    const int64_t lanes = tdmi_conv_thin_lanes(desc->isa);
    const int64_t dy_row = (int64_t)(desc->wants_dx ? backward.frame_w : desc->out_w) * desc->out;
    const int64_t out_row = (int64_t)desc->out_w * desc->out, in_row = (int64_t)desc->w * desc->in;
    const int64_t weights = (int64_t)desc->kernel * desc->kernel * desc->in * desc->out;
    const int64_t dy_rows = desc->wants_dx ? desc->out_h : tdmi_conv_thin_rows(desc);
    const int64_t rows = desc->pool ? desc->pool * out_row : out_row > in_row ? out_row : in_row;
    struct tdmi_thin_scratch scratch = {0};
    int64_t *total = &scratch.total;
    scratch.x = tdmi_cpu_take(workspace, total, lanes * forward.h * forward.frame_w * forward.in);
    scratch.dy = tdmi_cpu_take(workspace, total, dy_row * dy_rows * lanes);
    scratch.row = tdmi_cpu_take(workspace, total, rows * lanes);
    if (desc->pool)
        scratch.pooled =
            tdmi_cpu_take(workspace, total, lanes * 2 * (desc->out_w / desc->pool) * desc->out);
    scratch.sums = tdmi_cpu_take(workspace, total, (weights + desc->out) * lanes);
    return scratch;
}

size_t tdmi_conv_thin_workspace_bytes(const struct tdmi_conv_thin *desc)
{
    return sizeof(float) * (size_t)tdmi_conv_thin_scratch(desc, NULL).total;
}

size_t tdmi_conv_thin_packed_bytes(const struct tdmi_conv_thin *desc)
{
    return sizeof(float) * (size_t)desc->kernel * (size_t)desc->kernel * (size_t)desc->in *
           (size_t)desc->out;
}

/* (out / wide, kernel, kernel, in, wide), in the roles of the walk. */
void tdmi_conv_thin_pack(const struct tdmi_conv_thin *desc, enum tdmi_conv_direction direction,
                         const float *weights, float *packed)
{
    const struct tdmi_thin_walk walk = tdmi_conv_thin_walk(desc, direction);
    const int taps = walk.kernel * walk.kernel;
    for (int group = 0; group < walk.out; group += walk.wide)
        for (int tap = 0; tap < taps; tap++)
            for (int i = 0; i < walk.in; i++)
                for (int k = 0; k < walk.wide; k++) {
                    int64_t at =
                        direction == TDMI_CONV_FORWARD
                            ? ((int64_t)tap * desc->in + i) * desc->out + group + k
                            : ((int64_t)(taps - 1 - tap) * desc->in + group + k) * desc->out + i;
                    *packed++ = weights[at];
                }
}

/* ---- the kernel of the op ---- */

struct conv_thin_state {
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
    struct conv_thin_state *state = NULL;
    TDMI_TRY(TDMI_NEW(state, 1, err));
    state->conv = conv_of(desc);
    state->backward_at = tdmi_cpu_lines(tdmi_conv_thin_packed_bytes(&state->conv));
    *prepared = state;
    return TDM_OK;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct conv_thin_state *state = desc->prepared;
    needs->workspace_bytes = tdmi_conv_thin_workspace_bytes(&state->conv);
    needs->packed_bytes = state->backward_at;
    if (state->conv.pool) {
        size_t bytes = tdmi_conv_winners_workspace_bytes(&state->conv);
        needs->saved_bytes =
            (size_t)desc->max_images * (size_t)tdmi_shape_values(tdmi_op_result(desc));
        if (bytes > needs->workspace_bytes)
            needs->workspace_bytes = bytes;
    }
    if (desc->wants_dx)
        needs->packed_bytes += state->conv.pool ? tdmi_conv_winners_packed_bytes(&state->conv)
                                                : tdmi_conv_thin_packed_bytes(&state->conv);
}

static float *backward_part(const struct conv_thin_state *state, const void *packed)
{
    return (float *)(void *)((const char *)packed + state->backward_at);
}

TDMI_KERNEL_PACK(pack)
{
    const struct conv_thin_state *state = desc->prepared;
    tdmi_conv_thin_pack(&state->conv, TDMI_CONV_FORWARD, call->params[0], call->packed);
    if (desc->wants_dx && state->conv.pool)
        tdmi_conv_winners_pack(&state->conv, call->params[0], backward_part(state, call->packed));
    else if (desc->wants_dx)
        tdmi_conv_thin_pack(&state->conv, TDMI_CONV_BACKWARD, call->params[0],
                            backward_part(state, call->packed));
}

TDMI_KERNEL_RUN(forward)
{
    const struct conv_thin_state *state = desc->prepared;
    kernels_of(state->conv.isa)
        ->forward(&state->conv,
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

TDMI_KERNEL_RUN(backward)
{
    const struct conv_thin_state *state = desc->prepared;
    const struct tdmi_conv_backward own = {
        .n = call->n,
        .x = call->x[0],
        .g = call->dy,
        .packed = desc->wants_dx ? backward_part(state, call->packed) : NULL,
        .dweights = call->dparams[0],
        .dbias = desc->attrs.has_bias ? call->dparams[1] : NULL,
        .dx = call->dx[0],
        .workspace = call->workspace,
    };
    if (state->conv.pool)
        tdmi_conv_winners_backward(&state->conv, &own, call->saved);
    else
        kernels_of(state->conv.isa)->backward(&state->conv, &own);
}

const struct tdmi_kernel tdmi_conv_by_thin = {
    .can_run = can_run,
    .can_fuse = can_fuse,
    .prepare = prepare,
    .release = tdmi_free,
    .needs = needs,
    .algorithm = "lanes of images",
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
