/*
 * The primitives of one convolution: made in open(), which asks oneDNN for the layout it wants the
 * weights in, and from there on only run.
 */
#include "backend/cpu/onednn/conv.h"
#include "backend/cpu/onednn/primitive.h"
#include "base/memory.h"

#include <math.h>

/* The gradient of the weights over a fixed number of images, brought to our layout. */
struct weights_pass {
    tdmi_onednn_primitive *run, *unpack; /* unpack NULL: oneDNN writes our layout itself */
    size_t packed_bytes, scratch_bytes;
};

struct tdmi_onednn_conv {
    struct tdmi_onednn_conv_desc desc;
    dnnl_engine_t engine; /* outlives what was made with it */
    tdmi_onednn_primitive *passes[TDMI_ONEDNN_PASSES], *packs[TDMI_ONEDNN_PASSES];
    size_t packed_bytes[TDMI_ONEDNN_PASSES];
    size_t pack_scratch_bytes[TDMI_ONEDNN_PASSES]; /* behind the packed weights */
    struct weights_pass shard, one;
    size_t scratch_bytes; /* the most of passes */
};

/* Temporary objects of open(). */
struct maker {
    dnnl_engine_t engine;                    /* the convolution's */
    dnnl_memory_desc_t x, y;                 /* of one image */
    dnnl_memory_desc_t shard_x, shard_y;     /* of max_images */
    dnnl_memory_desc_t weights, any_weights; /* in our layout, and in any */
    dnnl_memory_desc_t bias;                 /* NULL: none */
    dnnl_primitive_desc_t forward;           /* of one image */
    dnnl_primitive_attr_t attributes, plain; /* with what follows the product; scratch alone */
    dnnl_dims_t strides, dilations, before, after;
};

static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* ---- layouts and attributes --------------------------------------------------------------- */

static dnnl_status_t image_layout(dnnl_memory_desc_t *layout, int n, struct tdmi_shape shape)
{
    const dnnl_dims_t sizes = {n, shape.c, shape.h, shape.w};
    return dnnl_memory_desc_create_with_tag(layout, 4, sizes, dnnl_f32, dnnl_nhwc);
}

/* (kernel_h, kernel_w, in / groups, out) in oneDNN's order of axes: [group,] out, in, h, w. */
static dnnl_status_t weight_layouts(struct maker *maker, const struct tdmi_onednn_conv_desc *desc)
{
    const dnnl_dim_t out = desc->out.c, per_group = out / desc->groups;
    const dnnl_dim_t in = desc->in.c / desc->groups;
    const dnnl_dims_t sizes = {desc->groups, per_group, in, desc->kernel_h, desc->kernel_w};
    const dnnl_dims_t strides = {per_group, 1, out, desc->kernel_w * in * out, in * out};
    int skipped = desc->groups > 1 ? 0 : 1;
    dnnl_status_t code = dnnl_memory_desc_create_with_strides(
        &maker->weights, 5 - skipped, sizes + skipped, dnnl_f32, strides + skipped);
    if (code == dnnl_success)
        code = dnnl_memory_desc_create_with_tag(&maker->any_weights, 5 - skipped, sizes + skipped,
                                                dnnl_f32, dnnl_format_tag_any);
    return code;
}

static dnnl_status_t layouts(struct maker *maker, const struct tdmi_onednn_conv_desc *desc)
{
    const dnnl_dims_t channels = {desc->out.c};
    dnnl_status_t code = image_layout(&maker->x, 1, desc->in);
    if (code == dnnl_success)
        code = image_layout(&maker->y, 1, desc->out);
    if (code == dnnl_success)
        code = image_layout(&maker->shard_x, desc->max_images, desc->in);
    if (code == dnnl_success)
        code = image_layout(&maker->shard_y, desc->max_images, desc->out);
    if (code == dnnl_success)
        code = weight_layouts(maker, desc);
    if (code == dnnl_success && desc->has_bias)
        code = dnnl_memory_desc_create_with_tag(&maker->bias, 1, channels, dnnl_f32, dnnl_a);
    return code;
}

/* Rows or columns that the last window reaches past the picture. */
static int reach(int in, int out, int kernel, int stride, int dilation, int before)
{
    int past = (out - 1) * stride + (kernel - 1) * dilation + 1 - in - before;
    return past > 0 ? past : 0;
}

static void windows(struct maker *maker, const struct tdmi_onednn_conv_desc *desc)
{
    maker->strides[0] = desc->stride_h;
    maker->strides[1] = desc->stride_w;
    maker->dilations[0] = desc->dilation_h - 1;
    maker->dilations[1] = desc->dilation_w - 1;
    maker->before[0] = desc->pad_top;
    maker->before[1] = desc->pad_left;
    maker->after[0] = reach(desc->in.h, desc->out.h, desc->kernel_h, desc->stride_h,
                            desc->dilation_h, desc->pad_top);
    maker->after[1] = reach(desc->in.w, desc->out.w, desc->kernel_w, desc->stride_w,
                            desc->dilation_w, desc->pad_left);
}

static dnnl_status_t append_act(dnnl_post_ops_t after, enum tdmi_act act)
{
    switch (act) {
    case TDMI_ACT_RELU:
        return dnnl_post_ops_append_eltwise(after, dnnl_eltwise_relu, 0.0f, 0.0f);
    case TDMI_ACT_RELU6:
        return dnnl_post_ops_append_eltwise(after, dnnl_eltwise_clip, 0.0f, 6.0f);
    case TDMI_ACT_HSWISH:
        return dnnl_post_ops_append_eltwise(after, dnnl_eltwise_hardswish, 1.0f / 6.0f, 0.5f);
    case TDMI_ACT_SIGMOID:
        return dnnl_post_ops_append_eltwise(after, dnnl_eltwise_logistic, 0.0f, 0.0f);
    case TDMI_ACT_NONE:
        break;
    }
    return dnnl_success;
}

static dnnl_status_t with_own_scratch(dnnl_primitive_attr_t *attributes)
{
    dnnl_status_t code = dnnl_primitive_attr_create(attributes);
    if (code == dnnl_success)
        code = dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user);
    return code;
}

static dnnl_status_t attributes(struct maker *maker, const struct tdmi_onednn_conv_desc *desc)
{
    dnnl_post_ops_t after = NULL;
    dnnl_status_t code = with_own_scratch(&maker->plain);
    if (code == dnnl_success)
        code = with_own_scratch(&maker->attributes);
    if (code == dnnl_success)
        code = dnnl_post_ops_create(&after);
    if (code == dnnl_success && desc->adds_residual)
        code = dnnl_post_ops_append_binary(after, dnnl_binary_add, maker->y);
    if (code == dnnl_success)
        code = append_act(after, desc->act);
    if (code == dnnl_success)
        code = dnnl_primitive_attr_set_post_ops(maker->attributes, after);
    if (after)
        dnnl_post_ops_destroy(after);
    return code;
}

static void forget(struct maker *maker)
{
    const dnnl_memory_desc_t all[] = {maker->x,       maker->y,       maker->shard_x,
                                      maker->shard_y, maker->weights, maker->any_weights,
                                      maker->bias};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            dnnl_memory_desc_destroy(all[i]);
    if (maker->forward)
        dnnl_primitive_desc_destroy(maker->forward);
    if (maker->attributes)
        dnnl_primitive_attr_destroy(maker->attributes);
    if (maker->plain)
        dnnl_primitive_attr_destroy(maker->plain);
}

/* ---- making the primitives ---------------------------------------------------------------- */

/* A reorder between two layouts of weights, times one factor an output channel where wanted. */
static tdm_status make_reorder(struct maker *maker, const_dnnl_memory_desc_t from,
                               const_dnnl_memory_desc_t to,
                               const struct tdmi_onednn_conv_desc *desc, bool is_scaled,
                               tdmi_onednn_primitive **reorder, size_t *scratch_bytes,
                               tdm_error *err)
{
    const dnnl_dims_t channels = {desc->out.c};
    dnnl_primitive_desc_t plan = NULL;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_memory_desc_t factors = NULL;
    dnnl_status_t code = with_own_scratch(&attributes);
    if (code == dnnl_success && is_scaled)
        code = dnnl_primitive_attr_set_scales_mask(attributes, DNNL_ARG_SRC,
                                                   desc->groups > 1 ? 1 << 0 | 1 << 1 : 1 << 0);
    if (code == dnnl_success && is_scaled)
        code = dnnl_memory_desc_create_with_tag(&factors, 1, channels, dnnl_f32, dnnl_a);
    if (code == dnnl_success)
        code = dnnl_reorder_primitive_desc_create(&plan, from, maker->engine, to, maker->engine,
                                                  attributes);
    tdm_status status = tdmi_onednn_explain(code, "a reorder of weights", err);
    if (status == TDM_OK) {
        const struct tdmi_onednn_argument arguments[] = {
            {DNNL_ARG_FROM, from},
            {DNNL_ARG_TO, to},
            {DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0)},
            {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, factors},
        };
        *scratch_bytes = tdmi_onednn_scratch_bytes(plan);
        status = tdmi_onednn_primitive_open(plan, arguments, 4, reorder, err);
    }
    if (plan)
        dnnl_primitive_desc_destroy(plan);
    if (factors)
        dnnl_memory_desc_destroy(factors);
    if (attributes)
        dnnl_primitive_attr_destroy(attributes);
    return status;
}

static void note_scratch(tdmi_onednn_conv *conv, const_dnnl_primitive_desc_t plan)
{
    size_t bytes = tdmi_onednn_scratch_bytes(plan);
    conv->scratch_bytes = bytes > conv->scratch_bytes ? bytes : conv->scratch_bytes;
}

/* The packing that the plan of a pass asks for. */
static tdm_status make_pack(tdmi_onednn_conv *conv, struct maker *maker, enum tdmi_onednn_pass pass,
                            const_dnnl_primitive_desc_t plan, tdm_error *err)
{
    const_dnnl_memory_desc_t packed = dnnl_primitive_desc_query_md(plan, dnnl_query_weights_md, 0);
    conv->packed_bytes[pass] = dnnl_memory_desc_get_size(packed);
    return make_reorder(maker, maker->weights, packed, &conv->desc, conv->desc.scales_weights,
                        &conv->packs[pass], &conv->pack_scratch_bytes[pass], err);
}

static tdm_status make_forward(tdmi_onednn_conv *conv, struct maker *maker, tdm_error *err)
{
    TDM_TRY(tdmi_onednn_explain(dnnl_convolution_forward_primitive_desc_create(
                                    &maker->forward, maker->engine, dnnl_forward_training,
                                    dnnl_convolution_direct, maker->x, maker->any_weights,
                                    maker->bias, maker->y, maker->strides, maker->dilations,
                                    maker->before, maker->after, maker->attributes),
                                "f32 convolution", err),
            err, "preparing a convolution");
    const_dnnl_primitive_desc_t plan = maker->forward;
    const struct tdmi_onednn_argument arguments[] = {
        {DNNL_ARG_SRC, maker->x},
        {DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(plan, dnnl_query_weights_md, 0)},
        {DNNL_ARG_DST, maker->y},
        {DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0)},
        {DNNL_ARG_BIAS, maker->bias},
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
         conv->desc.adds_residual ? maker->y : NULL},
    };
    note_scratch(conv, plan);
    TDM_TRY(tdmi_onednn_primitive_open(plan, arguments, 6, &conv->passes[TDMI_ONEDNN_FORWARD], err),
            err, "preparing a convolution");
    return make_pack(conv, maker, TDMI_ONEDNN_FORWARD, plan, err);
}

static tdm_status make_backward_data(tdmi_onednn_conv *conv, struct maker *maker, tdm_error *err)
{
    dnnl_primitive_desc_t plan = NULL;
    tdm_status status =
        tdmi_onednn_explain(dnnl_convolution_backward_data_primitive_desc_create(
                                &plan, maker->engine, dnnl_convolution_direct, maker->x,
                                maker->any_weights, maker->y, maker->strides, maker->dilations,
                                maker->before, maker->after, maker->forward, maker->plain),
                            "input gradient of an f32 convolution", err);
    if (status == TDM_OK) {
        const struct tdmi_onednn_argument arguments[] = {
            {DNNL_ARG_DIFF_DST, maker->y},
            {DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(plan, dnnl_query_weights_md, 0)},
            {DNNL_ARG_DIFF_SRC, maker->x},
            {DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0)},
        };
        note_scratch(conv, plan);
        status = tdmi_onednn_primitive_open(plan, arguments, 4,
                                            &conv->passes[TDMI_ONEDNN_BACKWARD_DATA], err);
    }
    if (status == TDM_OK)
        status = make_pack(conv, maker, TDMI_ONEDNN_BACKWARD_DATA, plan, err);
    if (plan)
        dnnl_primitive_desc_destroy(plan);
    return status;
}

static tdm_status make_weights_pass(tdmi_onednn_conv *conv, struct maker *maker,
                                    const_dnnl_memory_desc_t x, const_dnnl_memory_desc_t y,
                                    struct weights_pass *pass, tdm_error *err)
{
    dnnl_primitive_desc_t plan = NULL;
    size_t unpack_scratch = 0;
    tdm_status status = tdmi_onednn_explain(dnnl_convolution_backward_weights_primitive_desc_create(
                                                &plan, maker->engine, dnnl_convolution_direct, x,
                                                maker->any_weights, maker->bias, y, maker->strides,
                                                maker->dilations, maker->before, maker->after,
                                                maker->forward, maker->plain),
                                            "weights' gradient of an f32 convolution", err);
    if (status != TDM_OK)
        return status;
    const_dnnl_memory_desc_t chosen =
        dnnl_primitive_desc_query_md(plan, dnnl_query_diff_weights_md, 0);
    const struct tdmi_onednn_argument arguments[] = {
        {DNNL_ARG_SRC, x},
        {DNNL_ARG_DIFF_DST, y},
        {DNNL_ARG_DIFF_WEIGHTS, chosen},
        {DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0)},
        {DNNL_ARG_DIFF_BIAS, maker->bias},
    };
    status = tdmi_onednn_primitive_open(plan, arguments, 5, &pass->run, err);
    if (status == TDM_OK && !dnnl_memory_desc_equal(chosen, maker->weights)) {
        pass->packed_bytes = aligned(dnnl_memory_desc_get_size(chosen));
        status = make_reorder(maker, chosen, maker->weights, &conv->desc, false, &pass->unpack,
                              &unpack_scratch, err);
    }
    pass->scratch_bytes = tdmi_onednn_scratch_bytes(plan);
    if (unpack_scratch > pass->scratch_bytes)
        pass->scratch_bytes = unpack_scratch;
    dnnl_primitive_desc_destroy(plan);
    return status;
}

/* The forward plan is also the hint that both backward ones want. */
static tdm_status make(tdmi_onednn_conv *conv, struct maker *maker, tdm_error *err)
{
    const struct tdmi_onednn_conv_desc *desc = &conv->desc;
    dnnl_status_t code = dnnl_engine_create(&conv->engine, dnnl_cpu, 0);
    maker->engine = conv->engine;
    if (code == dnnl_success)
        code = layouts(maker, desc);
    if (code == dnnl_success)
        code = attributes(maker, desc);
    TDM_TRY(tdmi_onednn_explain(code, "a layout", err), err, "preparing a convolution");
    windows(maker, desc);
    TDM_TRY(make_forward(conv, maker, err), err, "preparing its forward pass");
    if (desc->wants_dx)
        TDM_TRY(make_backward_data(conv, maker, err), err, "preparing its input's gradient");
    if (desc->has_backward) {
        TDM_TRY(make_weights_pass(conv, maker, maker->x, maker->y, &conv->one, err), err,
                "preparing its weights' gradient");
        if (desc->max_images > 1)
            TDM_TRY(
                make_weights_pass(conv, maker, maker->shard_x, maker->shard_y, &conv->shard, err),
                err, "preparing its weights' gradient");
    }
    return TDM_OK;
}

tdm_status tdmi_onednn_conv_open(const struct tdmi_onednn_conv_desc *desc, tdmi_onednn_conv **conv,
                                 tdm_error *err)
{
    struct maker maker = {0};
    *conv = NULL;
    tdm_status status = tdmi_onednn_need_room("a convolution", err);
    if (status != TDM_OK)
        return status;
    tdmi_onednn_conv *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing a convolution: out of memory");
    made->desc = *desc;
    struct tdmi_onednn_threads threads = tdmi_onednn_threads_find();
    int before = tdmi_onednn_threads_enter(threads);
    status = make(made, &maker, err);
    tdmi_onednn_threads_leave(threads, before);
    forget(&maker);
    if (status != TDM_OK) {
        tdmi_onednn_conv_close(made);
        return status;
    }
    *conv = made;
    return TDM_OK;
}

void tdmi_onednn_conv_close(tdmi_onednn_conv *conv)
{
    if (!conv)
        return;
    for (int i = 0; i < TDMI_ONEDNN_PASSES; i++) {
        tdmi_onednn_primitive_close(conv->passes[i]);
        tdmi_onednn_primitive_close(conv->packs[i]);
    }
    tdmi_onednn_primitive_close(conv->shard.run);
    tdmi_onednn_primitive_close(conv->shard.unpack);
    tdmi_onednn_primitive_close(conv->one.run);
    tdmi_onednn_primitive_close(conv->one.unpack);
    if (conv->engine)
        dnnl_engine_destroy(conv->engine);
    tdmi_free(conv);
}

/* ---- queries ------------------------------------------------------------------------------ */

static size_t weights_values(const tdmi_onednn_conv *conv)
{
    const struct tdmi_onednn_conv_desc *desc = &conv->desc;
    return (size_t)desc->kernel_h * (size_t)desc->kernel_w * (size_t)(desc->in.c / desc->groups) *
           (size_t)desc->out.c;
}

size_t tdmi_onednn_conv_packed_bytes(const tdmi_onednn_conv *conv, enum tdmi_onednn_pass pass)
{
    return aligned(conv->packed_bytes[pass]) + aligned(conv->pack_scratch_bytes[pass]);
}

static size_t weights_pass_bytes(const struct weights_pass *pass)
{
    return pass->packed_bytes + aligned(pass->scratch_bytes);
}

/* For a ragged group: the gradients of one image, beside the sums. */
static size_t image_gradient_bytes(const tdmi_onednn_conv *conv)
{
    return aligned(weights_values(conv) * sizeof(float)) +
           aligned((size_t)conv->desc.out.c * sizeof(float));
}

size_t tdmi_onednn_conv_workspace_bytes(const tdmi_onednn_conv *conv)
{
    size_t most = aligned(conv->scratch_bytes);
    size_t shard = weights_pass_bytes(&conv->shard);
    size_t ragged = weights_pass_bytes(&conv->one);
    if (conv->shard.run)
        ragged += image_gradient_bytes(conv);
    most = shard > most ? shard : most;
    return ragged > most ? ragged : most;
}

/* ---- running ------------------------------------------------------------------------------ */

static void spoil(tdmi_stream *stream, float *values, int64_t n)
{
    tdmi_onednn_note(stream);
    for (int64_t i = 0; values && i < n; i++)
        values[i] = NAN;
}

void tdmi_onednn_conv_pack(const tdmi_onednn_conv *conv, tdmi_stream *stream,
                           enum tdmi_onednn_pass pass, const float *weights, const float *factors,
                           void *packed)
{
    char *scratch = (char *)packed + aligned(conv->packed_bytes[pass]);
    const void *arrays[] = {weights, packed, scratch, factors};
    if (!tdmi_onednn_primitive_run(conv->packs[pass], arrays))
        spoil(stream, packed, (int64_t)(conv->packed_bytes[pass] / sizeof(float)));
}

void tdmi_onednn_conv_forward(const tdmi_onednn_conv *conv,
                              const struct tdmi_onednn_conv_call *call)
{
    int64_t x_values = tdmi_shape_values(conv->desc.in),
            y_values = tdmi_shape_values(conv->desc.out);
    for (int i = 0; i < call->n; i++) {
        float *y = call->y + i * y_values;
        const void *arrays[] = {
            call->x + i * x_values,
            call->packed,
            y,
            call->workspace,
            call->bias,
            call->residual ? call->residual + i * y_values : NULL,
        };
        if (!tdmi_onednn_primitive_run(conv->passes[TDMI_ONEDNN_FORWARD], arrays))
            spoil(call->stream, y, y_values);
    }
}

void tdmi_onednn_conv_backward_data(const tdmi_onednn_conv *conv,
                                    const struct tdmi_onednn_conv_call *call)
{
    int64_t x_values = tdmi_shape_values(conv->desc.in),
            y_values = tdmi_shape_values(conv->desc.out);
    for (int i = 0; i < call->n; i++) {
        float *dx = call->dx + i * x_values;
        const void *arrays[] = {call->dy + i * y_values, call->packed, dx, call->workspace};
        if (!tdmi_onednn_primitive_run(conv->passes[TDMI_ONEDNN_BACKWARD_DATA], arrays))
            spoil(call->stream, dx, x_values);
    }
}

static void run_weights_pass(const tdmi_onednn_conv *conv, tdmi_stream *stream,
                             const struct weights_pass *pass, const float *x, const float *dy,
                             float *dw, float *db, char *workspace)
{
    char *scratch = workspace + pass->packed_bytes;
    void *written = pass->unpack ? (void *)workspace : dw;
    const void *arrays[] = {x, dy, written, scratch, db};
    bool is_done = tdmi_onednn_primitive_run(pass->run, arrays);
    if (is_done && pass->unpack) {
        const void *unpacking[] = {workspace, dw, scratch, NULL};
        is_done = tdmi_onednn_primitive_run(pass->unpack, unpacking);
    }
    if (!is_done) {
        spoil(stream, dw, (int64_t)weights_values(conv));
        spoil(stream, db, conv->desc.out.c);
    }
}

static void add(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

void tdmi_onednn_conv_backward_weights(const tdmi_onednn_conv *conv,
                                       const struct tdmi_onednn_conv_call *call)
{
    const struct tdmi_onednn_conv_desc *desc = &conv->desc;
    if (conv->shard.run && call->n == desc->max_images) {
        run_weights_pass(conv, call->stream, &conv->shard, call->x, call->dy, call->dw, call->db,
                         call->workspace);
        return;
    }
    size_t n_weights = weights_values(conv), n_bias = (size_t)desc->out.c;
    char *workspace = call->workspace;
    run_weights_pass(conv, call->stream, &conv->one, call->x, call->dy, call->dw, call->db,
                     workspace);
    float *dw = (float *)(workspace + weights_pass_bytes(&conv->one));
    float *db = call->db ? dw + aligned(n_weights * sizeof(float)) / sizeof(float) : NULL;
    for (int i = 1; i < call->n; i++) {
        run_weights_pass(conv, call->stream, &conv->one, call->x + i * tdmi_shape_values(desc->in),
                         call->dy + i * tdmi_shape_values(desc->out), dw, db, workspace);
        add(call->dw, dw, n_weights);
        if (db)
            add(call->db, db, n_bias);
    }
}
