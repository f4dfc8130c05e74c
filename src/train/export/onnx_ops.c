/*
 * Each op as ONNX nodes of operator set 17. Weights are laid out as PyTorch's, which ONNX follows.
 */
#include "train/export/onnx.h"

#include <string.h>

/* ---- the words of a model: names, nodes, attributes, constants ----------------------------- */

const char *tdmi_onnx_name(struct tdmi_onnx *onnx, const char *node, const char *what)
{
    const char *name = tdmi_arena_printf(&onnx->export->arena, "%s.%s", node, what);
    onnx->is_broken |= !name;
    return name ? name : "";
}

void tdmi_onnx_begin(struct tdmi_onnx *onnx, const char *op, const char *name,
                     const char *const *inputs, const char *output)
{
    tdmi_protobuf_begin(&onnx->out, ONNX_GRAPH_NODE);
    for (; *inputs; inputs++)
        tdmi_protobuf_string(&onnx->out, ONNX_NODE_INPUT, *inputs);
    tdmi_protobuf_string(&onnx->out, ONNX_NODE_OUTPUT, output);
    tdmi_protobuf_string(&onnx->out, ONNX_NODE_NAME, name);
    tdmi_protobuf_string(&onnx->out, ONNX_NODE_OP, op);
}

void tdmi_onnx_end(struct tdmi_onnx *onnx)
{
    tdmi_protobuf_end(&onnx->out);
}

static void attribute(struct tdmi_onnx *onnx, const char *name, int type)
{
    tdmi_protobuf_begin(&onnx->out, ONNX_NODE_ATTRIBUTE);
    tdmi_protobuf_string(&onnx->out, ONNX_ATTRIBUTE_NAME, name);
    tdmi_protobuf_integer(&onnx->out, ONNX_ATTRIBUTE_TYPE, type);
}

void tdmi_onnx_int(struct tdmi_onnx *onnx, const char *name, int64_t value)
{
    attribute(onnx, name, ONNX_IS_INT);
    tdmi_protobuf_integer(&onnx->out, ONNX_ATTRIBUTE_INT, value);
    tdmi_protobuf_end(&onnx->out);
}

static void float_attribute(struct tdmi_onnx *onnx, const char *name, double value)
{
    attribute(onnx, name, ONNX_IS_FLOAT);
    tdmi_protobuf_float(&onnx->out, ONNX_ATTRIBUTE_FLOAT, (float)value);
    tdmi_protobuf_end(&onnx->out);
}

void tdmi_onnx_ints(struct tdmi_onnx *onnx, const char *name, const int64_t *values, int n)
{
    attribute(onnx, name, ONNX_IS_INTS);
    for (int i = 0; i < n; i++)
        tdmi_protobuf_integer(&onnx->out, ONNX_ATTRIBUTE_INTS, values[i]);
    tdmi_protobuf_end(&onnx->out);
}

/* values are lent until the file is written. */
static void add_constant(struct tdmi_onnx *onnx, const char *name, int type,
                         struct tdmi_layout layout, const void *values, size_t bytes)
{
    tdmi_protobuf_begin(&onnx->out, ONNX_GRAPH_INITIALIZER);
    for (int d = 0; d < layout.rank; d++)
        tdmi_protobuf_integer(&onnx->out, ONNX_TENSOR_DIMS, layout.shape[d]);
    tdmi_protobuf_integer(&onnx->out, ONNX_TENSOR_TYPE, type);
    tdmi_protobuf_string(&onnx->out, ONNX_TENSOR_NAME, name);
    tdmi_protobuf_bytes(&onnx->out, ONNX_TENSOR_RAW, values, bytes);
    tdmi_protobuf_end(&onnx->out);
}

static const char *copied(struct tdmi_onnx *onnx, const char *name, int type,
                          struct tdmi_layout layout, const void *values, size_t bytes)
{
    void *copy = tdmi_arena_alloc(&onnx->export->arena, bytes, 1);
    onnx->is_broken |= !copy;
    if (copy) {
        memcpy(copy, values, bytes);
        add_constant(onnx, name, type, layout, copy, bytes);
    }
    return name;
}

const char *tdmi_onnx_floats(struct tdmi_onnx *onnx, const char *name, struct tdmi_layout layout,
                             const float *values)
{
    int64_t n = 1;
    for (int d = 0; d < layout.rank; d++)
        n *= layout.shape[d];
    return copied(onnx, name, ONNX_FLOAT, layout, values, sizeof *values * (size_t)n);
}

static const char *longs(struct tdmi_onnx *onnx, const char *name, const int64_t *values, int64_t n)
{
    return copied(onnx, name, ONNX_INT64, (struct tdmi_layout){1, {n}}, values,
                  sizeof *values * (size_t)n);
}

/* ---- values ------------------------------------------------------------------------------- */

static const char *as_flat(struct tdmi_onnx *onnx, int node)
{
    int maker = onnx->makers[node];
    struct tdmi_onnx_value *value = &onnx->values[maker];
    const char *name = onnx->export->graph->nodes[maker].name;
    if (value->is_flat)
        return value->name;
    if (!value->reshaped) {
        value->reshaped = maker == onnx->logits ? "logits" : tdmi_onnx_name(onnx, name, "flat");
        tdmi_onnx_begin(onnx, "Flatten", tdmi_onnx_name(onnx, name, "flatten"),
                        (const char *[]){value->name, NULL}, value->reshaped);
        tdmi_onnx_int(onnx, "axis", 1);
        tdmi_onnx_end(onnx);
    }
    return value->reshaped;
}

static const char *as_picture(struct tdmi_onnx *onnx, int node)
{
    static const int64_t axes[] = {2, 3};
    int maker = onnx->makers[node];
    struct tdmi_onnx_value *value = &onnx->values[maker];
    const char *name = onnx->export->graph->nodes[maker].name;
    if (!value->is_flat)
        return value->name;
    if (!value->reshaped) {
        const char *constant = longs(onnx, tdmi_onnx_name(onnx, name, "picture_axes"), axes, 2);
        value->reshaped = tdmi_onnx_name(onnx, name, "picture");
        tdmi_onnx_begin(onnx, "Unsqueeze", tdmi_onnx_name(onnx, name, "unsqueeze"),
                        (const char *[]){value->name, constant, NULL}, value->reshaped);
        tdmi_onnx_end(onnx);
    }
    return value->reshaped;
}

static bool is_flat(const struct tdmi_onnx *onnx, int node)
{
    return onnx->values[onnx->makers[node]].is_flat;
}

static const char *as_it_is(const struct tdmi_onnx *onnx, int node)
{
    return onnx->values[onnx->makers[node]].name;
}

/* The value of a node, from here on. */
static const char *gives(struct tdmi_onnx *onnx, int index, bool flat)
{
    struct tdmi_onnx_value *value = &onnx->values[index];
    value->is_flat = flat;
    value->name = flat && index == onnx->logits
                      ? "logits"
                      : tdmi_onnx_name(onnx, onnx->export->graph->nodes[index].name, "out");
    return value->name;
}

/* The constant of a tensor of ours; NULL when out of memory. */
static const char *weights(struct tdmi_onnx *onnx, const struct tdmi_node *node,
                           const struct tdmi_tensor *tensor, bool is_state)
{
    const float *values = tdmi_export_torch_values(onnx->export, node, tensor, is_state);
    onnx->is_broken |= !values;
    add_constant(onnx, tensor->name, ONNX_FLOAT, tdmi_layout_of_torch(node, tensor), values,
                 sizeof *values * (size_t)tensor->n);
    return tensor->name;
}

static const char *param(struct tdmi_onnx *onnx, const struct tdmi_node *node, int i)
{
    if (i >= node->n_params)
        return NULL;
    return weights(onnx, node, &onnx->export->graph->params[node->first_param + i], false);
}

static const char *state(struct tdmi_onnx *onnx, const struct tdmi_node *node, int i)
{
    return weights(onnx, node, &onnx->export->graph->states[node->first_state + i], true);
}

/* ---- ops ---------------------------------------------------------------------------------- */

static void window_of(struct tdmi_onnx *onnx, const struct tdmi_op_attrs *attrs)
{
    const int64_t kernel[] = {attrs->kernel, attrs->kernel};
    const int64_t strides[] = {attrs->stride, attrs->stride};
    const int64_t pads[] = {attrs->pad_top, attrs->pad_left, attrs->pad_bottom, attrs->pad_right};
    tdmi_onnx_ints(onnx, "kernel_shape", kernel, 2);
    tdmi_onnx_ints(onnx, "strides", strides, 2);
    tdmi_onnx_ints(onnx, "pads", pads, 4);
}

static void conv(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node)
{
    const int64_t dilations[] = {node->attrs.dilation, node->attrs.dilation};
    const char *x = as_picture(onnx, node->inputs[0]), *weight = param(onnx, node, 0);
    const char *const inputs[] = {x, weight, param(onnx, node, 1), NULL};
    tdmi_onnx_begin(onnx, word, node->name, inputs, gives(onnx, index, false));
    window_of(onnx, &node->attrs);
    tdmi_onnx_ints(onnx, "dilations", dilations, 2);
    tdmi_onnx_int(onnx, "group", node->attrs.groups);
    tdmi_onnx_end(onnx);
}

static void batch_norm(struct tdmi_onnx *onnx, const char *word, int index,
                       const struct tdmi_node *node)
{
    const char *scale = param(onnx, node, 0), *shift = param(onnx, node, 1);
    const char *mean = state(onnx, node, 0), *variance = state(onnx, node, 1);
    const char *const inputs[] = {
        as_it_is(onnx, node->inputs[0]), scale, shift, mean, variance, NULL};
    tdmi_onnx_begin(onnx, word, node->name, inputs,
                    gives(onnx, index, is_flat(onnx, node->inputs[0])));
    float_attribute(onnx, "epsilon", node->attrs.epsilon);
    tdmi_onnx_end(onnx);
}

/* A node with one input, open for attributes. */
static void begin(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node,
                  const char *input, bool flat)
{
    tdmi_onnx_begin(onnx, word, node->name, (const char *[]){input, NULL},
                    gives(onnx, index, flat));
}

/* Value by value, without attributes. */
static void simple(struct tdmi_onnx *onnx, const char *word, int index,
                   const struct tdmi_node *node)
{
    const int x = node->inputs[0];
    begin(onnx, word, index, node, as_it_is(onnx, x), is_flat(onnx, x));
    tdmi_onnx_end(onnx);
}

static void relu6(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node)
{
    static const float low = 0.0f, high = 6.0f;
    const struct tdmi_layout scalar = {0};
    const char *least =
        tdmi_onnx_floats(onnx, tdmi_onnx_name(onnx, node->name, "min"), scalar, &low);
    const char *most =
        tdmi_onnx_floats(onnx, tdmi_onnx_name(onnx, node->name, "max"), scalar, &high);
    const char *const inputs[] = {as_it_is(onnx, node->inputs[0]), least, most, NULL};
    tdmi_onnx_begin(onnx, word, node->name, inputs,
                    gives(onnx, index, is_flat(onnx, node->inputs[0])));
    tdmi_onnx_end(onnx);
}

static void join(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node)
{
    bool flat = is_flat(onnx, node->inputs[0]) || is_flat(onnx, node->inputs[1]);
    const char *first = flat ? as_flat(onnx, node->inputs[0]) : as_it_is(onnx, node->inputs[0]);
    const char *second = flat ? as_flat(onnx, node->inputs[1]) : as_it_is(onnx, node->inputs[1]);
    tdmi_onnx_begin(onnx, word, node->name, (const char *[]){first, second, NULL},
                    gives(onnx, index, flat));
    if (node->kind == TDMI_OP_CONCAT)
        tdmi_onnx_int(onnx, "axis", 1);
    tdmi_onnx_end(onnx);
}

/* ONNX, too, lets padding never win a maximum and counts it in a mean only where asked to. */
static void pool(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node)
{
    begin(onnx, word, index, node, as_picture(onnx, node->inputs[0]), false);
    if (node->kind != TDMI_OP_GLOBAL_POOL)
        window_of(onnx, &node->attrs);
    if (node->kind == TDMI_OP_AVG_POOL)
        tdmi_onnx_int(onnx, "count_include_pad", node->attrs.counts_padding);
    tdmi_onnx_end(onnx);
}

static void pad(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node)
{
    const struct tdmi_op_attrs *attrs = &node->attrs;
    const int64_t pads[] = {0, attrs->pad_front, attrs->pad_top,    attrs->pad_left,
                            0, attrs->pad_back,  attrs->pad_bottom, attrs->pad_right};
    const char *constant = longs(onnx, tdmi_onnx_name(onnx, node->name, "pads"), pads, 8);
    const char *const inputs[] = {as_picture(onnx, node->inputs[0]), constant, NULL};
    tdmi_onnx_begin(onnx, word, node->name, inputs, gives(onnx, index, false));
    tdmi_onnx_end(onnx);
}

static void lrn(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node)
{
    begin(onnx, word, index, node, as_picture(onnx, node->inputs[0]), false);
    float_attribute(onnx, "alpha", node->attrs.alpha);
    float_attribute(onnx, "beta", node->attrs.beta);
    float_attribute(onnx, "bias", node->attrs.offset);
    tdmi_onnx_int(onnx, "size", node->attrs.kernel);
    tdmi_onnx_end(onnx);
}

/* Its weights read (channel, y, x), the order in which theirs are flattened. */
static void dense(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node)
{
    const char *x = as_flat(onnx, node->inputs[0]), *weight = param(onnx, node, 0);
    const char *const inputs[] = {x, weight, param(onnx, node, 1), NULL};
    tdmi_onnx_begin(onnx, word, node->name, inputs, gives(onnx, index, true));
    tdmi_onnx_int(onnx, "transB", 1);
    tdmi_onnx_end(onnx);
}

static void softmax(struct tdmi_onnx *onnx, const char *word, int index,
                    const struct tdmi_node *node)
{
    (void)index;
    tdmi_onnx_begin(onnx, word, node->name, (const char *[]){as_flat(onnx, node->inputs[0]), NULL},
                    "probabilities");
    tdmi_onnx_int(onnx, "axis", 1);
    tdmi_onnx_end(onnx);
}

/* One logit speaks for the second of two classes, and its negative for the first. */
static void logistic(struct tdmi_onnx *onnx, const char *word, int index,
                     const struct tdmi_node *node)
{
    (void)index;
    const char *logits = as_flat(onnx, node->inputs[0]);
    if (node->in[0].c == 1) {
        const char *negative = tdmi_onnx_name(onnx, node->name, "negative");
        const char *both = tdmi_onnx_name(onnx, node->name, "both");
        tdmi_onnx_begin(onnx, "Neg", tdmi_onnx_name(onnx, node->name, "neg"),
                        (const char *[]){logits, NULL}, negative);
        tdmi_onnx_end(onnx);
        tdmi_onnx_begin(onnx, "Concat", tdmi_onnx_name(onnx, node->name, "concat"),
                        (const char *[]){negative, logits, NULL}, both);
        tdmi_onnx_int(onnx, "axis", 1);
        tdmi_onnx_end(onnx);
        logits = both;
    }
    tdmi_onnx_begin(onnx, word, node->name, (const char *[]){logits, NULL}, "probabilities");
    tdmi_onnx_end(onnx);
}

/* Their word for each op, and the function that adds it; all else is no concern of nodes. */
static const struct {
    const char *word;
    void (*add)(struct tdmi_onnx *onnx, const char *word, int index, const struct tdmi_node *node);
} ops[TDMI_OP_KINDS] = {
    [TDMI_OP_CONV] = {"Conv", conv},
    [TDMI_OP_BATCH_NORM] = {"BatchNormalization", batch_norm},
    [TDMI_OP_RELU] = {"Relu", simple},
    [TDMI_OP_RELU6] = {"Clip", relu6},
    [TDMI_OP_HSWISH] = {"HardSwish", simple},
    [TDMI_OP_SIGMOID] = {"Sigmoid", simple},
    [TDMI_OP_ADD] = {"Add", join},
    [TDMI_OP_CONCAT] = {"Concat", join},
    [TDMI_OP_MAX_POOL] = {"MaxPool", pool},
    [TDMI_OP_AVG_POOL] = {"AveragePool", pool},
    [TDMI_OP_GLOBAL_POOL] = {"GlobalAveragePool", pool},
    [TDMI_OP_PAD] = {"Pad", pad},
    [TDMI_OP_LRN] = {"LRN", lrn},
    [TDMI_OP_DENSE] = {"Gemm", dense},
    [TDMI_OP_SOFTMAX] = {"Softmax", softmax},
    [TDMI_OP_LOGISTIC] = {"Sigmoid", logistic},
};

tdm_status tdmi_onnx_node(struct tdmi_onnx *onnx, int index, tdm_error *err)
{
    const struct tdmi_node *node = &onnx->export->graph->nodes[index];
    /* In an even window the odd channel comes first here and last in ONNX. */
    if (node->kind == TDMI_OP_LRN && node->attrs.kernel % 2 == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "node '%s' normalises over %d channels, one more before than behind; ONNX "
                        "supports odd numbers only",
                        node->name, node->attrs.kernel);
    if (!ops[node->kind].add)
        return TDM_FAIL(err, TDM_E_BUG, "node '%s' is a %s, which has no words in ONNX", node->name,
                        tdmi_op_name(node->kind));
    ops[node->kind].add(onnx, ops[node->kind].word, index, node);
    return TDM_OK;
}
