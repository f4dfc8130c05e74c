/*
 * Convolutions of backend cpu by oneDNN. Without training all that follows is part of oneDNN's
 * primitive, and a folded batch norm part of the packed weights; a team shares the images. In
 * training oneDNN knows nothing of forms and sums: they are passes over one picture, right before
 * and after the primitive that reads or wrote it.
 *
 * The gradient of the weights wants either all pictures in one call, which then must all be
 * prepared beforehand, or one picture a call, whose gradients are then added up. The first is
 * better where weights are many and pictures small.
 */
#include "backend/cpu/conv/carry.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/onednn/library.h"
#include "backend/cpu/op_forms.h"
#include "base/scope.h"
#include "base/team.h"

#include <math.h>
#include <string.h>

struct onednn_conv_state {
    const struct tdmi_onednn_conv_table *onednn;
    tdmi_onednn_conv *conv;
    bool has_gradient_form;
    bool goes_by_picture; /* the weights' gradient */
    size_t n_weights;
    /* Offsets in bytes: of packed weights, */
    size_t bias_at, factors_at, forward_at, backward_at, packed_bytes;
    /* and of the workspace, whose beginning is oneDNN's. */
    size_t x_at, dy_at, dx_at, dweights_at, workspace_bytes;
};

/* ---- what it can do ----------------------------------------------------------------------- */

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    const enum tdmi_act read = desc->fusion.in[0].act;
    return desc->is_training ? tdmi_cpu_is_clamp(read) : read == TDMI_ACT_NONE;
}

static bool has_read_form(const struct tdmi_op_desc *desc)
{
    return desc->fusion.in[0].has_norm || desc->fusion.in[0].act != TDMI_ACT_NONE;
}

/* ---- preparing ---------------------------------------------------------------------------- */

static void place_packed(struct onednn_conv_state *state, const struct tdmi_op_desc *desc)
{
    size_t vector = sizeof(float) * (size_t)desc->out.c;
    state->bias_at = tdmi_cpu_reserve(&state->packed_bytes, vector);
    state->factors_at = tdmi_cpu_reserve(&state->packed_bytes, vector);
    state->forward_at = tdmi_cpu_reserve(
        &state->packed_bytes, state->onednn->packed_bytes(state->conv, TDMI_ONEDNN_FORWARD));
    if (desc->is_training && desc->wants_dx)
        state->backward_at =
            tdmi_cpu_reserve(&state->packed_bytes,
                             state->onednn->packed_bytes(state->conv, TDMI_ONEDNN_BACKWARD_DATA));
}

static void place_workspace(struct onednn_conv_state *state, const struct tdmi_op_desc *desc)
{
    size_t x_bytes = sizeof(float) * (size_t)tdmi_shape_values(desc->in[0]);
    size_t y_bytes = sizeof(float) * (size_t)tdmi_shape_values(desc->out);
    size_t pictures = state->goes_by_picture ? 1 : (size_t)desc->max_images;
    const size_t own = state->onednn->workspace_bytes(state->conv);
    if (!desc->is_training) {
        const size_t team = desc->team > 1 ? (size_t)desc->team : 1;
        state->workspace_bytes = team * tdmi_cpu_lines(own);
        return;
    }
    tdmi_cpu_reserve(&state->workspace_bytes, own);
    if (has_read_form(desc))
        state->x_at = tdmi_cpu_reserve(&state->workspace_bytes, pictures * x_bytes);
    if (state->has_gradient_form)
        state->dy_at = tdmi_cpu_reserve(&state->workspace_bytes, pictures * y_bytes);
    state->dx_at = tdmi_cpu_reserve(&state->workspace_bytes, x_bytes);
    if (state->goes_by_picture)
        state->dweights_at = tdmi_cpu_reserve(
            &state->workspace_bytes, sizeof(float) * (state->n_weights + 16 + (size_t)desc->out.c));
}

static tdm_status prepare(const struct tdmi_op_desc *desc, void **prepared, tdm_error *err)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    const struct tdmi_onednn_conv_desc conv = {
        .max_images = desc->max_images,
        .in = desc->in[0],
        .out = desc->out,
        .kernel_h = a->kernel,
        .kernel_w = a->kernel,
        .stride_h = a->stride,
        .stride_w = a->stride,
        .dilation_h = a->dilation,
        .dilation_w = a->dilation,
        .groups = a->groups,
        .pad_top = a->pad_top,
        .pad_left = a->pad_left,
        .has_bias = a->has_bias || desc->fusion.folds_norm,
        .adds_residual = desc->fusion.adds_residual,
        .act = desc->fusion.act,
        .scales_weights = desc->fusion.folds_norm,
        .has_backward = desc->is_training,
        .wants_dx = desc->is_training && desc->wants_dx,
    };
    const struct tdmi_onednn_table *onednn;
    TDMI_AT_END(tdmi_free_at) struct onednn_conv_state *state = NULL;
    TDMI_TRY(tdmi_onednn_load(&onednn, err));
    TDMI_TRY(TDMI_NEW(state, 1, err));
    state->onednn = onednn->conv;
    TDMI_TRY(state->onednn->open(&conv, &state->conv, err));
    int64_t n_values = tdmi_shape_values(desc->in[0]) + tdmi_shape_values(desc->out);
    state->n_weights = (size_t)a->kernel * (size_t)a->kernel * (size_t)(desc->in[0].c / a->groups) *
                       (size_t)desc->out.c;
    state->has_gradient_form = desc->fusion.reads_gradient_form;
    state->goes_by_picture = (has_read_form(desc) || state->has_gradient_form) &&
                             n_values > 2 * (int64_t)state->n_weights;
    place_packed(state, desc);
    place_workspace(state, desc);
    *prepared = tdmi_take(&state);
    return TDM_OK;
}

static void release(void *prepared)
{
    struct onednn_conv_state *state = prepared;
    if (state)
        state->onednn->close(state->conv);
    tdmi_free(state);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct onednn_conv_state *state = desc->prepared;
    needs->workspace_bytes = state->workspace_bytes;
    needs->packed_bytes = state->packed_bytes;
}

TDMI_KERNEL_PACK(pack)
{
    const struct onednn_conv_state *state = desc->prepared;
    char *packed = call->packed;
    float *bias = (float *)(packed + state->bias_at), *factors = NULL;
    if (desc->attrs.has_bias)
        memcpy(bias, call->params[1], sizeof(float) * (size_t)desc->out.c);
    else
        memset(bias, 0, sizeof(float) * (size_t)desc->out.c);
    if (desc->fusion.folds_norm) {
        factors = (float *)(packed + state->factors_at);
        for (int c = 0; c < desc->out.c; c++) {
            double rstd = 1.0 / sqrt((double)call->norm_states[1][c] + call->norm_epsilon);
            double factor = (double)call->norm_params[0][c] * rstd;
            factors[c] = (float)factor;
            bias[c] = (float)((double)call->norm_params[1][c] +
                              ((double)bias[c] - (double)call->norm_states[0][c]) * factor);
        }
    }
    tdmi_onednn_note(stream, state->onednn->pack(state->conv, TDMI_ONEDNN_FORWARD, call->params[0],
                                                 factors, packed + state->forward_at));
    if (state->backward_at)
        tdmi_onednn_note(stream,
                         state->onednn->pack(state->conv, TDMI_ONEDNN_BACKWARD_DATA,
                                             call->params[0], NULL, packed + state->backward_at));
}

/* ---- forward ------------------------------------------------------------------------------ */

static void run_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call, int n, const float *x, float *y)
{
    const struct onednn_conv_state *state = desc->prepared;
    const char *packed = call->packed;
    const struct tdmi_onednn_conv_call pass = {
        .n = n,
        .packed = packed + state->forward_at,
        .workspace = call->workspace,
        .x = x,
        .bias = (const float *)(packed + state->bias_at),
        .residual = call->residual,
        .y = y,
    };
    tdmi_onednn_note(stream, state->onednn->forward(state->conv, &pass));
}

/* The member's images, with a part of the workspace. */
static void infer(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                  const struct tdmi_op_call *call)
{
    const struct onednn_conv_state *state = desc->prepared;
    const int64_t x_values = tdmi_shape_values(desc->in[0]),
                  y_values = tdmi_shape_values(desc->out);
    const struct tdmi_share mine = tdmi_member_share(call->member, call->n);
    const size_t own = tdmi_cpu_lines(state->onednn->workspace_bytes(state->conv));
    struct tdmi_op_call part = *call;
    part.workspace =
        (char *)call->workspace + (call->member ? (size_t)call->member->index : 0) * own;
    if (call->residual)
        part.residual = call->residual + mine.first * y_values;
    run_forward(stream, desc, &part, (int)(mine.end - mine.first),
                call->x[0] + mine.first * x_values, call->y + mine.first * y_values);
}

TDMI_KERNEL_RUN(forward)
{
    const struct onednn_conv_state *state = desc->prepared;
    const int64_t x_values = tdmi_shape_values(desc->in[0]),
                  y_values = tdmi_shape_values(desc->out);
    const int channels = desc->out.c;
    const struct tdmi_read_form form = tdmi_cpu_form_of(desc, call, 0);
    const struct tdmi_forward_sums sums = tdmi_cpu_forward_sums_of(desc, call);
    if (!desc->is_training)
        infer(stream, desc, call);
    if (!desc->is_training || !tdmi_member_is_first(call->member))
        return;
    if (sums.sum)
        memset(sums.sum, 0, 2 * sizeof(double) * (size_t)channels);
    for (int i = 0; i < call->n; i++) {
        const float *x = call->x[0] + i * x_values;
        float *y = call->y + i * y_values;
        if (has_read_form(desc)) {
            float *v = (float *)((char *)call->workspace + state->x_at);
            tdmi_carry_read(&form, x, tdmi_shape_pixels(desc->in[0]), desc->in[0].c, v);
            x = v;
        }
        run_forward(stream, desc, call, 1, x, y);
        if (sums.sum)
            tdmi_carry_forward_sums(y, tdmi_shape_pixels(desc->out), channels, &sums);
    }
}

/* ---- backward ----------------------------------------------------------------------------- */

/* n pictures as the convolution itself has read them and gets their gradients. */
struct slice {
    int first, n;
    const float *x, *dy;
};

static struct slice take(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                         int first, int n)
{
    const struct onednn_conv_state *state = desc->prepared;
    const int64_t x_values = tdmi_shape_values(desc->in[0]),
                  y_values = tdmi_shape_values(desc->out);
    struct slice slice = {first, n, call->x[0] + first * x_values, call->dy + first * y_values};
    if (has_read_form(desc)) {
        const struct tdmi_read_form form = tdmi_cpu_form_of(desc, call, 0);
        float *v = (float *)((char *)call->workspace + state->x_at);
        tdmi_carry_read(&form, slice.x, n * tdmi_shape_pixels(desc->in[0]), desc->in[0].c, v);
        slice.x = v;
    }
    if (state->has_gradient_form) {
        const struct tdmi_gradient_form form = tdmi_cpu_gradient_form_of(desc, call);
        float *dy = (float *)((char *)call->workspace + state->dy_at);
        tdmi_carry_gradient(&form, slice.dy, call->y + first * y_values,
                            n * tdmi_shape_pixels(desc->out), desc->out.c, dy);
        slice.dy = dy;
    }
    return slice;
}

/* The first slice writes, further ones add. */
static void backward_weights(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call, const struct slice *slice)
{
    const struct onednn_conv_state *state = desc->prepared;
    float *dw = call->dparams[0], *db = desc->attrs.has_bias ? call->dparams[1] : NULL;
    if (slice->first > 0) {
        dw = (float *)((char *)call->workspace + state->dweights_at);
        db = db ? dw + (state->n_weights + 15) / 16 * 16 : NULL;
    }
    const struct tdmi_onednn_conv_call pass = {
        .n = slice->n,
        .workspace = call->workspace,
        .x = slice->x,
        .dy = slice->dy,
        .dw = dw,
        .db = db,
    };
    tdmi_onednn_note(stream, state->onednn->backward_weights(state->conv, &pass));
    if (slice->first > 0) {
        tdmi_cpu_accumulate(call->dparams[0], dw, state->n_weights);
        if (db)
            tdmi_cpu_accumulate(call->dparams[1], db, (size_t)desc->out.c);
    }
}

static void backward_data(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                          const struct tdmi_op_call *call, const struct slice *slice)
{
    const struct onednn_conv_state *state = desc->prepared;
    const int64_t x_values = tdmi_shape_values(desc->in[0]),
                  y_values = tdmi_shape_values(desc->out);
    const int64_t pixels = tdmi_shape_pixels(desc->in[0]);
    const int channels = desc->in[0].c;
    const struct tdmi_read_form form = tdmi_cpu_form_of(desc, call, 0);
    const bool is_direct = !has_read_form(desc) && !call->dx_add[0];
    const struct tdmi_backward_sums sums = tdmi_cpu_sums_of(desc, call, 0);
    for (int i = 0; i < slice->n; i++) {
        int64_t at = (slice->first + i) * x_values;
        float *dx = call->dx[0] + at;
        float *dv = is_direct ? dx : (float *)((char *)call->workspace + state->dx_at);
        const struct tdmi_onednn_conv_call pass = {
            .n = 1,
            .packed = (const char *)call->packed + state->backward_at,
            .workspace = call->workspace,
            .dy = slice->dy + i * y_values,
            .dx = dv,
        };
        tdmi_onednn_note(stream, state->onednn->backward_data(state->conv, &pass));
        if (!is_direct)
            tdmi_carry_mask(&form, call->x[0] + at, dv,
                            call->dx_add[0] ? call->dx_add[0] + at : NULL, pixels, channels, dx);
        if (sums.sum)
            tdmi_carry_backward_sums(dx, call->x[0] + at, pixels, channels, &sums);
    }
}

TDMI_KERNEL_RUN(backward)
{
    const struct onednn_conv_state *state = desc->prepared;
    const int step = state->goes_by_picture ? 1 : call->n;
    if (call->dx_sums[0])
        memset(call->dx_sums[0], 0, 2 * sizeof(double) * (size_t)desc->in[0].c);
    for (int first = 0; first < call->n; first += step) {
        const struct slice slice = take(desc, call, first, step);
        backward_weights(stream, desc, call, &slice);
        if (call->dx[0])
            backward_data(stream, desc, call, &slice);
    }
}

const struct tdmi_kernel tdmi_conv_by_onednn = {
    .can_fuse = can_fuse,
    .adds_dx = true,
    .shares_forward = TDMI_SHARING_OWN,
    .prepare = prepare,
    .release = release,
    .needs = needs,
    .algorithm = "oneDNN",
    .pack = pack,
    .forward = forward,
    .backward = backward,
};
