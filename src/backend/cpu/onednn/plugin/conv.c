/*
 * The primitives of one convolution: made in open(), which asks oneDNN for the layout it wants the
 * weights in, and from there on only run.
 */
#include "backend/cpu/cpu.h"
#include "backend/cpu/onednn/plugin/primitive.h"
#include "base/scope.h"

#include <math.h>

/* A change of the layout of weights. */
struct reorder {
    tdmi_onednn_primitive *run; /* NULL: the layout is the same */
    size_t scratch_bytes;
};

/* The gradient of the weights over a fixed number of images, brought to our layout. */
struct weights_pass {
    tdmi_onednn_primitive *run;
    struct reorder unpack;
    size_t packed_bytes, scratch_bytes; /* scratch: of both */
};

struct tdmi_onednn_conv {
    struct tdmi_onednn_conv_desc desc;
    dnnl_engine_t engine; /* outlives what was made with it */
    tdmi_onednn_primitive *passes[TDMI_ONEDNN_PASSES];
    struct reorder packs[TDMI_ONEDNN_PASSES]; /* whose scratch lies behind the packed weights */
    size_t packed_bytes[TDMI_ONEDNN_PASSES];
    struct weights_pass full, one;
    size_t scratch_bytes; /* the most of passes */
};

/* Layouts: of one image; of max_images; of weights in our order, and in any; NULL: no bias. */
enum { X, Y, FULL_X, FULL_Y, WEIGHTS, ANY_WEIGHTS, BIAS, LAYOUTS };

/* Temporary objects of open(). */
struct maker {
    tdmi_onednn_conv *conv;
    dnnl_memory_desc_t layouts[LAYOUTS];
    dnnl_primitive_desc_t forward;           /* of one image; both gradients take it as a hint */
    dnnl_primitive_attr_t attributes, plain; /* with what follows the product; scratch alone */
    dnnl_dims_t strides, dilations, before, after;
};

static void forget(struct maker *it)
{
    for (int i = 0; i < LAYOUTS; i++)
        dnnl_memory_desc_destroy_at(&it->layouts[i]);
    dnnl_primitive_desc_destroy_at(&it->forward);
    dnnl_primitive_attr_destroy_at(&it->attributes);
    dnnl_primitive_attr_destroy_at(&it->plain);
}

/* ---- layouts and attributes --------------------------------------------------------------- */

static dnnl_status_t image_layout(dnnl_memory_desc_t *layout, int n, struct tdmi_shape shape)
{
    const dnnl_dims_t sizes = {n, shape.c, shape.h, shape.w};
    return dnnl_memory_desc_create_with_tag(layout, 4, sizes, dnnl_f32, dnnl_nhwc);
}

static dnnl_status_t channels_layout(dnnl_memory_desc_t *layout, int channels)
{
    const dnnl_dims_t sizes = {channels};
    return dnnl_memory_desc_create_with_tag(layout, 1, sizes, dnnl_f32, dnnl_a);
}

static tdm_status make_layouts(struct maker *it, tdm_error *err)
{
    const struct tdmi_onednn_conv_desc *desc = &it->conv->desc;
    const dnnl_dim_t out = desc->out.c, per_group = out / desc->groups;
    const dnnl_dim_t in = desc->in.c / desc->groups;
    /* (kernel_h, kernel_w, in / groups, out) in oneDNN's order of axes: [group,] out, in, h, w. */
    const dnnl_dims_t sizes = {desc->groups, per_group, in, desc->kernel_h, desc->kernel_w};
    const dnnl_dims_t steps = {per_group, 1, out, desc->kernel_w * in * out, in * out};
    const int skipped = desc->groups > 1 ? 0 : 1;
    dnnl_memory_desc_t *to = it->layouts;
    TDMI_ONEDNN_TRY("a layout", image_layout(&to[X], 1, desc->in));
    TDMI_ONEDNN_TRY("a layout", image_layout(&to[Y], 1, desc->out));
    TDMI_ONEDNN_TRY("a layout", image_layout(&to[FULL_X], desc->max_images, desc->in));
    TDMI_ONEDNN_TRY("a layout", image_layout(&to[FULL_Y], desc->max_images, desc->out));
    TDMI_ONEDNN_TRY("a layout",
                    dnnl_memory_desc_create_with_strides(&to[WEIGHTS], 5 - skipped, sizes + skipped,
                                                         dnnl_f32, steps + skipped));
    TDMI_ONEDNN_TRY("a layout",
                    dnnl_memory_desc_create_with_tag(&to[ANY_WEIGHTS], 5 - skipped, sizes + skipped,
                                                     dnnl_f32, dnnl_format_tag_any));
    if (desc->has_bias)
        TDMI_ONEDNN_TRY("a layout", channels_layout(&to[BIAS], desc->out.c));
    return TDM_OK;
}

/* Rows or columns that the last window reaches past the image. */
static int reach(int in, int out, int kernel, int stride, int dilation, int before)
{
    int past = (out - 1) * stride + (kernel - 1) * dilation + 1 - in - before;
    return past > 0 ? past : 0;
}

static void set_windows(struct maker *it)
{
    const struct tdmi_onednn_conv_desc *desc = &it->conv->desc;
    it->strides[0] = desc->stride_h;
    it->strides[1] = desc->stride_w;
    it->dilations[0] = desc->dilation_h - 1;
    it->dilations[1] = desc->dilation_w - 1;
    it->before[0] = desc->pad_top;
    it->before[1] = desc->pad_left;
    it->after[0] = reach(desc->in.h, desc->out.h, desc->kernel_h, desc->stride_h, desc->dilation_h,
                         desc->pad_top);
    it->after[1] = reach(desc->in.w, desc->out.w, desc->kernel_w, desc->stride_w, desc->dilation_w,
                         desc->pad_left);
}

static dnnl_status_t append_act(dnnl_post_ops_t after, enum tdmi_act act)
{
    static const struct {
        dnnl_alg_kind_t kind;
        float alpha, beta;
    } acts[] = {[TDMI_ACT_RELU] = {dnnl_eltwise_relu, 0.0f, 0.0f},
                [TDMI_ACT_RELU6] = {dnnl_eltwise_clip, 0.0f, 6.0f},
                [TDMI_ACT_HSWISH] = {dnnl_eltwise_hardswish, 1.0f / 6.0f, 0.5f},
                [TDMI_ACT_SIGMOID] = {dnnl_eltwise_logistic, 0.0f, 0.0f}};
    if (act == TDMI_ACT_NONE)
        return dnnl_success;
    return dnnl_post_ops_append_eltwise(after, acts[act].kind, acts[act].alpha, acts[act].beta);
}

static tdm_status with_own_scratch(dnnl_primitive_attr_t *attributes, tdm_error *err)
{
    TDMI_ONEDNN_TRY("attributes", dnnl_primitive_attr_create(attributes));
    TDMI_ONEDNN_TRY("attributes", dnnl_primitive_attr_set_scratchpad_mode(
                                      *attributes, dnnl_scratchpad_mode_user));
    return TDM_OK;
}

static tdm_status make_attributes(struct maker *it, tdm_error *err)
{
    TDMI_AT_END(dnnl_post_ops_destroy_at) dnnl_post_ops_t after = NULL;
    TDMI_TRY(with_own_scratch(&it->plain, err));
    TDMI_TRY(with_own_scratch(&it->attributes, err));
    TDMI_ONEDNN_TRY("attributes", dnnl_post_ops_create(&after));
    if (it->conv->desc.adds_residual)
        TDMI_ONEDNN_TRY("attributes",
                        dnnl_post_ops_append_binary(after, dnnl_binary_add, it->layouts[Y]));
    TDMI_ONEDNN_TRY("attributes", append_act(after, it->conv->desc.act));
    TDMI_ONEDNN_TRY("attributes", dnnl_primitive_attr_set_post_ops(it->attributes, after));
    return TDM_OK;
}

/* ---- making the primitives ---------------------------------------------------------------- */

/* A reorder between two layouts of weights, times one factor an output channel if is_scaled. */
static tdm_status make_reorder(const tdmi_onednn_conv *conv, const_dnnl_memory_desc_t from,
                               const_dnnl_memory_desc_t to, bool is_scaled, struct reorder *reorder,
                               tdm_error *err)
{
    static const char what[] = "a reorder of weights";
    TDMI_AT_END(dnnl_primitive_desc_destroy_at) dnnl_primitive_desc_t plan = NULL;
    TDMI_AT_END(dnnl_primitive_attr_destroy_at) dnnl_primitive_attr_t attributes = NULL;
    TDMI_AT_END(dnnl_memory_desc_destroy_at) dnnl_memory_desc_t factors = NULL;
    TDMI_TRY(with_own_scratch(&attributes, err));
    if (is_scaled) {
        const int axes = conv->desc.groups > 1 ? 1 << 0 | 1 << 1 : 1 << 0;
        TDMI_ONEDNN_TRY(what, dnnl_primitive_attr_set_scales_mask(attributes, DNNL_ARG_SRC, axes));
        TDMI_ONEDNN_TRY(what, channels_layout(&factors, conv->desc.out.c));
    }
    TDMI_ONEDNN_TRY(what, dnnl_reorder_primitive_desc_create(&plan, from, conv->engine, to,
                                                             conv->engine, attributes));
    const struct tdmi_onednn_argument arguments[] = {
        {DNNL_ARG_FROM, from},
        {DNNL_ARG_TO, to},
        {DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0)},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, factors},
    };
    reorder->scratch_bytes = tdmi_onednn_scratch_bytes(plan);
    return tdmi_onednn_primitive_open(plan, arguments, 4, &reorder->run, err);
}

/* The primitive of a pass, and the packing that its plan asks for. */
static tdm_status make_pass(struct maker *it, enum tdmi_onednn_pass pass,
                            const_dnnl_primitive_desc_t plan,
                            const struct tdmi_onednn_argument *arguments, int n, tdm_error *err)
{
    tdmi_onednn_conv *conv = it->conv;
    const_dnnl_memory_desc_t packed = dnnl_primitive_desc_query_md(plan, dnnl_query_weights_md, 0);
    const size_t scratch_bytes = tdmi_onednn_scratch_bytes(plan);
    if (scratch_bytes > conv->scratch_bytes)
        conv->scratch_bytes = scratch_bytes;
    conv->packed_bytes[pass] = dnnl_memory_desc_get_size(packed);
    TDMI_TRY(tdmi_onednn_primitive_open(plan, arguments, n, &conv->passes[pass], err));
    return make_reorder(conv, it->layouts[WEIGHTS], packed, conv->desc.scales_weights,
                        &conv->packs[pass], err);
}

static tdm_status make_forward(struct maker *it, tdm_error *err)
{
    const dnnl_memory_desc_t *of = it->layouts;
    TDMI_ONEDNN_TRY("f32 convolution",
                    dnnl_convolution_forward_primitive_desc_create(
                        &it->forward, it->conv->engine, dnnl_forward_training,
                        dnnl_convolution_direct, of[X], of[ANY_WEIGHTS], of[BIAS], of[Y],
                        it->strides, it->dilations, it->before, it->after, it->attributes));
    const_dnnl_primitive_desc_t plan = it->forward;
    const struct tdmi_onednn_argument arguments[] = {
        {DNNL_ARG_SRC, of[X]},
        {DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(plan, dnnl_query_weights_md, 0)},
        {DNNL_ARG_DST, of[Y]},
        {DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0)},
        {DNNL_ARG_BIAS, of[BIAS]},
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
         it->conv->desc.adds_residual ? of[Y] : NULL},
    };
    return make_pass(it, TDMI_ONEDNN_FORWARD, plan, arguments, 6, err);
}

static tdm_status make_backward_data(struct maker *it, tdm_error *err)
{
    const dnnl_memory_desc_t *of = it->layouts;
    TDMI_AT_END(dnnl_primitive_desc_destroy_at) dnnl_primitive_desc_t plan = NULL;
    TDMI_ONEDNN_TRY("input gradient of an f32 convolution",
                    dnnl_convolution_backward_data_primitive_desc_create(
                        &plan, it->conv->engine, dnnl_convolution_direct, of[X], of[ANY_WEIGHTS],
                        of[Y], it->strides, it->dilations, it->before, it->after, it->forward,
                        it->plain));
    const struct tdmi_onednn_argument arguments[] = {
        {DNNL_ARG_DIFF_DST, of[Y]},
        {DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(plan, dnnl_query_weights_md, 0)},
        {DNNL_ARG_DIFF_SRC, of[X]},
        {DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0)},
    };
    return make_pass(it, TDMI_ONEDNN_BACKWARD_DATA, plan, arguments, 4, err);
}

static tdm_status make_weights_pass(struct maker *it, const_dnnl_memory_desc_t x,
                                    const_dnnl_memory_desc_t y, struct weights_pass *pass,
                                    tdm_error *err)
{
    const dnnl_memory_desc_t *of = it->layouts;
    TDMI_AT_END(dnnl_primitive_desc_destroy_at) dnnl_primitive_desc_t plan = NULL;
    TDMI_ONEDNN_TRY("weights' gradient of an f32 convolution",
                    dnnl_convolution_backward_weights_primitive_desc_create(
                        &plan, it->conv->engine, dnnl_convolution_direct, x, of[ANY_WEIGHTS],
                        of[BIAS], y, it->strides, it->dilations, it->before, it->after, it->forward,
                        it->plain));
    const_dnnl_memory_desc_t chosen =
        dnnl_primitive_desc_query_md(plan, dnnl_query_diff_weights_md, 0);
    const struct tdmi_onednn_argument arguments[] = {
        {DNNL_ARG_SRC, x},
        {DNNL_ARG_DIFF_DST, y},
        {DNNL_ARG_DIFF_WEIGHTS, chosen},
        {DNNL_ARG_SCRATCHPAD, dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0)},
        {DNNL_ARG_DIFF_BIAS, of[BIAS]},
    };
    TDMI_TRY(tdmi_onednn_primitive_open(plan, arguments, 5, &pass->run, err));
    if (!dnnl_memory_desc_equal(chosen, of[WEIGHTS])) {
        pass->packed_bytes = tdmi_cpu_lines(dnnl_memory_desc_get_size(chosen));
        TDMI_TRY(make_reorder(it->conv, chosen, of[WEIGHTS], false, &pass->unpack, err));
    }
    pass->scratch_bytes = tdmi_onednn_scratch_bytes(plan);
    if (pass->unpack.scratch_bytes > pass->scratch_bytes)
        pass->scratch_bytes = pass->unpack.scratch_bytes;
    return TDM_OK;
}

static tdm_status make(struct maker *it, tdm_error *err)
{
    const struct tdmi_onednn_conv_desc *desc = &it->conv->desc;
    const dnnl_memory_desc_t *of = it->layouts;
    TDMI_ONEDNN_TRY("an engine", dnnl_engine_create(&it->conv->engine, dnnl_cpu, 0));
    TDMI_TRY(make_layouts(it, err));
    TDMI_TRY(make_attributes(it, err));
    set_windows(it);
    TDMI_TRY(make_forward(it, err));
    if (desc->wants_dx)
        TDMI_TRY(make_backward_data(it, err));
    if (desc->has_backward)
        TDMI_TRY(make_weights_pass(it, of[X], of[Y], &it->conv->one, err));
    if (desc->has_backward && desc->max_images > 1)
        TDMI_TRY(make_weights_pass(it, of[FULL_X], of[FULL_Y], &it->conv->full, err));
    return TDM_OK;
}

static void close_conv(tdmi_onednn_conv *conv)
{
    if (!conv)
        return;
    for (int i = 0; i < TDMI_ONEDNN_PASSES; i++) {
        tdmi_onednn_primitive_close(conv->passes[i]);
        tdmi_onednn_primitive_close(conv->packs[i].run);
    }
    tdmi_onednn_primitive_close(conv->full.run);
    tdmi_onednn_primitive_close(conv->full.unpack.run);
    tdmi_onednn_primitive_close(conv->one.run);
    tdmi_onednn_primitive_close(conv->one.unpack.run);
    dnnl_engine_destroy_at(&conv->engine);
    tdmi_free(conv);
}

TDMI_POINTER_RELEASE(tdmi_onednn_conv, close_conv)

static tdm_status open_conv(const struct tdmi_onednn_conv_desc *desc, tdmi_onednn_conv **conv,
                            tdm_error *err)
{
    TDMI_AT_END(close_conv_at) tdmi_onednn_conv *made = NULL;
    TDMI_AT_END(forget) struct maker maker = {0};
    *conv = NULL;
    TDMI_TRY(tdmi_onednn_need_room("a convolution", err));
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->desc = *desc;
    maker.conv = made;
    const struct tdmi_onednn_before before = tdmi_onednn_enter();
    tdm_status status = make(&maker, err);
    tdmi_onednn_leave(&before);
    TDM_TRY(status, err, "preparing a convolution");
    *conv = tdmi_take(&made);
    return TDM_OK;
}

/* ---- queries ------------------------------------------------------------------------------ */

static size_t weights_values(const tdmi_onednn_conv *conv)
{
    const struct tdmi_onednn_conv_desc *desc = &conv->desc;
    return (size_t)desc->kernel_h * (size_t)desc->kernel_w * (size_t)(desc->in.c / desc->groups) *
           (size_t)desc->out.c;
}

static size_t packed_bytes(const tdmi_onednn_conv *conv, enum tdmi_onednn_pass pass)
{
    return tdmi_cpu_lines(conv->packed_bytes[pass]) +
           tdmi_cpu_lines(conv->packs[pass].scratch_bytes);
}

static size_t weights_pass_bytes(const struct weights_pass *pass)
{
    return pass->packed_bytes + tdmi_cpu_lines(pass->scratch_bytes);
}

static size_t workspace_bytes(const tdmi_onednn_conv *conv)
{
    size_t most = tdmi_cpu_lines(conv->scratch_bytes);
    size_t full = weights_pass_bytes(&conv->full), ragged = weights_pass_bytes(&conv->one);
    if (conv->full.run) /* the gradients of one image of a ragged group, beside the sums */
        ragged += tdmi_cpu_lines(weights_values(conv) * sizeof(float)) +
                  tdmi_cpu_lines((size_t)conv->desc.out.c * sizeof(float));
    most = full > most ? full : most;
    return ragged > most ? ragged : most;
}

/* ---- running ------------------------------------------------------------------------------ */

static void spoil(float *values, int64_t n)
{
    for (int64_t i = 0; values && i < n; i++)
        values[i] = NAN;
}

static bool pack(const tdmi_onednn_conv *conv, enum tdmi_onednn_pass pass, const float *weights,
                 const float *factors, void *packed)
{
    char *scratch = (char *)packed + tdmi_cpu_lines(conv->packed_bytes[pass]);
    const void *arrays[] = {weights, packed, scratch, factors};
    const bool has_run = tdmi_onednn_primitive_run(conv->packs[pass].run, arrays);
    if (!has_run)
        spoil(packed, (int64_t)(conv->packed_bytes[pass] / sizeof(float)));
    return has_run;
}

static bool forward(const tdmi_onednn_conv *conv, const struct tdmi_onednn_conv_call *call)
{
    bool has_run = true;
    const int64_t x_values = tdmi_shape_values(conv->desc.in);
    const int64_t y_values = tdmi_shape_values(conv->desc.out);
    for (int i = 0; i < call->n; i++) {
        float *y = call->y + i * y_values;
        const float *residual = call->residual ? call->residual + i * y_values : NULL;
        const void *arrays[] = {call->x + i * x_values, call->packed, y,
                                call->workspace,        call->bias,   residual};
        if (!tdmi_onednn_primitive_run(conv->passes[TDMI_ONEDNN_FORWARD], arrays)) {
            spoil(y, y_values);
            has_run = false;
        }
    }
    return has_run;
}

static bool backward_data(const tdmi_onednn_conv *conv, const struct tdmi_onednn_conv_call *call)
{
    bool has_run = true;
    const int64_t x_values = tdmi_shape_values(conv->desc.in);
    const int64_t y_values = tdmi_shape_values(conv->desc.out);
    for (int i = 0; i < call->n; i++) {
        float *dx = call->dx + i * x_values;
        const void *arrays[] = {call->dy + i * y_values, call->packed, dx, call->workspace};
        if (!tdmi_onednn_primitive_run(conv->passes[TDMI_ONEDNN_BACKWARD_DATA], arrays)) {
            spoil(dx, x_values);
            has_run = false;
        }
    }
    return has_run;
}

/* From image `first` of the call on, to dw and db. */
static bool run_weights_pass(const tdmi_onednn_conv *conv, const struct weights_pass *pass,
                             const struct tdmi_onednn_conv_call *call, int first, float *dw,
                             float *db)
{
    char *workspace = call->workspace, *scratch = workspace + pass->packed_bytes;
    const void *written = pass->unpack.run ? (void *)workspace : dw;
    const void *arrays[] = {call->x + first * tdmi_shape_values(conv->desc.in),
                            call->dy + first * tdmi_shape_values(conv->desc.out), written, scratch,
                            db};
    const void *unpacking[] = {workspace, dw, scratch, NULL};
    if (tdmi_onednn_primitive_run(pass->run, arrays) &&
        (!pass->unpack.run || tdmi_onednn_primitive_run(pass->unpack.run, unpacking)))
        return true;
    spoil(dw, (int64_t)weights_values(conv));
    spoil(db, conv->desc.out.c);
    return false;
}

static bool backward_weights(const tdmi_onednn_conv *conv, const struct tdmi_onednn_conv_call *call)
{
    const size_t n_weights = weights_values(conv);
    if (conv->full.run && call->n == conv->desc.max_images)
        return run_weights_pass(conv, &conv->full, call, 0, call->dw, call->db);
    bool has_run = run_weights_pass(conv, &conv->one, call, 0, call->dw, call->db);
    float *dw = (float *)((char *)call->workspace + weights_pass_bytes(&conv->one));
    float *db = call->db ? dw + tdmi_cpu_lines(n_weights * sizeof(float)) / sizeof(float) : NULL;
    for (int i = 1; i < call->n; i++) {
        has_run = run_weights_pass(conv, &conv->one, call, i, dw, db) && has_run;
        tdmi_cpu_accumulate(call->dw, dw, n_weights);
        if (db)
            tdmi_cpu_accumulate(call->db, db, (size_t)conv->desc.out.c);
    }
    return has_run;
}

const struct tdmi_onednn_conv_table tdmi_onednn_convs = {
    .open = open_conv,
    .close = close_conv,
    .packed_bytes = packed_bytes,
    .workspace_bytes = workspace_bytes,
    .pack = pack,
    .forward = forward,
    .backward_data = backward_data,
    .backward_weights = backward_weights,
};
