/*
 * Keras' .h5: the whole model, as load_model takes it, with the names of keras.applications where
 * the network is one of theirs; load_weights takes the same file for a model that is there already.
 */
#include "base/scope.h"
#include "weights/keras/h5_write.h"
#include "weights/names.h"
#include "train/export/keras.h"

#include <string.h>

/* The version whose names and configuration are written. */
static const char keras_version[] = "2.15.0";

enum { most_weights = 4 };

/* Halves of a separable convolution are called so only where they are one layer. */
static const char *variable_of(const struct tdmi_keras_plan *plan, const struct tdmi_node *node,
                               const struct tdmi_tensor *tensor)
{
    if (strcmp(tensor->spec.name, "weight") == 0 && plan->class == TDMI_KERAS_CONV)
        return "kernel";
    if (strcmp(tensor->spec.name, "weight") == 0 && plan->class == TDMI_KERAS_DEPTHWISE_CONV)
        return "depthwise_kernel";
    return tdmi_keras_variable(node, tensor);
}

static tdm_status add_weight(struct tdmi_export *export, const struct tdmi_keras_plan *plan,
                             const struct tdmi_node *node, const struct tdmi_tensor *tensor,
                             bool is_state, struct tdmi_keras_weight *weight, tdm_error *err)
{
    struct tdmi_layout layout = tdmi_layout_of_keras(node, tensor);
    int64_t *shape = tdmi_arena_alloc(&export->arena, (size_t)layout.rank, sizeof *shape);
    const char *name =
        tdmi_arena_printf(&export->arena, "%s/%s:0", plan->name, variable_of(plan, node, tensor));
    TDMI_CHECK_MEMORY(shape && name, err);
    memcpy(shape, layout.shape, sizeof *shape * (size_t)layout.rank);
    *weight = (struct tdmi_keras_weight){name, layout.rank, shape,
                                         tdmi_export_values(export, tensor, is_state)};
    return TDM_OK;
}

static tdm_status add_layer(struct tdmi_export *export, const struct tdmi_keras_plan *plan,
                            struct tdmi_keras_h5_layer *layer, tdm_error *err)
{
    const tdmi_graph *graph = export->graph;
    struct tdmi_keras_weight *weights =
        tdmi_arena_alloc(&export->arena, most_weights, sizeof *weights);
    TDMI_CHECK_MEMORY(weights, err);
    *layer = (struct tdmi_keras_h5_layer){plan->name, weights, 0};
    for (int n = 0; n < 2 && plan->nodes[n]; n++) {
        const struct tdmi_node *node = plan->nodes[n];
        for (int i = 0; i < node->n_params + node->n_states; i++) {
            bool is_state = i >= node->n_params;
            const struct tdmi_tensor *tensor =
                is_state ? &graph->states[node->first_state + i - node->n_params]
                         : &graph->params[node->first_param + i];
            TDM_TRY(
                add_weight(export, plan, node, tensor, is_state, &weights[layer->n_weights++], err),
                err, "layer '%s'", plan->name);
        }
    }
    return TDM_OK;
}

tdm_status tdmi_export_h5(struct tdmi_export *export, tdm_error *err)
{
    struct tdmi_keras_network network;
    TDMI_TRY(tdmi_keras_plan_layers(export, &network, err));
    const size_t n = (size_t)network.n_layers;
    int *order = tdmi_arena_alloc(&export->arena, n, sizeof *order);
    struct tdmi_keras_h5_layer *layers = tdmi_arena_alloc(&export->arena, n, sizeof *layers);
    const char *config = tdmi_keras_config(&network);
    struct tdmi_export_note texts[TDMI_EXPORT_NOTES];
    struct tdmi_keras_note notes[TDMI_EXPORT_NOTES];
    size_t n_notes = 0;
    TDMI_CHECK_MEMORY(order && layers && config, err);
    TDMI_TRY(tdmi_export_notes(export, texts, err));
    for (int i = 0; i < TDMI_EXPORT_NOTES; i++)
        if (*texts[i].text)
            notes[n_notes++] = (struct tdmi_keras_note){texts[i].key, texts[i].text};
    tdmi_keras_order(&network, order);
    for (size_t i = 0; i < n; i++)
        TDMI_TRY(add_layer(export, &network.layers[order[i]], &layers[i], err));
    const struct tdmi_keras_file file = {.layers = layers,
                                         .n_layers = n,
                                         .keras_version = keras_version,
                                         .model_config = config,
                                         .notes = notes,
                                         .n_notes = n_notes};
    return tdmi_keras_h5_write(&file, export->path, err);
}
