/*
 * A network by name whose file describes its layers too: what the model_config says of layers by
 * their names holds over what is usual of the publisher's: epsilon and momentum of batch norms, and
 * where zeros stand around windows. A configuration that cannot be read says nothing.
 */
#include "weights/import/internal.h"
#include "weights/names.h"

#include <string.h>

tdm_status tdmi_import_config_open(struct tdmi_importing *it, struct tdmi_import_config *said,
                                   tdm_error *err)
{
    const char *text = tdmi_weights_fact(it->weights, "model_config");
    tdm_error why;
    *said = (struct tdmi_import_config){0};
    if (!text)
        return TDM_OK;
    tdm_status status = tdm_json_read(text, strlen(text), "model_config", &said->document, &why);
    if (status == TDM_OK)
        status = tdmi_keras_config_read(tdm_json_root(said->document), &it->import->arena,
                                        &said->config, &why);
    said->is_there = status == TDM_OK;
    return status == TDM_E_MEMORY ? TDM_FAIL(err, TDM_E_MEMORY, "importing %s: out of memory",
                                             tdmi_weights_path(it->weights))
                                  : TDM_OK;
}

void tdmi_import_config_close(struct tdmi_import_config *said)
{
    tdm_json_document_free(said->document);
    *said = (struct tdmi_import_config){0};
}

/* The only layer of that name and class; NULL: none. */
static const struct tdmi_keras_layer *layer_of(const struct tdmi_importing *it,
                                               const struct tdmi_import_config *said,
                                               const struct tdmi_node *node, const char *class)
{
    char name[TDMI_NAME_BYTES];
    const struct tdmi_keras_layer *found = NULL;
    if (!tdmi_keras_layer(it->import->network, node->name, name))
        return NULL;
    for (int i = 0; i < said->config.n_layers; i++) {
        const struct tdmi_keras_layer *layer = &said->config.layers[i];
        if (strcmp(layer->name, name) != 0 || !strstr(layer->class, class))
            continue;
        if (found)
            return NULL;
        found = layer;
    }
    return found;
}

/* Zeros that two sides share out evenly, or as "same" does, the odd one behind. */
static bool read_zeros(const struct tdmi_keras_layer *zeros, enum tdmi_padding *padding)
{
    const tdm_json_value *rows = tdm_json_at(tdm_json_member(zeros->config, "padding"), 0);
    if (strcmp(zeros->class, "ZeroPadding2D") != 0 || tdm_json_count(rows) != 2)
        return false;
    const int64_t above = tdm_json_as_integer(tdm_json_at(rows, 0), 0);
    const int64_t below = tdm_json_as_integer(tdm_json_at(rows, 1), 0);
    *padding = above == below ? TDMI_PADDING_SYMMETRIC : TDMI_PADDING_SAME;
    return true;
}

bool tdmi_import_config_padding(const struct tdmi_importing *it,
                                const struct tdmi_import_config *said, enum tdmi_padding *padding)
{
    const tdmi_graph *graph = it->import->graph;
    for (int i = 0; said->is_there && i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        if (node->kind != TDMI_OP_CONV || node->attrs.stride != 2 || node->attrs.kernel < 2)
            continue;
        const struct tdmi_keras_layer *layer = layer_of(it, said, node, "Conv2D");
        const char *word =
            layer ? tdm_json_as_string(tdm_json_member(layer->config, "padding"), "") : "";
        if (strcmp(word, "same") == 0) {
            *padding = TDMI_PADDING_SAME;
            return true;
        }
        if (strcmp(word, "valid") == 0 && layer->n_inputs == 1 &&
            read_zeros(&said->config.layers[layer->inputs[0]], padding))
            return true;
    }
    return false;
}

void tdmi_import_config_norms(const struct tdmi_importing *it,
                              const struct tdmi_import_config *said)
{
    tdmi_graph *graph = it->import->graph;
    for (int i = 0; said->is_there && i < graph->n_nodes; i++) {
        struct tdmi_op_attrs *attrs = &graph->nodes[i].attrs;
        const struct tdmi_keras_layer *layer =
            graph->nodes[i].kind == TDMI_OP_BATCH_NORM
                ? layer_of(it, said, &graph->nodes[i], "BatchNormalization")
                : NULL;
        if (!layer)
            continue;
        const double epsilon = tdm_json_as_number(tdm_json_member(layer->config, "epsilon"), 0.0);
        const double kept = tdm_json_as_number(tdm_json_member(layer->config, "momentum"), -1.0);
        attrs->epsilon = epsilon > 0.0 && epsilon <= 1.0 ? epsilon : attrs->epsilon;
        attrs->momentum = kept >= 0.0 && kept <= 1.0 ? 1.0 - kept : attrs->momentum;
    }
}
