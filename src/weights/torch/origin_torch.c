/*
 * Names as PyTorch writes them, and ours: node, dot, tensor. Whole networks often stand under a
 * name of their own ("module.", "state_dict.model."), which is found by trying.
 */
#include "weights/bind.h"
#include "weights/names.h"

#include <stdio.h>
#include <string.h>

enum { most_prefixes = 32, most_name = 1024, most_prefix = 512 };

/* Layers that files around call otherwise than torchvision does. */
static const struct other {
    const char *node, *layer;
} others[] = {
    {"predictions", "classifier"},
    {"predictions", "fc"},
    {"linear", "fc"},
    {"fc", "linear"},
    {"dense1", "fc1"},
    {"dense2", "fc2"},
    {"dense3", "fc3"},
};

/* Name number n of a node's layer; false past the last. */
static bool layer_of(const struct tdmi_bindings *bindings, const char *node, int n,
                     char layer[TDMI_NAME_BYTES])
{
    if (n == 0 && bindings->layout == TDMI_PUBLISHER_TORCH)
        return tdmi_torch_layer(bindings->network, node, layer);
    for (size_t i = 0; n > 0 && i < sizeof others / sizeof others[0]; i++)
        if (bindings->layout == TDMI_PUBLISHER_TORCH && strcmp(others[i].node, node) == 0 &&
            --n == 0)
            return snprintf(layer, TDMI_NAME_BYTES, "%s", others[i].layer) > 0;
    return n == 0 && snprintf(layer, TDMI_NAME_BYTES, "%s", node) < TDMI_NAME_BYTES;
}

/* A node's tensor by any of its names, behind a prefix; first_name: the first that was tried. */
static const struct tdmi_weights_tensor *find(const struct tdmi_bindings *bindings,
                                              const char *prefix, int prefix_bytes, int node, int i,
                                              char first_name[most_name])
{
    const struct tdmi_node *of = &bindings->graph->nodes[node];
    const char *tensor = tdmi_binding_tensor(bindings, node, i)->spec.name;
    const struct tdmi_weights_tensor *found = NULL;
    char layer[TDMI_NAME_BYTES], text[most_name];
    for (int n = 0; !found && layer_of(bindings, of->name, n, layer); n++) {
        snprintf(text, sizeof text, "%.*s%s.%s", prefix_bytes, prefix, layer, tensor);
        if (n == 0 && first_name)
            memcpy(first_name, text, sizeof text);
        found = tdmi_weights_find(bindings->weights, text);
    }
    return found;
}

/* How many tensors of the network are there; all, when more than half are. */
static int count(const struct tdmi_bindings *bindings, const char *prefix, int prefix_bytes)
{
    const int total = bindings->graph->n_params + bindings->graph->n_states;
    int n = 0;
    for (int node = 0; node < bindings->graph->n_nodes; node++)
        for (int i = 0; tdmi_binding_of(bindings, node, i); i++) {
            n += find(bindings, prefix, prefix_bytes, node, i, NULL) != NULL;
            if (n > total / 2)
                return total;
        }
    return n;
}

/* Does a name end with this one, and at a part? Its other bytes are its prefix. */
static bool has_prefix(const char *name, const char *ending, int *bytes)
{
    const size_t before = tdmi_ends_with(name, ending) ? strlen(name) - strlen(ending) : SIZE_MAX;
    if (before > most_prefix)
        return false;
    *bytes = (int)before;
    return before == 0 || name[before - 1] == '.';
}

/* Find the prefix of the network's names in the file: of several candidates, the one that matches
 * most tensors. */
static void choose_prefix(const struct tdmi_bindings *bindings, const char **prefix, int *bytes)
{
    const tdmi_graph *graph = bindings->graph;
    const int total = graph->n_params + graph->n_states;
    int first = 0, most = 0, tried = 0;
    char layer[TDMI_NAME_BYTES], ending[most_name];
    *prefix = "";
    *bytes = 0;
    while (first < graph->n_nodes && graph->nodes[first].n_params == 0)
        first++;
    if (first == graph->n_nodes)
        return;
    const char *tensor = tdmi_binding_tensor(bindings, first, 0)->spec.name;
    if (!layer_of(bindings, graph->nodes[first].name, 0, layer))
        return;
    snprintf(ending, sizeof ending, "%s.%s", layer, tensor);
    for (size_t t = 0; t < tdmi_weights_count(bindings->weights) && most < total; t++) {
        const char *name = tdmi_weights_at(bindings->weights, t)->name;
        int before;
        if (!has_prefix(name, ending, &before) || tried++ >= most_prefixes)
            continue;
        const int here = count(bindings, name, before);
        if (here > most) {
            most = here;
            *prefix = name;
            *bytes = before;
        }
    }
}

/* Counters, and what an optimizer keeps. */
static bool is_ignored(const char *name)
{
    static const char *const roots[] = {"optimizer.", "optim.", "scheduler.", "lr_scheduler."};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (strncmp(name, roots[i], strlen(roots[i])) == 0)
            return true;
    return tdmi_ends_with(name, "num_batches_tracked");
}

/* Is it a tensor that our model files hold beside the weights? */
static bool is_of_ours(const char *name)
{
    return strncmp(name, "split.", 6) == 0 || strncmp(name, "selftest.", 9) == 0;
}

tdm_status tdmi_origin_bind_torch(struct tdmi_bindings *bindings, tdm_error *err)
{
    const char *prefix;
    int prefix_bytes;
    choose_prefix(bindings, &prefix, &prefix_bytes);
    for (int node = 0; node < bindings->graph->n_nodes; node++) {
        struct tdmi_binding *binding;
        for (int i = 0; (binding = tdmi_binding_of(bindings, node, i)) != NULL; i++) {
            char name[most_name] = "";
            const struct tdmi_weights_tensor *from =
                find(bindings, prefix, prefix_bytes, node, i, name);
            TDMI_TRY(tdmi_bind(bindings, binding, from, name, err));
        }
    }
    for (size_t i = 0; i < tdmi_weights_count(bindings->weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(bindings->weights, i);
        if (is_ignored(tensor->name) ||
            (bindings->layout == TDMI_PUBLISHER_OURS && is_of_ours(tensor->name)))
            tdmi_bindings_take(bindings, tensor);
    }
    return TDM_OK;
}
