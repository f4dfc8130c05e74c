/* Which layers a network of ours is in Keras. */
#include "weights/names.h"
#include "train/export/keras.h"

#include <string.h>

static enum tdmi_keras_class class_of(const struct tdmi_node *node);

/* ---- adding layers ------------------------------------------------------------------------ */

/* A slash would be a group in the file. */
static const char *spelled(struct tdmi_keras_network *network, const char *name)
{
    char *copy = tdmi_arena_copy(&network->export->arena, name);
    for (char *at = copy; at && *at; at++)
        *at = *at == '/' ? '.' : *at;
    network->is_broken |= !copy;
    return copy ? copy : "";
}

/* A layer of the node's class; `what` is appended to the name of a layer beside the node's own. */
static struct tdmi_keras_plan layer_of(struct tdmi_keras_network *network,
                                       const struct tdmi_node *node, enum tdmi_keras_class class,
                                       const char *what)
{
    struct tdmi_keras_plan plan = {.class = class, .attrs = node->attrs};
    char layer[TDMI_NAME_BYTES];
    const char *name = node->name;
    if (tdmi_keras_layer(network->export->model->network, node->name, layer)) {
        name = what ? tdmi_arena_printf(&network->export->arena, "%s.%s", layer, what) : layer;
        network->is_broken |= !name;
    }
    plan.name = spelled(network, name ? name : "");
    return plan;
}

/* Dense layers and the like get and give flat values: all but the layers that change it are as flat
 * as their input. */
static int add(struct tdmi_keras_network *network, struct tdmi_keras_plan layer)
{
    if (network->n_layers == network->room || network->is_broken) {
        network->is_broken = true;
        return 0;
    }
    layer.is_flat = layer.class == TDMI_KERAS_FLATTEN || layer.class == TDMI_KERAS_GLOBAL_POOL ||
                    (layer.class != TDMI_KERAS_RESHAPE && layer.n_inputs > 0 &&
                     network->layers[layer.inputs[0]].is_flat);
    network->layers[network->n_layers] = layer;
    return network->n_layers++;
}

static int add_after(struct tdmi_keras_network *network, int input, struct tdmi_keras_plan layer)
{
    layer.inputs[0] = input;
    layer.n_inputs = 1;
    return add(network, layer);
}

static int add_joining(struct tdmi_keras_network *network, int first, int second,
                       struct tdmi_keras_plan layer)
{
    layer.inputs[0] = first;
    layer.inputs[1] = second;
    layer.n_inputs = 2;
    return add(network, layer);
}

static int value(const struct tdmi_keras_network *network, const struct tdmi_node *node, int k)
{
    return network->values[node->inputs[k]];
}

static int as_flat(struct tdmi_keras_network *network, const struct tdmi_node *node, int layer)
{
    return network->layers[layer].is_flat
               ? layer
               : add_after(network, layer, layer_of(network, node, TDMI_KERAS_FLATTEN, "flatten"));
}

static int as_picture(struct tdmi_keras_network *network, const struct tdmi_node *node, int layer)
{
    if (!network->layers[layer].is_flat)
        return layer;
    struct tdmi_keras_plan reshape = layer_of(network, node, TDMI_KERAS_RESHAPE, "picture");
    reshape.in = node->in[0];
    return add_after(network, layer, reshape);
}

/* ---- padding ------------------------------------------------------------------------------ */

static bool has_pads(const struct tdmi_op_attrs *attrs)
{
    return attrs->pad_top || attrs->pad_bottom || attrs->pad_left || attrs->pad_right;
}

/* Is the padding of one axis that of Keras' "same"? */
static bool is_same_axis(int size, const struct tdmi_op_attrs *attrs, int before, int after)
{
    int dilation = attrs->dilation ? attrs->dilation : 1;
    int total = ((size + attrs->stride - 1) / attrs->stride - 1) * attrs->stride +
                dilation * (attrs->kernel - 1) + 1 - size;
    total = total > 0 ? total : 0;
    return before == total / 2 && after == total - total / 2;
}

static bool pads_same(const struct tdmi_node *node)
{
    const struct tdmi_op_attrs *attrs = &node->attrs;
    return is_same_axis(node->in[0].h, attrs, attrs->pad_top, attrs->pad_bottom) &&
           is_same_axis(node->in[0].w, attrs, attrs->pad_left, attrs->pad_right);
}

static int add_zeros(struct tdmi_keras_network *network, const struct tdmi_node *node, int x)
{
    return add_after(network, x, layer_of(network, node, TDMI_KERAS_ZERO_PADDING, "zeros"));
}

/* Zeros before a largest value are as good as none only where nothing is negative. */
static bool is_never_negative(const tdmi_graph *graph, int index)
{
    const struct tdmi_node *node = &graph->nodes[index];
    switch (node->kind) {
    case TDMI_OP_RELU:
    case TDMI_OP_RELU6:
    case TDMI_OP_SIGMOID:
        return true;
    case TDMI_OP_MAX_POOL:
    case TDMI_OP_AVG_POOL:
    case TDMI_OP_GLOBAL_POOL:
    case TDMI_OP_PAD:
    case TDMI_OP_DROPOUT:
        return is_never_negative(graph, node->inputs[0]);
    default:
        return false;
    }
}

/* ---- ops ---------------------------------------------------------------------------------- */

/* -1: Keras has no layer for this. */
static int no_layer(const struct tdmi_keras_network *network, const struct tdmi_node *node,
                    const char *what)
{
    (void)TDM_FAIL(network->err, TDM_E_INPUT, "node '%s': Keras has no layer for %s", node->name,
                   what);
    return -1;
}

static bool is_depthwise(const struct tdmi_node *node)
{
    return node->attrs.groups > 1 && node->attrs.groups == node->in[0].c;
}

/* The second half of a separable convolution whose first half is the layer before. */
static bool completes_separable(const struct tdmi_keras_network *network, int index)
{
    const tdmi_graph *graph = network->export->graph;
    const struct tdmi_node *node = &graph->nodes[index], *before = &graph->nodes[index - 1];
    char layer[TDMI_NAME_BYTES], layer_before[TDMI_NAME_BYTES];
    const char *name = network->export->model->network;
    return node->inputs[0] == index - 1 && before->kind == TDMI_OP_CONV && is_depthwise(before) &&
           !before->attrs.has_bias && node->attrs.kernel == 1 && node->attrs.stride == 1 &&
           node->attrs.groups == 1 && !has_pads(&node->attrs) &&
           tdmi_keras_layer(name, node->name, layer) &&
           tdmi_keras_layer(name, before->name, layer_before) && strcmp(layer, layer_before) == 0;
}

static int conv(struct tdmi_keras_network *network, const struct tdmi_node *node)
{
    const int index = (int)(node - network->export->graph->nodes);
    if (completes_separable(network, index)) {
        struct tdmi_keras_plan *half = &network->layers[network->values[index - 1]];
        half->class = TDMI_KERAS_SEPARABLE_CONV;
        half->nodes[1] = node;
        return network->values[index - 1];
    }
    int x = as_picture(network, node, value(network, node, 0));
    bool is_same = has_pads(&node->attrs) && pads_same(node);
    if (is_depthwise(node) && node->attrs.stride > 1 && node->attrs.dilation > 1)
        return no_layer(network, node, "a depthwise convolution with both stride and dilation");
    if (has_pads(&node->attrs) && !is_same)
        x = add_zeros(network, node, x);
    struct tdmi_keras_plan layer = layer_of(
        network, node, is_depthwise(node) ? TDMI_KERAS_DEPTHWISE_CONV : TDMI_KERAS_CONV, NULL);
    layer.nodes[0] = node;
    layer.is_same = is_same;
    return add_after(network, x, layer);
}

static int pool(struct tdmi_keras_network *network, const struct tdmi_node *node)
{
    const bool is_max = node->kind == TDMI_OP_MAX_POOL;
    int x = as_picture(network, node, value(network, node, 0));
    bool is_same = has_pads(&node->attrs) && !node->attrs.counts_padding && pads_same(node);
    if (has_pads(&node->attrs) && !is_same) {
        if (is_max && !is_never_negative(network->export->graph, node->inputs[0]))
            return no_layer(network, node, "the largest value of padded windows of this shape");
        if (!is_max && !node->attrs.counts_padding)
            return no_layer(network, node, "the mean of padded windows of this shape");
        x = add_zeros(network, node, x);
    }
    struct tdmi_keras_plan layer = layer_of(network, node, class_of(node), NULL);
    layer.is_same = is_same;
    return add_after(network, x, layer);
}

/* Channels are padded while they are transposed into the place of columns. */
static int pad(struct tdmi_keras_network *network, const struct tdmi_node *node)
{
    int x = as_picture(network, node, value(network, node, 0));
    if (has_pads(&node->attrs))
        x = add_zeros(network, node, x);
    if (node->attrs.pad_front || node->attrs.pad_back) {
        struct tdmi_keras_plan zeros = layer_of(network, node, TDMI_KERAS_ZERO_PADDING, "channels");
        zeros.attrs = (struct tdmi_op_attrs){.pad_left = node->attrs.pad_front,
                                             .pad_right = node->attrs.pad_back};
        x = add_after(network, x, layer_of(network, node, TDMI_KERAS_PERMUTE, "turn"));
        x = add_after(network, x, zeros);
        x = add_after(network, x, layer_of(network, node, TDMI_KERAS_PERMUTE, "turn_back"));
    }
    return x;
}

/* x times (x / 6 + 1/2, held between 0 and 1). */
static int hswish(struct tdmi_keras_network *network, const struct tdmi_node *node)
{
    const int x = value(network, node, 0);
    struct tdmi_keras_plan scale = layer_of(network, node, TDMI_KERAS_RESCALING, "scale");
    scale.scale = 1.0 / 6.0;
    scale.offset = 0.5;
    const int scaled = add_after(network, x, scale);
    struct tdmi_keras_plan gate = layer_of(network, node, TDMI_KERAS_RELU, "gate");
    gate.most = 1.0;
    return add_joining(network, x, add_after(network, scaled, gate),
                       layer_of(network, node, TDMI_KERAS_MULTIPLY, NULL));
}

static int join(struct tdmi_keras_network *network, const struct tdmi_node *node)
{
    int first = value(network, node, 0), second = value(network, node, 1);
    if (network->layers[first].is_flat)
        second = as_flat(network, node, second);
    else if (network->layers[second].is_flat)
        first = as_flat(network, node, first);
    return add_joining(network, first, second, layer_of(network, node, class_of(node), NULL));
}

/* One logit gives the probability of the second of two classes, its negative that of the first. */
static int output(struct tdmi_keras_network *network, const struct tdmi_node *node)
{
    int x = as_flat(network, node, value(network, node, 0));
    if (node->kind == TDMI_OP_LOGISTIC && node->in[0].c == 1) {
        struct tdmi_keras_plan first = layer_of(network, node, TDMI_KERAS_RESCALING, "first");
        first.scale = -1.0;
        x = add_joining(network, add_after(network, x, first), x,
                        layer_of(network, node, TDMI_KERAS_CONCATENATE, "both"));
    }
    struct tdmi_keras_plan layer = layer_of(network, node, TDMI_KERAS_ACTIVATION, NULL);
    layer.function = node->kind == TDMI_OP_SOFTMAX ? "softmax" : "sigmoid";
    return add_after(network, x, layer);
}

static int simple(struct tdmi_keras_network *network, const struct tdmi_node *node)
{
    int x = value(network, node, 0);
    if (node->kind == TDMI_OP_DENSE)
        x = as_flat(network, node, x);
    if (node->kind == TDMI_OP_GLOBAL_POOL)
        x = as_picture(network, node, x);
    struct tdmi_keras_plan layer = layer_of(network, node, class_of(node), NULL);
    if (node->kind == TDMI_OP_BATCH_NORM || node->kind == TDMI_OP_DENSE)
        layer.nodes[0] = node;
    layer.most = node->kind == TDMI_OP_RELU6 ? 6.0 : 0.0;
    layer.function = "sigmoid";
    return add_after(network, x, layer);
}

static int input(struct tdmi_keras_network *network, const struct tdmi_node *node)
{
    struct tdmi_keras_plan layer = layer_of(network, node, TDMI_KERAS_INPUT, NULL);
    layer.in = node->out;
    return add(network, layer);
}

/* The class of the layer that gives a node's value, and the function that adds it. */
static const struct {
    enum tdmi_keras_class class;
    int (*add)(struct tdmi_keras_network *network, const struct tdmi_node *node);
} ops[TDMI_OP_KINDS] = {
    [TDMI_OP_INPUT] = {TDMI_KERAS_INPUT, input},
    [TDMI_OP_CONV] = {TDMI_KERAS_CONV, conv},
    [TDMI_OP_BATCH_NORM] = {TDMI_KERAS_NORM, simple},
    [TDMI_OP_RELU] = {TDMI_KERAS_RELU, simple},
    [TDMI_OP_RELU6] = {TDMI_KERAS_RELU, simple},
    [TDMI_OP_HSWISH] = {TDMI_KERAS_MULTIPLY, hswish},
    [TDMI_OP_SIGMOID] = {TDMI_KERAS_ACTIVATION, simple},
    [TDMI_OP_ADD] = {TDMI_KERAS_ADD, join},
    [TDMI_OP_CONCAT] = {TDMI_KERAS_CONCATENATE, join},
    [TDMI_OP_MAX_POOL] = {TDMI_KERAS_MAX_POOL, pool},
    [TDMI_OP_AVG_POOL] = {TDMI_KERAS_AVERAGE_POOL, pool},
    [TDMI_OP_GLOBAL_POOL] = {TDMI_KERAS_GLOBAL_POOL, simple},
    [TDMI_OP_PAD] = {TDMI_KERAS_ZERO_PADDING, pad},
    [TDMI_OP_DROPOUT] = {TDMI_KERAS_DROPOUT, simple},
    [TDMI_OP_DENSE] = {TDMI_KERAS_DENSE, simple},
    [TDMI_OP_SOFTMAX] = {TDMI_KERAS_ACTIVATION, output},
    [TDMI_OP_LOGISTIC] = {TDMI_KERAS_ACTIVATION, output},
};

static enum tdmi_keras_class class_of(const struct tdmi_node *node)
{
    return ops[node->kind].class;
}

tdm_status tdmi_keras_plan_layers(struct tdmi_export *export, struct tdmi_keras_network *network,
                                  tdm_error *err)
{
    enum { most_of_a_node = 6 };
    const tdmi_graph *graph = export->graph;
    *network = (struct tdmi_keras_network){
        .export = export, .err = err, .room = most_of_a_node * graph->n_nodes};
    network->layers =
        tdmi_arena_alloc(&export->arena, (size_t)network->room, sizeof *network->layers);
    network->values =
        tdmi_arena_alloc(&export->arena, (size_t)graph->n_nodes, sizeof *network->values);
    TDMI_CHECK_MEMORY(network->layers && network->values, err);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        network->values[i] = ops[node->kind].add
                                 ? ops[node->kind].add(network, node)
                                 : no_layer(network, node, tdmi_op_name(node->kind));
        if (network->values[i] < 0)
            return TDM_WRAP(err, TDM_E_INPUT, "describing the network to Keras");
    }
    TDMI_CHECK_MEMORY(!network->is_broken, err);
    return TDM_OK;
}

/* ---- order -------------------------------------------------------------------------------- */

/* The longest way to the end, and the first visit of a walk from there that takes inputs in turn:
 * layers lie by falling depth, equals by visit. Inputs stand before their readers, so one pass from
 * the end gives depths. */
static void visit(struct tdmi_keras_network *network, int layer, int *n_visited)
{
    struct tdmi_keras_plan *it = &network->layers[layer];
    if (it->visit > 0)
        return;
    it->visit = ++*n_visited;
    for (int k = 0; k < it->n_inputs; k++)
        visit(network, it->inputs[k], n_visited);
}

static bool is_before(const struct tdmi_keras_plan *a, const struct tdmi_keras_plan *b)
{
    return a->depth > b->depth || (a->depth == b->depth && a->visit < b->visit);
}

void tdmi_keras_order(struct tdmi_keras_network *network, int *order)
{
    struct tdmi_keras_plan *layers = network->layers;
    int n_visited = 0;
    visit(network, network->n_layers - 1, &n_visited);
    for (int i = network->n_layers - 1; i >= 0; i--)
        for (int k = 0; k < layers[i].n_inputs; k++) {
            struct tdmi_keras_plan *input = &layers[layers[i].inputs[k]];
            input->depth = input->depth > layers[i].depth ? input->depth : layers[i].depth + 1;
        }
    for (int i = 0; i < network->n_layers; i++) { /* nearly in order: insertion is quick */
        int at = i;
        for (; at > 0 && is_before(&layers[i], &layers[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}
