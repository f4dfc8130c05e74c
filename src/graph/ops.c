/*
 * The ops of backend/ops.def: one table, and before it their shape rules, parameters and costs.
 * Error sentences start after "node 'x': op y does not fit: ".
 */
#include "graph/op.h"

/* Begin the definition of an op's function: SHAPE(name) { … } is an op->shape, and so on. Many need
 * only some of the parameters. */
#define UNUSED __attribute__((unused))
#define SHAPE(name)                                                                    \
    static tdm_status name(const struct tdmi_op_attrs *attrs UNUSED,                   \
                           const struct tdmi_shape *in UNUSED, struct tdmi_shape *out, \
                           tdm_error *err UNUSED)
#define TENSORS(name)                                                                      \
    static int name(const struct tdmi_op_attrs *attrs UNUSED, const struct tdmi_shape *in, \
                    struct tdmi_tensor_spec *specs)
#define FLOPS(name)                                                                           \
    static double name(const struct tdmi_op_attrs *attrs UNUSED, struct tdmi_shape in UNUSED, \
                       struct tdmi_shape out UNUSED)

/* Two operations a value. */
FLOPS(elementwise_flops)
{
    return 2.0 * (double)tdmi_shape_values(out);
}

FLOPS(one_flop)
{
    return (double)tdmi_shape_values(out);
}

static struct tdmi_tensor_spec vector_of(const char *name, int n, enum tdmi_init init)
{
    return (struct tdmi_tensor_spec){.name = name, .dims = {n}, .n_dims = 1, .init = init};
}

SHAPE(input_shape)
{
    const struct tdmi_preprocess *p = &attrs->preprocess;
    if (p->width < 1 || p->height < 1 || (p->channels != 1 && p->channels != 3))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "an input of %d×%d pixels and %d channels; at least 1×1 and 1 or 3 "
                        "channels are accepted",
                        p->width, p->height, p->channels);
    *out = (struct tdmi_shape){p->height, p->width, p->channels};
    return TDM_OK;
}

/* ---- windows: only whole ones count -----------------------------------------------------------
 */

static int grid(int size, int pads, int reach, int stride)
{
    int padded = size + pads;
    return padded < reach ? 0 : (padded - reach) / stride + 1;
}

/* out gets height and width of the windows' grid and the input's channels. */
static tdm_status window_shape(const struct tdmi_op_attrs *attrs, int dilation,
                               struct tdmi_shape in, struct tdmi_shape *out, tdm_error *err)
{
    if (attrs->kernel < 1 || attrs->kernel > 15 || attrs->stride < 1 || attrs->stride > 15 ||
        dilation < 1 || dilation > 15)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "window of %d pixels with stride %d and dilation %d; 1 to 15 of each are "
                        "accepted",
                        attrs->kernel, attrs->stride, dilation);
    const int reach = dilation * (attrs->kernel - 1) + 1;
    const int pads[] = {attrs->pad_top, attrs->pad_bottom, attrs->pad_left, attrs->pad_right};
    for (int i = 0; i < 4; i++)
        if (pads[i] < 0 || pads[i] >= reach)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "padding %d above, %d below, %d left and %d right of a window of %d; 0 "
                            "to %d are accepted",
                            pads[0], pads[1], pads[2], pads[3], reach, reach - 1);
    *out = (struct tdmi_shape){grid(in.h, pads[0] + pads[1], reach, attrs->stride),
                               grid(in.w, pads[2] + pads[3], reach, attrs->stride), in.c};
    if (out->h < 1 || out->w < 1)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "an image of %d×%d with padding %d + %d and %d + %d has no room for a "
                        "window of %d; choose a larger --size",
                        in.w, in.h, pads[2], pads[3], pads[0], pads[1], reach);
    return TDM_OK;
}

SHAPE(pool_shape)
{
    return window_shape(attrs, 1, in[0], out, err);
}

FLOPS(pool_flops)
{
    return (double)attrs->kernel * attrs->kernel * (double)tdmi_shape_values(out);
}

SHAPE(global_pool_shape)
{
    *out = (struct tdmi_shape){1, 1, in[0].c};
    return TDM_OK;
}

FLOPS(global_pool_flops)
{
    return (double)tdmi_shape_values(in);
}

/* Convolution with square windows, explicit padding, dilation and groups: the channels in and out
 * are cut into equally many runs, and each run of outputs reads one run of inputs. As many groups
 * as input channels: depthwise. */
SHAPE(conv_shape)
{
    if (attrs->channels < 1)
        return TDM_FAIL(err, TDM_E_INPUT, "%d output channels; at least 1 is required",
                        attrs->channels);
    if (attrs->groups < 1 || in[0].c % attrs->groups != 0 || attrs->channels % attrs->groups != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%d groups of %d input and %d output channels; at least 1, and a divisor "
                        "of both, is accepted",
                        attrs->groups, in[0].c, attrs->channels);
    TDM_TRY(window_shape(attrs, attrs->dilation, in[0], out, err), err, "a convolution");
    out->c = attrs->channels;
    return TDM_OK;
}

TENSORS(conv_params)
{
    int depth = in[0].c / attrs->groups;
    specs[0] = (struct tdmi_tensor_spec){
        .name = "weight",
        .dims = {attrs->kernel, attrs->kernel, depth, attrs->channels},
        .n_dims = 4,
        .init = TDMI_INIT_HE,
        .fan_in = (int64_t)attrs->kernel * attrs->kernel * depth,
        .has_decay = true,
    };
    specs[1] = vector_of("bias", attrs->channels, TDMI_INIT_ZERO);
    return attrs->has_bias ? 2 : 1;
}

FLOPS(conv_flops)
{
    return 2.0 * attrs->kernel * attrs->kernel * (in.c / attrs->groups) *
           (double)tdmi_shape_values(out);
}

/* ---- other ops ---------------------------------------------------------------------------------
 */

SHAPE(batch_norm_shape)
{
    if (!(attrs->epsilon > 0.0) || !(attrs->momentum >= 0.0 && attrs->momentum <= 1.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "batch norm with epsilon %g and momentum %g; more than 0, and 0 to 1, are "
                        "accepted",
                        attrs->epsilon, attrs->momentum);
    *out = in[0];
    return TDM_OK;
}

TENSORS(batch_norm_params)
{
    specs[0] = vector_of("weight", in[0].c, TDMI_INIT_ONE);
    specs[1] = vector_of("bias", in[0].c, TDMI_INIT_ZERO);
    return 2;
}

TENSORS(batch_norm_states)
{
    specs[0] = vector_of("running_mean", in[0].c, TDMI_INIT_ZERO);
    specs[1] = vector_of("running_var", in[0].c, TDMI_INIT_ONE);
    return 2;
}

SHAPE(add_shape)
{
    if (!tdmi_shape_equal(in[0], in[1]))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "adds %d×%d×%d and %d×%d×%d; two tensors of one shape are required",
                        in[0].h, in[0].w, in[0].c, in[1].h, in[1].w, in[1].c);
    *out = in[0];
    return TDM_OK;
}

/* The channels of the first, then those of the second. */
SHAPE(concat_shape)
{
    if (in[0].h != in[1].h || in[0].w != in[1].w || in[0].c > INT32_MAX - in[1].c)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "joins %d×%d×%d and %d×%d×%d; two tensors of one height and width are "
                        "required",
                        in[0].h, in[0].w, in[0].c, in[1].h, in[1].w, in[1].c);
    *out = (struct tdmi_shape){in[0].h, in[0].w, in[0].c + in[1].c};
    return TDM_OK;
}

/* Zeros around the image, and channels of zeros. */
SHAPE(pad_shape)
{
    enum { most = 4096 };
    const int pads[] = {attrs->pad_top,   attrs->pad_bottom, attrs->pad_left,
                        attrs->pad_right, attrs->pad_front,  attrs->pad_back};
    for (int i = 0; i < 6; i++)
        if (pads[i] < 0 || pads[i] > most)
            return TDM_FAIL(err, TDM_E_INPUT, "padding by %d; 0 to %d are accepted", pads[i], most);
    if (in[0].h > INT32_MAX - 2 * most || in[0].w > INT32_MAX - 2 * most ||
        in[0].c > INT32_MAX - 2 * most)
        return TDM_FAIL(err, TDM_E_INPUT, "padding an image of %d×%d with %d channels: too large",
                        in[0].w, in[0].h, in[0].c);
    *out = (struct tdmi_shape){in[0].h + pads[0] + pads[1], in[0].w + pads[2] + pads[3],
                               in[0].c + pads[4] + pads[5]};
    return TDM_OK;
}

/* Local response normalisation across channels (AlexNet, 2012): every value is divided by
 * (offset + alpha / kernel · Σ x²)^beta, the sum over the `kernel` channels around its own. PyTorch
 * and Caffe divide alpha so; the paper and TensorFlow do not, and their alpha is ours / kernel. */
SHAPE(lrn_shape)
{
    if (attrs->kernel < 1 || attrs->kernel > 255)
        return TDM_FAIL(err, TDM_E_INPUT, "normalising over %d channels; 1 to 255 are accepted",
                        attrs->kernel);
    if (!(attrs->alpha >= 0.0) || !(attrs->beta >= 0.0) || !(attrs->offset > 0.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "normalising with alpha %g, beta %g and offset %g; at least 0, at least 0, "
                        "and more than 0 are accepted",
                        attrs->alpha, attrs->beta, attrs->offset);
    *out = in[0];
    return TDM_OK;
}

FLOPS(lrn_flops)
{
    return (2.0 * attrs->kernel + 4.0) * (double)tdmi_shape_values(out);
}

/* Dropout: in training a part of the values becomes zero and the rest grows by 1 / (1 - rate), so
 * that means stay; otherwise the identity. The draws depend on (seed, epoch, sample, stream), so
 * neither threads nor restarts change them. They are drawn again in backward and never stored. */
SHAPE(dropout_shape)
{
    if (!(attrs->rate >= 0.0 && attrs->rate < 1.0))
        return TDM_FAIL(err, TDM_E_INPUT, "dropout of %g; 0 to less than 1 is accepted",
                        attrs->rate);
    if (attrs->stream < 0 || attrs->stream > 255)
        return TDM_FAIL(err, TDM_E_INPUT, "dropout with stream %d of draws; 0 to 255 are accepted",
                        attrs->stream);
    if (tdmi_shape_values(in[0]) > 1 << 26)
        return TDM_FAIL(err, TDM_E_INPUT, "dropout of %lld values; at most %d are accepted",
                        (long long)tdmi_shape_values(in[0]), 1 << 26);
    *out = in[0];
    return TDM_OK;
}

/* A dense layer over the flattened image. */
SHAPE(dense_shape)
{
    if (attrs->channels < 1)
        return TDM_FAIL(err, TDM_E_INPUT, "a dense layer of %d outputs; at least 1 is required",
                        attrs->channels);
    if (tdmi_shape_values(in[0]) > INT32_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "a dense layer over %lld inputs; at most %d are accepted",
                        (long long)tdmi_shape_values(in[0]), INT32_MAX);
    *out = (struct tdmi_shape){1, 1, attrs->channels};
    return TDM_OK;
}

TENSORS(dense_params)
{
    int64_t inputs = tdmi_shape_values(in[0]);
    specs[0] = (struct tdmi_tensor_spec){
        .name = "weight",
        .dims = {(int)inputs, attrs->channels},
        .n_dims = 2,
        .init = TDMI_INIT_HE,
        .fan_in = inputs,
        .has_decay = true,
    };
    specs[1] = vector_of("bias", attrs->channels, TDMI_INIT_ZERO);
    return attrs->has_bias ? 2 : 1;
}

FLOPS(dense_flops)
{
    return 2.0 * (double)tdmi_shape_values(in) * out.c;
}

static tdm_status loss_shape(const char *what, const struct tdmi_op_attrs *attrs,
                             struct tdmi_shape in, struct tdmi_shape *out, tdm_error *err)
{
    *out = in;
    if (tdmi_shape_pixels(in) != 1)
        return TDM_FAIL(err, TDM_E_INPUT, "%s over an image of %d×%d; it must be 1×1", what, in.w,
                        in.h);
    if (!(attrs->label_smoothing >= 0.0 && attrs->label_smoothing < 1.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s with label smoothing %g; 0 to less than 1 is accepted", what,
                        attrs->label_smoothing);
    return TDM_OK;
}

SHAPE(softmax_shape)
{
    return TDM_WRAP(err, loss_shape("softmax", attrs, in[0], out, err), "probabilities");
}

/* Probabilities of classes that are each asked yes or no, and in training the binary cross-entropy
 * with the labels. One logit decides between two classes (a positive one speaks for the second);
 * more logits are one class each, against all others. */
SHAPE(logistic_shape)
{
    TDM_TRY(loss_shape("a logistic loss", attrs, in[0], out, err), err, "probabilities");
    out->c = in[0].c == 1 ? 2 : in[0].c;
    return TDM_OK;
}

/* ---- the table --------------------------------------------------------------------------------
 */

static const struct tdmi_op ops[TDMI_OP_KINDS] = {
    [TDMI_OP_INPUT] = {.attrs = {"preprocess"}, .shape = input_shape, .flops = elementwise_flops},
    [TDMI_OP_CONV] = {.attrs = {"channels", "kernel", "stride", "dilation", "groups", "pad_top",
                                "pad_bottom", "pad_left", "pad_right", "has_bias"},
                      .shape = conv_shape,
                      .params = conv_params,
                      .flops = conv_flops,
                      .backward_reads_x = true},
    [TDMI_OP_BATCH_NORM] = {.attrs = {"epsilon", "momentum", "is_biased"},
                            .shape = batch_norm_shape,
                            .params = batch_norm_params,
                            .states = batch_norm_states,
                            .flops = elementwise_flops,
                            .backward_reads_x = true},
    [TDMI_OP_RELU] = {.flops = elementwise_flops, .backward_reads_y = true, .act = TDMI_ACT_RELU},
    [TDMI_OP_RELU6] = {.flops = elementwise_flops, .backward_reads_y = true, .act = TDMI_ACT_RELU6},
    [TDMI_OP_HSWISH] = {.flops = elementwise_flops,
                        .backward_reads_x = true,
                        .act = TDMI_ACT_HSWISH},
    [TDMI_OP_SIGMOID] = {.flops = elementwise_flops,
                         .backward_reads_y = true,
                         .act = TDMI_ACT_SIGMOID},
    [TDMI_OP_ADD] = {.shape = add_shape, .flops = one_flop},
    [TDMI_OP_CONCAT] = {.shape = concat_shape},
    [TDMI_OP_MAX_POOL] = {.attrs = {"kernel", "stride", "pad_top", "pad_bottom", "pad_left",
                                    "pad_right"},
                          .shape = pool_shape,
                          .flops = pool_flops},
    [TDMI_OP_AVG_POOL] = {.attrs = {"kernel", "stride", "pad_top", "pad_bottom", "pad_left",
                                    "pad_right", "counts_padding"},
                          .shape = pool_shape,
                          .flops = pool_flops},
    [TDMI_OP_PAD] = {.attrs = {"pad_top", "pad_bottom", "pad_left", "pad_right", "pad_front",
                               "pad_back"},
                     .shape = pad_shape},
    [TDMI_OP_GLOBAL_POOL] = {.shape = global_pool_shape, .flops = global_pool_flops},
    [TDMI_OP_LRN] = {.attrs = {"kernel", "alpha", "beta", "offset"},
                     .shape = lrn_shape,
                     .flops = lrn_flops,
                     .backward_reads_x = true},
    [TDMI_OP_DROPOUT] = {.attrs = {"rate", "stream"},
                         .shape = dropout_shape,
                         .flops = elementwise_flops},
    [TDMI_OP_DENSE] = {.attrs = {"channels", "has_bias"},
                       .shape = dense_shape,
                       .params = dense_params,
                       .flops = dense_flops,
                       .backward_reads_x = true},
    [TDMI_OP_SOFTMAX] = {.attrs = {"label_smoothing"},
                         .shape = softmax_shape,
                         .flops = elementwise_flops,
                         .backward_reads_y = true,
                         .is_output = true},
    [TDMI_OP_LOGISTIC] = {.attrs = {"label_smoothing"},
                          .shape = logistic_shape,
                          .flops = elementwise_flops,
                          .backward_reads_y = true,
                          .is_output = true},
};

const struct tdmi_op *tdmi_op_of(enum tdmi_op_kind kind)
{
    return &ops[kind];
}

tdm_status tdmi_op_shape(enum tdmi_op_kind kind, const struct tdmi_op_attrs *attrs,
                         const struct tdmi_shape *in, struct tdmi_shape *out, tdm_error *err)
{
    if (ops[kind].shape)
        return ops[kind].shape(attrs, in, out, err);
    *out = in[0];
    return TDM_OK;
}

int tdmi_op_inputs(enum tdmi_op_kind kind)
{
    static const int inputs_of[TDMI_OP_KINDS] = {
#define X(name, NAME, inputs) inputs,
#include "backend/ops.def"
#undef X
    };
    return inputs_of[kind];
}
