/*
 * keras.applications: layers by name; those that it leaves unnamed by their order among their like;
 * in files that number layers of a class, all of them so.
 */
#include "weights/keras/names.h"
#include "weights/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct search {
    struct tdmi_bindings *bindings;
    struct tdmi_keras_names names;
    int *ranks;     /* of nodes among their class, by Keras' order of layers */
    bool is_resnet; /* ResNet-50 in the form of keras.applications, which has biases */
};

static bool is_pointwise(const struct tdmi_node *node)
{
    return tdmi_ends_with(node->name, ".pointwise");
}

static bool is_half(const struct tdmi_node *node)
{
    return is_pointwise(node) || tdmi_ends_with(node->name, ".depthwise");
}

/* Keras's word for the class in names that it makes itself; NULL: a layer without weights. */
static const char *class_of(const struct tdmi_node *node)
{
    if (node->kind == TDMI_OP_CONV && is_half(node))
        return "separable_conv2d";
    if (node->kind == TDMI_OP_CONV)
        return node->attrs.groups > 1 ? "depthwise_conv2d" : "conv2d";
    return node->kind == TDMI_OP_BATCH_NORM ? "batch_normalization"
           : node->kind == TDMI_OP_DENSE    ? "dense"
                                            : NULL;
}

static enum tdmi_keras_variable variable_of(const struct tdmi_node *node, int i)
{
    if (node->kind == TDMI_OP_BATCH_NORM)
        return (enum tdmi_keras_variable)(TDMI_KERAS_GAMMA + i);
    if (i > 0)
        return TDMI_KERAS_BIAS;
    if (is_pointwise(node))
        return TDMI_KERAS_POINTWISE;
    return node->kind == TDMI_OP_CONV && node->attrs.groups > 1 ? TDMI_KERAS_DEPTHWISE
                                                                : TDMI_KERAS_KERNEL;
}

/* ---- the order of layers -------------------------------------------------------------------- */

struct placed {
    int node, depth;
};

/* Farthest from the end first; of equals, the shortcut of a block before its branch, which our
 * builders write the other way round. */
static int by_depth(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    return left->depth != right->depth ? right->depth - left->depth : right->node - left->node;
}

static tdm_status rank_nodes(struct search *it, tdm_error *err)
{
    const tdmi_graph *graph = it->bindings->graph;
    size_t n = (size_t)graph->n_nodes;
    struct placed *order;
    TDMI_ARENA_NEW(it->bindings->arena, order, n, err);
    TDMI_ARENA_NEW(it->bindings->arena, it->ranks, n, err);
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        order[i].node = i;
        for (int k = 0; k < graph->nodes[i].n_inputs; k++) {
            struct placed *read = &order[graph->nodes[i].inputs[k]];
            if (read->depth <= order[i].depth)
                read->depth = order[i].depth + 1;
        }
    }
    qsort(order, n, sizeof *order, by_depth);
    for (size_t i = 0; i < n; i++) {
        const struct tdmi_node *node = &graph->nodes[order[i].node];
        const char *class = class_of(node);
        int rank = 0;
        for (size_t k = 0; class && k < i; k++) {
            const struct tdmi_node *other = &graph->nodes[order[k].node];
            const char *its = class_of(other);
            rank += its && strcmp(its, class) == 0 && is_pointwise(other) == is_pointwise(node);
        }
        it->ranks[order[i].node] = rank;
    }
    return TDM_OK;
}

/* ---- unnamed layers ------------------------------------------------------------------------- */

/* The number of a name that Keras made for a class: "conv2d" 0, "conv2d_12" 12; -1: no such name.
 */
static long number_of(const char *layer, const char *class)
{
    size_t n = strlen(class);
    char *end;
    if (strncmp(layer, class, n) != 0)
        return -1;
    if (layer[n] == '\0')
        return 0;
    if (layer[n] != '_' || layer[n + 1] < '0' || layer[n + 1] > '9')
        return -1;
    long number = strtol(layer + n + 1, &end, 10);
    return *end == '\0' ? number : -1;
}

/* The layer of that class with the rank-th smallest number among those that have one; its counters
 * run through a whole session of Keras. */
static const char *unnamed_layer(const struct search *it, const char *class, int rank)
{
    const char *found = NULL;
    long last = -1;
    for (int r = 0; r <= rank; r++) {
        long best = -1;
        for (size_t i = 0; i < it->names.n_entries; i++) {
            long number = number_of(it->names.entries[i].layer, class);
            if (number > last && (best < 0 || number < best)) {
                best = number;
                found = it->names.entries[i].layer;
            }
        }
        if (best < 0)
            return NULL;
        last = best;
    }
    return found;
}

/* keras.applications' ResNet-50, when it is another than ours: "layer1.0.conv2" is
 * "conv2_block1_2_conv". */
static void resnet_layer(const char *node, char layer[TDMI_NAME_BYTES])
{
    static const struct {
        const char *ours, *theirs;
    } whole[] = {{"conv1", "conv1_conv"}, {"bn1", "conv1_bn"}, {"fc", "predictions"}};
    int stage, block, number;
    char kind[8];
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(whole[i].ours, node) == 0)
            snprintf(layer, TDMI_NAME_BYTES, "%s", whole[i].theirs);
    if (sscanf(node, "layer%d.%d.%5[a-z]%d", &stage, &block, kind, &number) == 4)
        snprintf(layer, TDMI_NAME_BYTES, "conv%d_block%d_%d_%s", stage + 1, block + 1, number,
                 kind);
    if (sscanf(node, "layer%d.%d.downsample.%d", &stage, &block, &number) == 3)
        snprintf(layer, TDMI_NAME_BYTES, "conv%d_block%d_0_%s", stage + 1, block + 1,
                 number ? "bn" : "conv");
}

/* ---- binding -------------------------------------------------------------------------------- */

static const struct tdmi_weights_tensor *find(const struct search *it, int index, int i,
                                              char name[TDMI_NAME_BYTES + 32])
{
    const struct tdmi_node *node = &it->bindings->graph->nodes[index];
    const enum tdmi_keras_variable variable = variable_of(node, i);
    const char *class = class_of(node);
    struct tdmi_keras_place place = {.number = i + is_pointwise(node)};
    const size_t name_bytes = TDMI_NAME_BYTES + 32;
    char layer[TDMI_NAME_BYTES];
    if (it->names.is_numbered) {
        const int rank = it->ranks[index];
        snprintf(layer, sizeof layer, rank ? "%s_%d" : "%s", class, rank);
        snprintf(name, name_bytes, "layers/%s/vars/%d", layer, place.number);
        place.layer = layer;
        return tdmi_keras_find(&it->names, &place, variable);
    }
    if (!tdmi_keras_layer(it->bindings->network, node->name, layer))
        return NULL;
    if (it->is_resnet)
        resnet_layer(node->name, layer);
    /* A layer that keras.applications leaves unnamed, as the shortcuts of Xception ("conv2d",
     * "conv2d_1", …): which one of its class it is. */
    const bool is_unnamed = tdmi_keras_is_numbered(it->bindings->network, node->name);
    const int unnamed = is_unnamed ? (int)number_of(layer, class) : -1;
    snprintf(name, name_bytes, "%s/%s", layer, tdmi_keras_variable_name(variable));
    place.path = place.layer = unnamed >= 0 ? unnamed_layer(it, class, unnamed) : layer;
    return place.layer ? tdmi_keras_find(&it->names, &place, variable) : NULL;
}

tdm_status tdmi_origin_bind_keras(struct tdmi_bindings *bindings, tdm_error *err)
{
    struct search it = {.bindings = bindings,
                        .is_resnet = strcmp(bindings->network, "resnet50") == 0 &&
                                     bindings->graph->nodes[1].attrs.has_bias};
    TDMI_TRY(tdmi_keras_names_init(&it.names, bindings, err));
    if (it.names.is_numbered)
        TDMI_TRY(rank_nodes(&it, err));
    for (int node = 0; node < bindings->graph->n_nodes; node++) {
        struct tdmi_binding *binding;
        for (int i = 0; (binding = tdmi_binding_of(bindings, node, i)) != NULL; i++) {
            char name[TDMI_NAME_BYTES + 32] = "";
            const struct tdmi_weights_tensor *from = find(&it, node, i, name);
            TDMI_TRY(tdmi_bind(bindings, binding, from, name, err));
        }
    }
    return TDM_OK;
}
