/*
 * One function a kind of layer. Attributes are read with Keras' defaults for the keys that old
 * files lack; shapes are the graph's to check.
 */
#include "nn/weights/keras_layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct tdmi_keras_build build_t;
typedef struct tdmi_keras_layer layer_t;
typedef struct tdmi_keras_value value_t;

/* ---- attributes ------------------------------------------------------------------------------ */

static tdm_status read_count(const layer_t *layer, const char *key, int64_t most, int missing,
                             int *out, tdm_error *err)
{
    const tdm_json_value *value = tdm_json_member(layer->config, key);
    int64_t number = value && tdm_json_kind_of(value) != TDM_JSON_NULL
                         ? tdm_json_as_integer(value, -1)
                         : missing;
    if (number < 1 || number > most)
        return TDM_FAIL(err, TDM_E_INPUT, "%s is no whole number from 1 to %lld", key,
                        (long long)most);
    *out = (int)number;
    return TDM_OK;
}

/* A number, or two that must be equal: windows are square here. */
static tdm_status read_square(const layer_t *layer, const char *key, int missing, int *out,
                              tdm_error *err)
{
    const tdm_json_value *value = tdm_json_member(layer->config, key);
    if (tdm_json_kind_of(value) != TDM_JSON_ARRAY)
        return read_count(layer, key, 4096, missing, out, err);
    int64_t first = tdm_json_as_integer(tdm_json_at(value, 0), -1);
    int64_t second = tdm_json_as_integer(tdm_json_at(value, 1), -1);
    if (tdm_json_count(value) != 2 || first != second || first < 1 || first > 4096)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s is not square (%lld and %lld); two equal numbers are accepted", key,
                        (long long)first, (long long)second);
    *out = (int)first;
    return TDM_OK;
}

static bool flag(const layer_t *layer, const char *key, bool missing)
{
    return tdm_json_as_bool(tdm_json_member(layer->config, key), missing);
}

static const char *word(const layer_t *layer, const char *key, const char *missing)
{
    return tdm_json_as_string(tdm_json_member(layer->config, key), missing);
}

static tdm_status check_order(const layer_t *layer, tdm_error *err)
{
    const char *order = word(layer, "data_format", "channels_last");
    if (strcmp(order, "channels_last") != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "data_format %.40s; channels_last is accepted", order);
    return TDM_OK;
}

/* ---- names and values ------------------------------------------------------------------------ */

/* Taken are those of the input, of a new head and of the end, and those of layers of other nested
 * models; a layer whose name is, or is too long, is called by its number. */
static struct tdmi_name free_name(const build_t *build, const layer_t *layer, const char *suffix)
{
    static const char *const taken[] = {"input",   "hidden",  "hidden_relu",
                                        "dropout", "softmax", "logistic"};
    struct tdmi_name name = tdmi_name("%s%s", layer->name, suffix);
    bool is_taken = strlen(layer->name) + strlen(suffix) >= sizeof name.text;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        is_taken |= strcmp(taken[i], name.text) == 0;
    for (int i = 0; i < build->graph->n_nodes; i++)
        is_taken |= strcmp(build->graph->nodes[i].name, name.text) == 0;
    return is_taken ? tdmi_name("layer_%d%s", (int)(layer - build->config->layers), suffix) : name;
}

static const value_t *input_of(const build_t *build, const layer_t *layer)
{
    return &build->values[layer->inputs[0]];
}

static struct tdmi_shape shape_of(const build_t *build, int node)
{
    if (build->graph->mistake.code != TDM_OK || node < 0 || node >= build->graph->n_nodes)
        return (struct tdmi_shape){1, 1, 1};
    return build->graph->nodes[node].out;
}

int tdmi_keras_node(build_t *build, int layer)
{
    value_t *value = &build->values[layer];
    const int *p = value->pads;
    if (p[0] + p[1] + p[2] + p[3] == 0)
        return value->node;
    if (value->padded == 0)
        value->padded = tdmi_graph_add(
            build->graph, TDMI_OP_PAD, free_name(build, &build->config->layers[layer], "").text,
            value->node,
            (struct tdmi_op_attrs){
                .pad_top = p[0], .pad_bottom = p[1], .pad_left = p[2], .pad_right = p[3]});
    return value->padded;
}

static int input_node(build_t *build, const layer_t *layer)
{
    return tdmi_keras_node(build, layer->inputs[0]);
}

static int index_of(const build_t *build, const layer_t *layer)
{
    return (int)(layer - build->config->layers);
}

static void note_source(build_t *build, int node, const layer_t *layer, enum tdmi_keras_part part)
{
    build->sources[build->n_sources++] =
        (struct tdmi_keras_source){node, index_of(build, layer), part};
}

static tdm_status want_picture(const build_t *build, const layer_t *layer, tdm_error *err)
{
    const value_t *value = input_of(build, layer);
    if (value->is_flat && tdmi_shape_pixels(shape_of(build, value->node)) != 1)
        return TDM_FAIL(err, TDM_E_INPUT, "it reads a flattened picture; only Dense can");
    return TDM_OK;
}

/* ---- activations ----------------------------------------------------------------------------- */

/* A word, or an object that holds one. */
static const char *activation_of(const layer_t *layer)
{
    const tdm_json_value *value = tdm_json_member(layer->config, "activation");
    if (tdm_json_kind_of(value) == TDM_JSON_OBJECT)
        return tdm_json_as_string(tdm_json_member(value, "config"), "an object");
    return tdm_json_as_string(value, "linear");
}

static tdm_status activate(build_t *build, const layer_t *layer, const char *activation,
                           const char *suffix, value_t *value, tdm_error *err)
{
    static const struct {
        const char *name;
        enum tdmi_op_kind kind;
        bool is_positive;
    } known[] = {{"relu", TDMI_OP_RELU, true},
                 {"relu6", TDMI_OP_RELU6, true},
                 {"sigmoid", TDMI_OP_SIGMOID, true},
                 {"hard_swish", TDMI_OP_HSWISH, false},
                 {"hard_silu", TDMI_OP_HSWISH, false}};
    const bool is_last = layer == &build->config->layers[build->config->output];
    if (strcmp(activation, "linear") == 0)
        return TDM_OK;
    if (strcmp(activation, "softmax") == 0 || (strcmp(activation, "sigmoid") == 0 && is_last)) {
        if (!is_last)
            return TDM_FAIL(err, TDM_E_INPUT, "softmax is read at the end of a network only");
        value->end = activation[1] == 'o' ? TDMI_KERAS_SOFTMAX : TDMI_KERAS_SIGMOID;
        return TDM_OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, activation) == 0) {
            value->node =
                tdmi_graph_add(build->graph, known[i].kind, free_name(build, layer, suffix).text,
                               value->node, (struct tdmi_op_attrs){0});
            value->is_positive = known[i].is_positive;
            return TDM_OK;
        }
    return TDM_FAIL(err, TDM_E_INPUT,
                    "there is no op for the activation %.60s; linear, relu, relu6, hard_swish and "
                    "sigmoid have one, and softmax at the end",
                    activation);
}

static tdm_status add_activation(build_t *build, const layer_t *layer, value_t *value,
                                 tdm_error *err)
{
    value->node = input_node(build, layer);
    value->is_flat = input_of(build, layer)->is_flat;
    return activate(build, layer, activation_of(layer), "", value, err);
}

static bool is_number(const layer_t *layer, const char *key, double wanted)
{
    const tdm_json_value *value = tdm_json_member(layer->config, key);
    return !value || tdm_json_kind_of(value) == TDM_JSON_NULL ||
           tdm_json_as_number(value, wanted + 1.0) == wanted;
}

static tdm_status add_relu(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const tdm_json_value *most = tdm_json_member(layer->config, "max_value");
    const bool has_most = most && tdm_json_kind_of(most) != TDM_JSON_NULL;
    if (!is_number(layer, "max_value", 6.0) || !is_number(layer, "negative_slope", 0.0) ||
        !is_number(layer, "threshold", 0.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is no op for it; max_value none or 6, negative_slope 0 and "
                        "threshold 0 have one");
    value->node = input_node(build, layer);
    value->is_flat = input_of(build, layer)->is_flat;
    return activate(build, layer, has_most ? "relu6" : "relu", "", value, err);
}

static tdm_status add_softmax(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    value->node = input_node(build, layer);
    value->is_flat = input_of(build, layer)->is_flat;
    return activate(build, layer, "softmax", "", value, err);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* TensorFlow's: ceil(size / stride) windows. */
static void same_pads(int size, int reach, int stride, int *before, int *after)
{
    int total = ((size + stride - 1) / stride - 1) * stride + reach - size;
    total = total > 0 ? total : 0;
    *before = total / 2;
    *after = total - total / 2;
}

/* Kernel, stride and pads; the node to read. A ZeroPadding2D before it is taken over where its
 * zeros do what they would do here: can_pad. */
static tdm_status read_window(build_t *build, const layer_t *layer, struct tdmi_op_attrs *attrs,
                              bool can_pad, int *node, tdm_error *err)
{
    const value_t *from = input_of(build, layer);
    const char *padding = word(layer, "padding", "valid");
    const int reach = (attrs->dilation > 1 ? attrs->dilation : 1) * (attrs->kernel - 1) + 1;
    const int *p = from->pads;
    TDM_TRY(want_picture(build, layer, err), err, "its input");
    TDM_TRY(check_order(layer, err), err, "its input");
    if (strcmp(padding, "valid") == 0) {
        bool takes = can_pad && p[0] < reach && p[1] < reach && p[2] < reach && p[3] < reach;
        if (takes) {
            attrs->pad_top = p[0];
            attrs->pad_bottom = p[1];
            attrs->pad_left = p[2];
            attrs->pad_right = p[3];
        }
        *node = takes ? from->node : input_node(build, layer);
        return TDM_OK;
    }
    if (strcmp(padding, "same") != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "padding %.40s; valid and same are accepted", padding);
    *node = input_node(build, layer);
    struct tdmi_shape in = shape_of(build, *node);
    same_pads(in.h, reach, attrs->stride, &attrs->pad_top, &attrs->pad_bottom);
    same_pads(in.w, reach, attrs->stride, &attrs->pad_left, &attrs->pad_right);
    return TDM_OK;
}

/* What convolutions have in common. */
static tdm_status read_conv(build_t *build, const layer_t *layer, struct tdmi_op_attrs *attrs,
                            int *node, tdm_error *err)
{
    TDM_TRY(read_square(layer, "kernel_size", -1, &attrs->kernel, err), err, "its window");
    TDM_TRY(read_square(layer, "strides", 1, &attrs->stride, err), err, "its window");
    TDM_TRY(read_square(layer, "dilation_rate", 1, &attrs->dilation, err), err, "its window");
    attrs->has_bias = flag(layer, "use_bias", true);
    return read_window(build, layer, attrs, true, node, err);
}

static tdm_status add_conv(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    struct tdmi_op_attrs attrs = {0};
    int from;
    TDM_TRY(read_count(layer, "filters", 1 << 20, -1, &attrs.channels, err), err, "its outputs");
    TDM_TRY(read_count(layer, "groups", 1 << 20, 1, &attrs.groups, err), err, "its groups");
    TDM_TRY(read_conv(build, layer, &attrs, &from, err), err, "a convolution");
    value->node =
        tdmi_graph_add(build->graph, TDMI_OP_CONV, free_name(build, layer, "").text, from, attrs);
    note_source(build, value->node, layer, TDMI_KERAS_WHOLE);
    return activate(build, layer, activation_of(layer), ".act", value, err);
}

static tdm_status read_depthwise(build_t *build, const layer_t *layer, struct tdmi_op_attrs *attrs,
                                 int *node, tdm_error *err)
{
    int multiplier = 1;
    TDM_TRY(read_count(layer, "depth_multiplier", 1024, 1, &multiplier, err), err, "its outputs");
    TDM_TRY(read_conv(build, layer, attrs, node, err), err, "a convolution");
    attrs->groups = shape_of(build, *node).c;
    if (attrs->groups > (1 << 20))
        return TDM_FAIL(err, TDM_E_INPUT, "%d channels are too many", attrs->groups);
    attrs->channels = attrs->groups * multiplier;
    return TDM_OK;
}

static tdm_status add_depthwise(build_t *build, const layer_t *layer, value_t *value,
                                tdm_error *err)
{
    struct tdmi_op_attrs attrs = {0};
    int from;
    TDM_TRY(read_depthwise(build, layer, &attrs, &from, err), err, "a depthwise convolution");
    value->node =
        tdmi_graph_add(build->graph, TDMI_OP_CONV, free_name(build, layer, "").text, from, attrs);
    note_source(build, value->node, layer, TDMI_KERAS_FIRST_HALF);
    return activate(build, layer, activation_of(layer), ".act", value, err);
}

static tdm_status add_separable(build_t *build, const layer_t *layer, value_t *value,
                                tdm_error *err)
{
    struct tdmi_op_attrs attrs = {0};
    struct tdmi_op_attrs point = {.kernel = 1, .stride = 1, .dilation = 1, .groups = 1};
    int from;
    TDM_TRY(read_count(layer, "filters", 1 << 20, -1, &point.channels, err), err, "its outputs");
    TDM_TRY(read_depthwise(build, layer, &attrs, &from, err), err, "a separable convolution");
    point.has_bias = attrs.has_bias;
    attrs.has_bias = false;
    from = tdmi_graph_add(build->graph, TDMI_OP_CONV, free_name(build, layer, ".depthwise").text,
                          from, attrs);
    note_source(build, from, layer, TDMI_KERAS_FIRST_HALF);
    value->node = tdmi_graph_add(build->graph, TDMI_OP_CONV,
                                 free_name(build, layer, ".pointwise").text, from, point);
    note_source(build, value->node, layer, TDMI_KERAS_SECOND_HALF);
    return activate(build, layer, activation_of(layer), ".act", value, err);
}

static tdm_status add_pool(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    struct tdmi_op_attrs attrs = {0};
    const bool is_max = strcmp(layer->class, "MaxPooling2D") == 0;
    int from;
    TDM_TRY(read_square(layer, "pool_size", 2, &attrs.kernel, err), err, "its window");
    TDM_TRY(read_square(layer, "strides", attrs.kernel, &attrs.stride, err), err, "its window");
    TDM_TRY(read_window(build, layer, &attrs, is_max && input_of(build, layer)->is_positive, &from,
                        err),
            err, "its window");
    value->node = tdmi_graph_add(build->graph, is_max ? TDMI_OP_MAX_POOL : TDMI_OP_AVG_POOL,
                                 free_name(build, layer, "").text, from, attrs);
    value->is_positive = input_of(build, layer)->is_positive;
    return TDM_OK;
}

static tdm_status add_zero_padding(build_t *build, const layer_t *layer, value_t *value,
                                   tdm_error *err)
{
    const tdm_json_value *padding = tdm_json_member(layer->config, "padding");
    TDM_TRY(want_picture(build, layer, err), err, "its input");
    TDM_TRY(check_order(layer, err), err, "its input");
    *value = (value_t){.node = input_node(build, layer),
                       .is_positive = input_of(build, layer)->is_positive};
    for (size_t i = 0; i < 4; i++) { /* 1, (1, 1) or ((1, 1), (1, 1)) */
        const tdm_json_value *side = padding;
        if (tdm_json_kind_of(side) == TDM_JSON_ARRAY)
            side = tdm_json_at(side, i / 2);
        if (tdm_json_kind_of(side) == TDM_JSON_ARRAY)
            side = tdm_json_at(side, i % 2);
        int64_t zeros = tdm_json_as_integer(side, -1);
        if (zeros < 0 || zeros > 4096)
            return TDM_FAIL(err, TDM_E_INPUT, "its padding is no whole number from 0 to 4096");
        value->pads[i] = (int)zeros;
    }
    return TDM_OK;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static tdm_status add_norm(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const tdm_json_value *axis = tdm_json_member(layer->config, "axis");
    if (tdm_json_kind_of(axis) == TDM_JSON_ARRAY && tdm_json_count(axis) == 1)
        axis = tdm_json_at(axis, 0);
    int64_t last = input_of(build, layer)->is_flat ? 1 : 3;
    int64_t number = axis ? tdm_json_as_integer(axis, 0) : -1;
    TDM_TRY(want_picture(build, layer, err), err, "its input");
    if (number != -1 && number != last)
        return TDM_FAIL(err, TDM_E_INPUT, "it norms another axis than the channels");
    value->node = tdmi_graph_add(
        build->graph, TDMI_OP_BATCH_NORM, free_name(build, layer, "").text,
        input_node(build, layer),
        (struct tdmi_op_attrs){
            .epsilon = tdm_json_as_number(tdm_json_member(layer->config, "epsilon"), 1e-3),
            .momentum = 1.0 - tdm_json_as_number(tdm_json_member(layer->config, "momentum"), 0.99),
            .is_biased = true});
    value->is_flat = input_of(build, layer)->is_flat;
    note_source(build, value->node, layer, TDMI_KERAS_WHOLE);
    return TDM_OK;
}

static tdm_status add_dense(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const int from = input_node(build, layer);
    int units = 0;
    TDM_TRY(read_count(layer, "units", 1 << 24, -1, &units, err), err, "its outputs");
    if (!input_of(build, layer)->is_flat && tdmi_shape_pixels(shape_of(build, from)) != 1)
        return TDM_FAIL(err, TDM_E_INPUT, "it reads a picture that is not flattened");
    value->node = tdmi_graph_add(
        build->graph, TDMI_OP_DENSE, free_name(build, layer, "").text, from,
        (struct tdmi_op_attrs){.channels = units, .has_bias = flag(layer, "use_bias", true)});
    value->is_flat = true;
    note_source(build, value->node, layer, TDMI_KERAS_WHOLE);
    return activate(build, layer, activation_of(layer), ".act", value, err);
}

static tdm_status add_global_pool(build_t *build, const layer_t *layer, value_t *value,
                                  tdm_error *err)
{
    TDM_TRY(want_picture(build, layer, err), err, "its input");
    TDM_TRY(check_order(layer, err), err, "its input");
    value->node =
        tdmi_graph_add(build->graph, TDMI_OP_GLOBAL_POOL, free_name(build, layer, "").text,
                       input_node(build, layer), (struct tdmi_op_attrs){0});
    value->is_flat = !flag(layer, "keepdims", false);
    return TDM_OK;
}

static tdm_status add_dropout(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const double rate = tdm_json_as_number(tdm_json_member(layer->config, "rate"), -1.0);
    if (!(rate >= 0.0 && rate < 1.0))
        return TDM_FAIL(err, TDM_E_INPUT, "its rate is no number from 0 to less than 1");
    value->node = input_node(build, layer);
    value->is_flat = input_of(build, layer)->is_flat;
    value->is_positive = input_of(build, layer)->is_positive;
    if (rate == 0.0)
        return TDM_OK;
    if (++build->n_dropouts > 255) /* 0 is the stream of a new head's */
        return TDM_FAIL(err, TDM_E_INPUT, "more than 255 layers of dropout");
    value->node = tdmi_add_dropout(build->graph, free_name(build, layer, "").text, value->node,
                                   rate, build->n_dropouts);
    return TDM_OK;
}

/* Two or more, one after the other. */
static tdm_status add_join(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const bool is_sum = strcmp(layer->class, "Add") == 0;
    const enum tdmi_op_kind kind = is_sum ? TDMI_OP_ADD : TDMI_OP_CONCAT;
    int64_t axis = tdm_json_as_integer(tdm_json_member(layer->config, "axis"), -1);
    if (layer->n_inputs < 2)
        return TDM_FAIL(err, TDM_E_INPUT, "it joins one tensor; two or more are accepted");
    value->node = input_node(build, layer);
    value->is_flat = input_of(build, layer)->is_flat;
    for (int i = 0; i < layer->n_inputs; i++) {
        const value_t *other = &build->values[layer->inputs[i]];
        bool is_picture = other->is_flat && tdmi_shape_pixels(shape_of(build, other->node)) != 1;
        if (other->is_flat != value->is_flat || is_picture)
            return TDM_FAIL(err, TDM_E_INPUT, "it joins flattened pictures");
    }
    if (!is_sum && axis != -1 && axis != (value->is_flat ? 1 : 3))
        return TDM_FAIL(err, TDM_E_INPUT, "it joins along another axis than the channels");
    for (int i = 1; i < layer->n_inputs; i++)
        value->node = tdmi_graph_join(
            build->graph, kind,
            i + 1 < layer->n_inputs ? tdmi_name("layer_%d.part_%d", index_of(build, layer), i).text
                                    : free_name(build, layer, "").text,
            value->node, tdmi_keras_node(build, layer->inputs[i]), (struct tdmi_op_attrs){0});
    return TDM_OK;
}

static tdm_status pass_on(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    (void)err;
    *value = *input_of(build, layer);
    return TDM_OK;
}

static tdm_status flatten(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    TDM_TRY(check_order(layer, err), err, "its input");
    *value = (value_t){.node = input_node(build, layer), .is_flat = true};
    return TDM_OK;
}

/* Between a row of numbers and a picture of one pixel, or flattening. */
static tdm_status reshape(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const tdm_json_value *target = tdm_json_member(layer->config, "target_shape");
    const int node = input_node(build, layer);
    const struct tdmi_shape in = shape_of(build, node);
    const int64_t dims[] = {in.h, in.w, in.c};
    const size_t n = tdm_json_count(target);
    bool fits = n == 1 || n == 3;
    for (size_t i = 0; i < n && fits; i++) {
        int64_t side = tdm_json_as_integer(tdm_json_at(target, i), -2);
        fits = side == (n == 1 ? tdmi_shape_values(in) : dims[i]) || side == -1;
    }
    if (!fits)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is no op for it; flattening and (1, 1, channels) "
                        "need none");
    *value = (value_t){.node = node, .is_flat = n == 1};
    return TDM_OK;
}

/* Felt by training alone. */
static tdm_status leave_out(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    build->left_out = layer->class;
    return pass_on(build, layer, value, err);
}

static tdm_status pass_scale(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    if (layer->inputs[0] != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it scales what is no picture; right behind the input it "
                        "is read");
    return pass_on(build, layer, value, err);
}

tdm_status tdmi_keras_rescaling(const layer_t *layer, enum tdmi_scale *scale, tdm_error *err)
{
    static const struct {
        double scale, offset;
        enum tdmi_scale is;
    } known[] = {{1.0 / 127.5, -1.0, TDMI_SCALE_TF},
                 {1.0 / 255.0, 0.0, TDMI_SCALE_UNIT},
                 {1.0, 0.0, TDMI_SCALE_RAW}};
    const double by = tdm_json_as_number(tdm_json_member(layer->config, "scale"), NAN);
    const double offset = tdm_json_as_number(tdm_json_member(layer->config, "offset"), 0.0);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (fabs(by - known[i].scale) < 1e-6 * known[i].scale && offset == known[i].offset) {
            *scale = known[i].is;
            return TDM_OK;
        }
    return TDM_FAIL(err, TDM_E_INPUT,
                    "layer '%s' rescales by %g and %g; x/127.5-1, x/255 and x are accepted",
                    layer->name, by, offset);
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct kind {
    const char *class;
    tdm_status (*add)(build_t *build, const layer_t *layer, value_t *value, tdm_error *err);
    bool is_passive;
} kinds[] = {
    {"Conv2D", add_conv, false},
    {"DepthwiseConv2D", add_depthwise, false},
    {"SeparableConv2D", add_separable, false},
    {"BatchNormalization", add_norm, false},
    {"Dense", add_dense, false},
    {"Activation", add_activation, true},
    {"ReLU", add_relu, true},
    {"Softmax", add_softmax, true},
    {"ZeroPadding2D", add_zero_padding, true},
    {"MaxPooling2D", add_pool, true},
    {"AveragePooling2D", add_pool, true},
    {"GlobalAveragePooling2D", add_global_pool, true},
    {"Flatten", flatten, true},
    {"Reshape", reshape, true},
    {"Dropout", add_dropout, true},
    {"Add", add_join, true},
    {"Concatenate", add_join, true},
    {"Rescaling", pass_scale, true},
    {"SpatialDropout2D", leave_out, true},
    {"GaussianNoise", leave_out, true},
    {"GaussianDropout", leave_out, true},
    {"RandomFlip", leave_out, true},
    {"RandomRotation", leave_out, true},
    {"RandomZoom", leave_out, true},
    {"RandomTranslation", leave_out, true},
    {"RandomContrast", leave_out, true},
    {"RandomBrightness", leave_out, true},
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static const struct kind *kind_of(const layer_t *layer)
{
    for (int i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i].class, layer->class) == 0)
            return &kinds[i];
    return NULL;
}

bool tdmi_keras_is_passive(const layer_t *layer)
{
    const struct kind *kind = kind_of(layer);
    return kind && kind->is_passive;
}

tdm_status tdmi_keras_add_layer(build_t *build, int index, tdm_error *err)
{
    const layer_t *layer = &build->config->layers[index];
    const struct kind *kind = kind_of(layer);
    value_t *value = &build->values[index];
    *value = (value_t){.node = -1};
    if (!kind)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "layer '%s' is a %.80s, and there is no op for that here; networks of "
                        "Conv2D, DepthwiseConv2D, SeparableConv2D, BatchNormalization, Dense, "
                        "pooling, Add, Concatenate and the like are read",
                        layer->name, layer->class);
    if (layer->n_inputs != 1 && kind->add != add_join)
        return TDM_FAIL(err, TDM_E_INPUT, "layer '%s' (%s) reads %d tensors; one is accepted",
                        layer->name, layer->class, layer->n_inputs);
    for (int i = 0; i < layer->n_inputs; i++)
        if (build->values[layer->inputs[i]].end != TDMI_KERAS_LOGITS)
            return TDM_FAIL(err, TDM_E_INPUT, "layer '%s' (%s) reads probabilities", layer->name,
                            layer->class);
    return TDM_WRAP(err, kind->add(build, layer, value, err), "layer '%s' (%s)", layer->name,
                    layer->class);
}
