/*
 * Patterns: several layers of Keras that are one op of ours, as exports of ours write them:
 *
 *     hard swish       Multiply(x, ReLU(Rescaling(x, 1/6, 1/2), max_value 1))
 *     one logit        Activation(Concatenate(Rescaling(x, -1), x), sigmoid), at the end
 *
 * Values in between have no node. Any other layer that reads one is refused.
 */
#include "weights/keras/parts.h"

#include <math.h>
#include <string.h>

typedef struct tdmi_keras_build build_t;
typedef struct tdmi_keras_layer layer_t;
typedef struct tdmi_keras_value value_t;

static const double sixth = 1.0 / 6.0;

bool tdmi_keras_is_number(const layer_t *layer, const char *key, double expected)
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
           tdmi_keras_is_number(layer, "max_value", 1.0) &&
           tdmi_keras_is_number(layer, "negative_slope", 0.0) &&
           tdmi_keras_is_number(layer, "threshold", 0.0);
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

tdm_status tdmi_keras_add_rescaling(build_t *build, const layer_t *layer, value_t *value,
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

bool tdmi_keras_continues(const build_t *build, const layer_t *layer, value_t *value)
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

tdm_status tdmi_keras_add_multiply(build_t *build, const layer_t *layer, value_t *value,
                                   tdm_error *err)
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

tdm_status tdmi_keras_check_pattern(const build_t *build, const layer_t *layer, tdm_error *err)
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
