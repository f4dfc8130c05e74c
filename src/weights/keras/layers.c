/* One function a kind of layer, and the list of kinds. Shapes are the graph's to check. */
#include "weights/keras/parts.h"

#include <math.h>
#include <string.h>

typedef struct tdmi_keras_build build_t;
typedef struct tdmi_keras_layer layer_t;
typedef struct tdmi_keras_value value_t;

/* ---- patterns ------------------------------------------------------------------------------ */

/*
 * Several layers of Keras that are one op of ours, as exports of ours write them:
 *
 *     hard swish       Multiply(x, ReLU(Rescaling(x, 1/6, 1/2), max_value 1))
 *     one logit        Activation(Concatenate(Rescaling(x, -1), x), sigmoid), at the end
 *
 * Values in between have no node. Any other layer that reads one is refused.
 */
static const double sixth = 1.0 / 6.0;

static bool is_number(const layer_t *layer, const char *key, double expected)
{
    const tdm_json_value *value = tdm_json_member(layer->config, key);
    if (!value || tdm_json_kind_of(value) == TDM_JSON_NULL)
        return true;
    return fabs(tdm_json_as_number(value, expected + 1.0) - expected) <= 1e-6 * fabs(expected);
}

static bool is_rescaling(const layer_t *layer, double scale, double offset)
{
    const double by = tdmi_keras_number(layer, "scale", (double)NAN);
    const double and = tdmi_keras_number(layer, "offset", 0.0);
    return strcmp(layer->class, "Rescaling") == 0 && layer->n_inputs == 1 &&
           fabs(by - scale) <= 1e-6 && fabs(and-offset) <= 1e-6;
}

static bool is_gate(const layer_t *layer)
{
    const tdm_json_value *most = tdm_json_member(layer->config, "max_value");
    return strcmp(layer->class, "ReLU") == 0 && tdm_json_kind_of(most) == TDM_JSON_NUMBER &&
           is_number(layer, "max_value", 1.0) && is_number(layer, "negative_slope", 0.0) &&
           is_number(layer, "threshold", 0.0);
}

bool tdmi_keras_is_pair(const struct tdmi_keras_config *config, int index, int *x)
{
    const layer_t *layer = &config->layers[index];
    if (strcmp(layer->class, "Concatenate") != 0 || layer->n_inputs != 2)
        return false;
    const layer_t *negative = &config->layers[layer->inputs[0]];
    if (!is_rescaling(negative, -1.0, 0.0) || negative->inputs[0] != layer->inputs[1])
        return false;
    *x = layer->inputs[1];
    return true;
}

static tdm_status add_rescaling(build_t *build, const layer_t *layer, value_t *value,
                                tdm_error *err)
{
    const bool is_sixth = is_rescaling(layer, sixth, 0.5);
    const value_t *input = tdmi_keras_input_of(build, layer);
    if (layer->inputs[0] == 0) {
        *value = *input;
        return TDM_OK;
    }
    if (!is_sixth && !is_rescaling(layer, -1.0, 0.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it scales a value that is no image; right behind the input it is read");
    *value = (value_t){.node = tdmi_keras_input_node(build, layer),
                       .is_flat = input->is_flat,
                       .pattern = is_sixth ? TDMI_KERAS_SIXTH : TDMI_KERAS_NEGATIVE};
    return TDM_OK;
}

static bool continues(const build_t *build, const layer_t *layer, value_t *value)
{
    const value_t *input = tdmi_keras_input_of(build, layer);
    int x;
    if (input->pattern == TDMI_KERAS_SIXTH && is_gate(layer)) {
        *value = *input;
        value->pattern = TDMI_KERAS_GATE;
        return true;
    }
    if (!tdmi_keras_is_pair(build->config, tdmi_keras_index_of(build, layer), &x) ||
        tdmi_keras_shape_of(build, build->values[x].node).c != 1 || !build->values[x].is_flat)
        return false;
    *value = build->values[x];
    value->pattern = TDMI_KERAS_PAIR;
    return true;
}

static tdm_status add_multiply(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    if (layer->n_inputs != 2)
        return TDM_FAIL(err, TDM_E_INPUT, "it multiplies %d tensors; two are read",
                        layer->n_inputs);
    const bool is_transposed = build->values[layer->inputs[0]].pattern == TDMI_KERAS_GATE;
    const int x = layer->inputs[is_transposed], gate = layer->inputs[!is_transposed];
    if (build->values[x].pattern != TDMI_KERAS_NO_PATTERN ||
        build->values[gate].pattern != TDMI_KERAS_GATE)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "it multiplies tensors; a hard swish, x times x / 6 + 1/2 held between 0 "
                        "and 1, is read");
    const int node = tdmi_keras_node(build, x);
    if (node != build->values[gate].node)
        return TDM_FAIL(err, TDM_E_INPUT, "it multiplies a tensor by the gate of another");
    *value = (value_t){.is_flat = build->values[x].is_flat};
    value->node =
        tdmi_keras_add_node(build, layer, "", TDMI_OP_HSWISH, node, (struct tdmi_op_attrs){0});
    return TDM_OK;
}

/* Is the layer a sigmoid at the network's end? */
static bool is_end(const build_t *build, const layer_t *layer)
{
    return tdmi_keras_index_of(build, layer) == build->config->output &&
           strcmp(layer->class, "Activation") == 0 &&
           strcmp(tdmi_keras_activation_of(layer), "sigmoid") == 0;
}

static tdm_status check_pattern(const build_t *build, const layer_t *layer, tdm_error *err)
{
    static const char *const words[] = {
        [TDMI_KERAS_SIXTH] = "x / 6 + 1/2, which is read within a hard swish only",
        [TDMI_KERAS_GATE] = "a number held between 0 and 1, which is read within a hard swish only",
        [TDMI_KERAS_NEGATIVE] = "-x, which is read beside x and under a last sigmoid only",
        [TDMI_KERAS_PAIR] = "-x and x, which are read under a last sigmoid only",
    };
    for (int i = 0; i < layer->n_inputs; i++) {
        const enum tdmi_keras_pattern pattern = build->values[layer->inputs[i]].pattern;
        const bool is_right =
            pattern == TDMI_KERAS_NO_PATTERN ||
            (pattern == TDMI_KERAS_GATE && strcmp(layer->class, "Multiply") == 0) ||
            (pattern == TDMI_KERAS_PAIR && is_end(build, layer));
        if (!is_right)
            return TDM_FAIL(err, TDM_E_INPUT, "layer '%s' (%s) reads %s", layer->name, layer->class,
                            words[pattern]);
    }
    return TDM_OK;
}

/* ---- layers -------------------------------------------------------------------------------- */

/* The input as it is, and an activation of it. */
static tdm_status activate_input(build_t *build, const layer_t *layer, const char *activation,
                                 value_t *value, tdm_error *err)
{
    value->node = tdmi_keras_input_node(build, layer);
    value->is_flat = tdmi_keras_input_of(build, layer)->is_flat;
    return tdmi_keras_activate(build, layer, activation, "", value, err);
}

static tdm_status add_activation(build_t *build, const layer_t *layer, value_t *value,
                                 tdm_error *err)
{
    return activate_input(build, layer, tdmi_keras_activation_of(layer), value, err);
}

static tdm_status add_softmax(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    return activate_input(build, layer, "softmax", value, err);
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
    return activate_input(build, layer, has_most ? "relu6" : "relu", value, err);
}

static tdm_status add_norm(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const tdm_json_value *axis = tdm_json_member(layer->config, "axis");
    if (tdm_json_kind_of(axis) == TDM_JSON_ARRAY && tdm_json_count(axis) == 1)
        axis = tdm_json_at(axis, 0);
    int64_t last = tdmi_keras_input_of(build, layer)->is_flat ? 1 : 3;
    int64_t number = axis ? tdm_json_as_integer(axis, 0) : -1;
    TDMI_TRY(tdmi_keras_check_image(build, layer, err));
    if (number != -1 && number != last)
        return TDM_FAIL(err, TDM_E_INPUT, "it norms another axis than the channels");
    value->node = tdmi_keras_add_node(
        build, layer, "", TDMI_OP_BATCH_NORM, tdmi_keras_input_node(build, layer),
        (struct tdmi_op_attrs){.epsilon = tdmi_keras_number(layer, "epsilon", 1e-3),
                               .momentum = 1.0 - tdmi_keras_number(layer, "momentum", 0.99),
                               .is_biased = true});
    value->is_flat = tdmi_keras_input_of(build, layer)->is_flat;
    tdmi_keras_note_source(build, value->node, layer, TDMI_KERAS_WHOLE);
    return TDM_OK;
}

static tdm_status add_dense(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const int from = tdmi_keras_input_node(build, layer);
    int units = 0;
    TDMI_TRY(tdmi_keras_read_count(layer, "units", 1 << 24, -1, &units, err));
    if (!tdmi_keras_input_of(build, layer)->is_flat &&
        tdmi_shape_pixels(tdmi_keras_shape_of(build, from)) != 1)
        return TDM_FAIL(err, TDM_E_INPUT, "it reads an image that is not flattened");
    value->node = tdmi_keras_add_node(
        build, layer, "", TDMI_OP_DENSE, from,
        (struct tdmi_op_attrs){.channels = units,
                               .has_bias = tdmi_keras_flag(layer, "use_bias", true)});
    value->is_flat = true;
    tdmi_keras_note_source(build, value->node, layer, TDMI_KERAS_WHOLE);
    return tdmi_keras_activate(build, layer, tdmi_keras_activation_of(layer), ".act", value, err);
}

static tdm_status add_global_pool(build_t *build, const layer_t *layer, value_t *value,
                                  tdm_error *err)
{
    TDMI_TRY(tdmi_keras_check_image(build, layer, err));
    TDMI_TRY(tdmi_keras_check_order(layer, err));
    value->node =
        tdmi_keras_add_node(build, layer, "", TDMI_OP_GLOBAL_POOL,
                            tdmi_keras_input_node(build, layer), (struct tdmi_op_attrs){0});
    value->is_flat = !tdmi_keras_flag(layer, "keepdims", false);
    return TDM_OK;
}

static tdm_status add_dropout(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const double rate = tdmi_keras_number(layer, "rate", -1.0);
    if (!(rate >= 0.0 && rate < 1.0))
        return TDM_FAIL(err, TDM_E_INPUT, "its rate is no number from 0 to less than 1");
    value->node = tdmi_keras_input_node(build, layer);
    value->is_flat = tdmi_keras_input_of(build, layer)->is_flat;
    value->is_positive = tdmi_keras_input_of(build, layer)->is_positive;
    if (rate == 0.0)
        return TDM_OK;
    if (++build->n_dropouts > 255) /* 0 is the stream of a new head's */
        return TDM_FAIL(err, TDM_E_INPUT, "more than 255 layers of dropout");
    value->node = tdmi_add_dropout(build->graph, tdmi_keras_free_name(build, layer, "").text,
                                   value->node, rate, build->n_dropouts);
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
    value->node = tdmi_keras_input_node(build, layer);
    value->is_flat = tdmi_keras_input_of(build, layer)->is_flat;
    for (int i = 0; i < layer->n_inputs; i++) {
        const value_t *other = &build->values[layer->inputs[i]];
        bool is_image =
            other->is_flat && tdmi_shape_pixels(tdmi_keras_shape_of(build, other->node)) != 1;
        if (other->is_flat != value->is_flat || is_image)
            return TDM_FAIL(err, TDM_E_INPUT, "it joins flattened images");
    }
    if (!is_sum && axis != -1 && axis != (value->is_flat ? 1 : 3))
        return TDM_FAIL(err, TDM_E_INPUT, "it joins along another axis than the channels");
    for (int i = 1; i < layer->n_inputs; i++)
        value->node = tdmi_graph_join(
            build->graph, kind,
            i + 1 < layer->n_inputs
                ? tdmi_name("layer_%d.part_%d", tdmi_keras_index_of(build, layer), i).text
                : tdmi_keras_free_name(build, layer, "").text,
            value->node, tdmi_keras_node(build, layer->inputs[i]), (struct tdmi_op_attrs){0});
    return TDM_OK;
}

static tdm_status pass_on(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    (void)err;
    *value = *tdmi_keras_input_of(build, layer);
    return TDM_OK;
}

static tdm_status flatten(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    TDMI_TRY(tdmi_keras_check_order(layer, err));
    *value = (value_t){.node = tdmi_keras_input_node(build, layer), .is_flat = true};
    return TDM_OK;
}

/* Between a row of numbers and an image of one pixel, or flattening. */
static tdm_status reshape(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    const tdm_json_value *target = tdm_json_member(layer->config, "target_shape");
    const int node = tdmi_keras_input_node(build, layer);
    const struct tdmi_shape in = tdmi_keras_shape_of(build, node);
    const int64_t dims[] = {in.h, in.w, in.c};
    const size_t n = tdm_json_count(target);
    bool fits = n == 1 || n == 3;
    for (size_t i = 0; i < n && fits; i++) {
        int64_t side = tdm_json_as_integer(tdm_json_at(target, i), -2);
        fits = side == (n == 1 ? tdmi_shape_values(in) : dims[i]) || side == -1;
    }
    if (!fits)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is no op for it; flattening and (1, 1, channels) need none");
    *value = (value_t){.node = node, .is_flat = n == 1};
    return TDM_OK;
}

/* Exchange columns and channels, so that zeros beside columns are channels of zeros. No value
 * moves: any other layer that reads them so is refused. */
static tdm_status permute(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    static const int64_t accepted[] = {1, 3, 2};
    const tdm_json_value *dims = tdm_json_member(layer->config, "dims");
    const value_t *input = tdmi_keras_input_of(build, layer);
    bool fits = tdm_json_count(dims) == 3;
    for (size_t i = 0; i < 3 && fits; i++)
        fits = tdm_json_as_integer(tdm_json_at(dims, i), 0) == accepted[i];
    if (!fits)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "there is no op for it; (1, 3, 2) around zeros for channels is accepted");
    TDMI_TRY(tdmi_keras_check_image(build, layer, err));
    *value = (value_t){.node = tdmi_keras_input_node(build, layer),
                       .is_transposed = !input->is_transposed,
                       .is_positive = input->is_positive};
    return TDM_OK;
}

/* A layer with an effect in training alone. */
static tdm_status leave_out(build_t *build, const layer_t *layer, value_t *value, tdm_error *err)
{
    build->left_out = layer->class;
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
    const double by = tdmi_keras_number(layer, "scale", NAN);
    const double offset = tdmi_keras_number(layer, "offset", 0.0);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (fabs(by - known[i].scale) < 1e-6 * known[i].scale && offset == known[i].offset) {
            *scale = known[i].is;
            return TDM_OK;
        }
    return TDM_FAIL(err, TDM_E_INPUT,
                    "layer '%s' rescales by %g and %g; x/127.5-1, x/255 and x are accepted",
                    layer->name, by, offset);
}

/* ---- the list ------------------------------------------------------------------------------ */

static const struct kind {
    const char *class;
    tdm_status (*add)(build_t *build, const layer_t *layer, value_t *value, tdm_error *err);
    bool is_passive;
} kinds[] = {
    {"Conv2D", tdmi_keras_add_conv, false},
    {"DepthwiseConv2D", tdmi_keras_add_depthwise, false},
    {"SeparableConv2D", tdmi_keras_add_separable, false},
    {"BatchNormalization", add_norm, false},
    {"Dense", add_dense, false},
    {"Activation", add_activation, true},
    {"ReLU", add_relu, true},
    {"Softmax", add_softmax, true},
    {"ZeroPadding2D", tdmi_keras_add_zero_padding, true},
    {"MaxPooling2D", tdmi_keras_add_pool, true},
    {"AveragePooling2D", tdmi_keras_add_pool, true},
    {"GlobalAveragePooling2D", add_global_pool, true},
    {"Permute", permute, true},
    {"Flatten", flatten, true},
    {"Reshape", reshape, true},
    {"Dropout", add_dropout, true},
    {"Add", add_join, true},
    {"Concatenate", add_join, true},
    {"Rescaling", add_rescaling, true},
    {"Multiply", add_multiply, true},
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
                        "layer '%s' is a %s, and there is no op for that here; networks of Conv2D, "
                        "DepthwiseConv2D, SeparableConv2D, BatchNormalization, Dense, pooling, "
                        "Add, Concatenate and the like are read",
                        layer->name, layer->class);
    if (layer->n_inputs != 1 && kind->add != add_join && kind->add != add_multiply)
        return TDM_FAIL(err, TDM_E_INPUT, "layer '%s' (%s) reads %d tensors; one is accepted",
                        layer->name, layer->class, layer->n_inputs);
    bool is_transposed = false;
    for (int i = 0; i < layer->n_inputs; i++) {
        const value_t *input = &build->values[layer->inputs[i]];
        is_transposed |= input->is_transposed;
        if (input->end != TDMI_KERAS_LOGITS)
            return TDM_FAIL(err, TDM_E_INPUT, "layer '%s' (%s) reads probabilities", layer->name,
                            layer->class);
    }
    if (continues(build, layer, value))
        return TDM_OK;
    TDMI_TRY(check_pattern(build, layer, err));
    if (is_transposed && kind->add != permute && kind->add != tdmi_keras_add_zero_padding)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "layer '%s' (%s) reads an image whose columns and channels a Permute has "
                        "exchanged; only ZeroPadding2D and a Permute back are accepted there",
                        layer->name, layer->class);
    return TDM_WRAP(err, kind->add(build, layer, value, err), "layer '%s' (%s)", layer->name,
                    layer->class);
}
