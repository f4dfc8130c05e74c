/*
 * Depthwise convolution of backend cpu, one output channel for each input channel: how rows are
 * grouped into bands, the layout of the workspace, and the kernel of the op. The arithmetic is in
 * depthwise_forward_body.h and depthwise_backward_body.h. Without training a folded batch norm is
 * part of the packed weights and bias.
 */
#include "backend/cpu/conv/conv_chain.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/depthwise/depthwise.h"
#include "backend/cpu/op_forms.h"
#include "base/scope.h"

#include <math.h>

enum {
    WIDEST = 16,             /* lanes of the widest instruction set */
    RING_BYTES = 256 * 1024, /* a share of the second cache, which is 512 KiB or more */
    BAND_PIXELS = 448        /* of f32 sums, which become doubles at a band's end */
};

static int64_t padded_channels(const struct tdmi_depthwise *shape)
{
    return ((int64_t)shape->channels + WIDEST - 1) / WIDEST * WIDEST;
}

static int64_t slot_values(const struct tdmi_depthwise *shape,
                           const struct tdmi_depthwise_ring *ring)
{
    return ring->columns * padded_channels(shape);
}

/* m rows need ((m - 1) · times + reach) / part + 1 slots; as many rows as fit, at least one. */
static struct tdmi_depthwise_ring ring_of(const struct tdmi_depthwise *shape, int rows, int columns,
                                          int times, int part, struct tdmi_depthwise_ring ring)
{
    int reach = (shape->kernel - 1) * shape->dilation;
    ring.columns |= 1; /* equal columns of a slot's blocks fall into different sets of the cache */
    int64_t slot_bytes = slot_values(shape, &ring) * (int64_t)sizeof(float);
    for (int m = 1; m <= rows; m++) {
        int slots = ((m - 1) * times + reach) / part + 1;
        if (m > 1 && (slots * slot_bytes > RING_BYTES || m * columns > BAND_PIXELS))
            break;
        ring.band_rows = m;
        ring.slots = slots;
    }
    return ring;
}

struct tdmi_depthwise_ring tdmi_depthwise_forward_ring(const struct tdmi_depthwise *shape)
{
    int reach = (shape->kernel - 1) * shape->dilation;
    int columns = (shape->out_w - 1) * shape->stride + reach + 1;
    return ring_of(shape, shape->out_h, shape->out_w, shape->stride, 1,
                   (struct tdmi_depthwise_ring){.columns = columns, .before = shape->left});
}

/* Input column j meets output columns from (j + left - reach) / stride on, up to
 * (j + left) / stride; rows alike. */
struct tdmi_depthwise_ring tdmi_depthwise_backward_ring(const struct tdmi_depthwise *shape)
{
    int before = (shape->kernel - 1) * shape->dilation / shape->stride;
    int met = (shape->w - 1 + shape->left) / shape->stride + 1;
    int columns = before + (met > shape->out_w ? met : shape->out_w);
    return ring_of(shape, shape->h, shape->w, 1, shape->stride,
                   (struct tdmi_depthwise_ring){.columns = columns, .before = before});
}

struct tdmi_depthwise_room tdmi_depthwise_room_at(const struct tdmi_depthwise *shape,
                                                  const struct tdmi_depthwise_ring *ring,
                                                  void *workspace)
{
    const int64_t channels = padded_channels(shape);
    const int64_t taps = (int64_t)shape->kernel * shape->kernel;
    struct tdmi_depthwise_room room = {.bytes = 0};
#define CUT(pointer, type, count)                                                        \
    do {                                                                                 \
        (pointer) = workspace ? (type *)(void *)((char *)workspace + room.bytes) : NULL; \
        room.bytes += tdmi_cpu_lines((size_t)(count) * sizeof(type));                    \
    } while (0)
    CUT(room.sums[0], double, channels);
    CUT(room.sums[1], double, channels);
    CUT(room.sums[2], double, channels);
    CUT(room.dweights, double, taps *channels);
    CUT(room.weights, float, taps *channels);
    CUT(room.band_dweights, float, taps *WIDEST);
    CUT(room.scale, float, channels);
    CUT(room.shift, float, channels);
    CUT(room.centre, float, channels);
    CUT(room.of_g, float, channels);
    CUT(room.of_y, float, channels);
    CUT(room.one, float, channels);
    CUT(room.bias, float, channels);
    CUT(room.rows, const float *, (int64_t)ring->slots);
    CUT(room.ring, float, (ring->slots + 1) * slot_values(shape, ring));
#undef CUT
    return room;
}

size_t tdmi_depthwise_workspace_bytes(const struct tdmi_depthwise *shape)
{
    const struct tdmi_depthwise_ring forward = tdmi_depthwise_forward_ring(shape);
    const struct tdmi_depthwise_ring backward = tdmi_depthwise_backward_ring(shape);
    const size_t of_forward = tdmi_depthwise_room_at(shape, &forward, NULL).bytes;
    const size_t of_backward = tdmi_depthwise_room_at(shape, &backward, NULL).bytes;
    return of_forward > of_backward ? of_forward : of_backward;
}

static size_t pieces_bytes(const struct tdmi_depthwise *shape,
                           const struct tdmi_depthwise_ring *ring, int n, int rows, int sums)
{
    const int bands = (rows + ring->band_rows - 1) / ring->band_rows;
    return sizeof(float) * (size_t)n * (size_t)bands * (size_t)(padded_channels(shape) * sums);
}

size_t tdmi_depthwise_team_bytes(const struct tdmi_depthwise *shape, int n, int team)
{
    const struct tdmi_depthwise_ring forward = tdmi_depthwise_forward_ring(shape);
    const struct tdmi_depthwise_ring backward = tdmi_depthwise_backward_ring(shape);
    const size_t of_forward =
        pieces_bytes(shape, &forward, n, shape->out_h, TDMI_DEPTHWISE_FORWARD_SUMS);
    const size_t of_backward =
        pieces_bytes(shape, &backward, n, shape->h, tdmi_depthwise_backward_sums(shape));
    return (size_t)team * tdmi_depthwise_workspace_bytes(shape) +
           (of_forward > of_backward ? of_forward : of_backward);
}

TDMI_TABLE_OF(const struct tdmi_depthwise_kernels *tdmi_depthwise_kernels, tdmi_depthwise)

/* ---- the kernel of the op ---- */

struct depthwise_state {
    struct tdmi_depthwise shape;
    const struct tdmi_depthwise_kernels *kernels;
};

static bool can_run(const struct tdmi_op_desc *desc)
{
    return desc->attrs.groups == desc->in[0].c && desc->out.c == desc->in[0].c && desc->out.c > 1;
}

static bool can_fuse(const struct tdmi_op_desc *desc)
{
    return !desc->fusion.adds_residual && tdmi_cpu_is_clamp(desc->fusion.act) &&
           tdmi_cpu_is_clamp(desc->fusion.in[0].act);
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
    struct depthwise_state *state = NULL;
    TDMI_TRY(TDMI_NEW(state, 1, err));
    state->kernels = tdmi_depthwise_kernels(tdmi_isa_best());
    state->shape = tdmi_depthwise_of(desc);
    *prepared = state;
    return TDM_OK;
}

static size_t packed_weights(const struct tdmi_op_desc *desc)
{
    return (size_t)desc->attrs.kernel * (size_t)desc->attrs.kernel * (size_t)desc->out.c;
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    const struct depthwise_state *state = desc->prepared;
    needs->workspace_bytes =
        desc->team > 1 ? tdmi_depthwise_team_bytes(
                             &state->shape, desc->is_training ? desc->max_images : 0, desc->team)
                       : tdmi_depthwise_workspace_bytes(&state->shape);
    if (desc->fusion.folds_norm)
        needs->packed_bytes = sizeof(float) * (packed_weights(desc) + (size_t)desc->out.c);
}

/* Weights, then the bias. */
TDMI_KERNEL_PACK(pack)
{
    const int channels = desc->out.c;
    const size_t n_weights = packed_weights(desc);
    float *weights = call->packed, *bias = weights + n_weights;
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
    struct tdmi_depthwise_forward own = {
        .n = call->n,
        .x = call->x[0],
        .form = tdmi_cpu_form_of(desc, call, 0),
        .weights = call->params[0],
        .bias = desc->attrs.has_bias ? call->params[1] : NULL,
        .act = desc->fusion.act,
        .y = call->y,
        .sums = tdmi_cpu_forward_sums_of(desc, call),
        .workspace = call->workspace,
    };
    if (desc->fusion.folds_norm) {
        own.weights = call->packed;
        own.bias = own.weights + packed_weights(desc);
    }
    return own;
}

TDMI_KERNEL_RUN(forward)
{
    const struct depthwise_state *state = desc->prepared;
    struct tdmi_depthwise_forward own = tdmi_depthwise_call_of(desc, call);
    own.member = call->member;
    state->kernels->forward(&state->shape, &own);
}

TDMI_KERNEL_RUN(backward)
{
    const struct depthwise_state *state = desc->prepared;
    const struct tdmi_depthwise_backward own = {
        .n = call->n,
        .x = call->x[0],
        .form = tdmi_cpu_form_of(desc, call, 0),
        .g = call->dy,
        .y = desc->fusion.reads_gradient_form ? call->y : NULL,
        .gradient = tdmi_cpu_gradient_form_of(desc, call),
        .weights = call->params[0],
        .dweights = call->dparams[0],
        .dbias = desc->attrs.has_bias ? call->dparams[1] : NULL,
        .dx = call->dx[0],
        .add = call->dx_add[0],
        .sums = tdmi_cpu_sums_of(desc, call, 0),
        .workspace = call->workspace,
        .member = call->member,
    };
    state->kernels->backward(&state->shape, &own);
}

const struct tdmi_kernel tdmi_conv_by_depthwise = {
    .can_run = can_run,
    .can_fuse = can_fuse,
    .adds_dx = true,
    .prepare = prepare,
    .release = tdmi_free,
    .needs = needs,
    .algorithm = "walks over planes",
    .pack = pack,
    .forward = forward,
    .backward = backward,
    .shares_forward = TDMI_SHARING_OWN,
    .shares_backward = TDMI_SHARING_OWN,
};
