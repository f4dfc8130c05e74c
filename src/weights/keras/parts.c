/*
 * Attributes with Keras' defaults for the keys that old files lack, names of nodes, activations.
 */
#include "weights/keras/parts.h"

#include <string.h>

typedef struct tdmi_keras_build build_t;
typedef struct tdmi_keras_layer layer_t;
typedef struct tdmi_keras_value value_t;

tdm_status tdmi_keras_read_count(const layer_t *layer, const char *key, int64_t most, int missing,
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
tdm_status tdmi_keras_read_square(const layer_t *layer, const char *key, int missing, int *out,
                                  tdm_error *err)
{
    const tdm_json_value *value = tdm_json_member(layer->config, key);
    if (tdm_json_kind_of(value) != TDM_JSON_ARRAY)
        return tdmi_keras_read_count(layer, key, 4096, missing, out, err);
    int64_t first = tdm_json_as_integer(tdm_json_at(value, 0), -1);
    int64_t second = tdm_json_as_integer(tdm_json_at(value, 1), -1);
    if (tdm_json_count(value) != 2 || first != second || first < 1 || first > 4096)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s is not square (%lld and %lld); two equal numbers are accepted", key,
                        (long long)first, (long long)second);
    *out = (int)first;
    return TDM_OK;
}

bool tdmi_keras_flag(const layer_t *layer, const char *key, bool missing)
{
    return tdm_json_as_bool(tdm_json_member(layer->config, key), missing);
}

double tdmi_keras_number(const layer_t *layer, const char *key, double missing)
{
    return tdm_json_as_number(tdm_json_member(layer->config, key), missing);
}

const char *tdmi_keras_word(const layer_t *layer, const char *key, const char *missing)
{
    return tdm_json_as_string(tdm_json_member(layer->config, key), missing);
}

tdm_status tdmi_keras_check_order(const layer_t *layer, tdm_error *err)
{
    const char *order = tdmi_keras_word(layer, "data_format", "channels_last");
    if (strcmp(order, "channels_last") != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "data_format %s; channels_last is accepted", order);
    return TDM_OK;
}

/* ---- names and values ---------------------------------------------------------------------- */

/* Taken are those of the input, of a new head and of the end, and those of layers of other nested
 * models; a layer whose name is, or is too long, is called by its number. */
struct tdmi_name tdmi_keras_free_name(const build_t *build, const layer_t *layer,
                                      const char *suffix)
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

int tdmi_keras_add_node(build_t *build, const layer_t *layer, const char *suffix,
                        enum tdmi_op_kind kind, int from, struct tdmi_op_attrs attrs)
{
    return tdmi_graph_add(build->graph, kind, tdmi_keras_free_name(build, layer, suffix).text, from,
                          attrs);
}

const value_t *tdmi_keras_input_of(const build_t *build, const layer_t *layer)
{
    return &build->values[layer->inputs[0]];
}

struct tdmi_shape tdmi_keras_shape_of(const build_t *build, int node)
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
        value->padded = tdmi_keras_add_node(
            build, &build->config->layers[layer], "", TDMI_OP_PAD, value->node,
            (struct tdmi_op_attrs){
                .pad_top = p[0], .pad_bottom = p[1], .pad_left = p[2], .pad_right = p[3]});
    return value->padded;
}

int tdmi_keras_input_node(build_t *build, const layer_t *layer)
{
    return tdmi_keras_node(build, layer->inputs[0]);
}

int tdmi_keras_index_of(const build_t *build, const layer_t *layer)
{
    return (int)(layer - build->config->layers);
}

void tdmi_keras_note_source(build_t *build, int node, const layer_t *layer,
                            enum tdmi_keras_part part)
{
    build->sources[build->n_sources++] =
        (struct tdmi_keras_source){node, tdmi_keras_index_of(build, layer), part};
}

tdm_status tdmi_keras_check_image(const build_t *build, const layer_t *layer, tdm_error *err)
{
    const value_t *value = tdmi_keras_input_of(build, layer);
    if (value->is_flat && tdmi_shape_pixels(tdmi_keras_shape_of(build, value->node)) != 1)
        return TDM_FAIL(err, TDM_E_INPUT, "it reads a flattened image; only Dense can");
    return TDM_OK;
}

/* ---- activations --------------------------------------------------------------------------- */

/* A word, or an object that holds one. */
const char *tdmi_keras_activation_of(const layer_t *layer)
{
    const tdm_json_value *value = tdm_json_member(layer->config, "activation");
    if (tdm_json_kind_of(value) == TDM_JSON_OBJECT)
        return tdm_json_as_string(tdm_json_member(value, "config"), "an object");
    return tdm_json_as_string(value, "linear");
}

tdm_status tdmi_keras_activate(build_t *build, const layer_t *layer, const char *activation,
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
            value->node = tdmi_keras_add_node(build, layer, suffix, known[i].kind, value->node,
                                              (struct tdmi_op_attrs){0});
            value->is_positive = known[i].is_positive;
            return TDM_OK;
        }
    return TDM_FAIL(err, TDM_E_INPUT,
                    "there is no op for the activation %s; linear, relu, relu6, hard_swish and "
                    "sigmoid have one, and softmax at the end",
                    activation);
}
