/* Taking the names of a Keras file apart, and finding a layer's variable among them. */
#include "weights/keras/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- taking apart --------------------------------------------------------------------------- */

/* Groups that hold layers and say nothing about them. */
static bool is_container(const char *part)
{
    return strcmp(part, "model_weights") == 0 || strcmp(part, "layers") == 0 ||
           strcmp(part, "_layer_checkpoint_dependencies") == 0;
}

static bool is_ignored(const char *path)
{
    return strncmp(path, "optimizer", 9) == 0 || strncmp(path, "metrics", 7) == 0 ||
           strncmp(path, "compile_", 8) == 0 || strncmp(path, "_loss_tracker", 13) == 0 ||
           strstr(path, "seed_generator") != NULL;
}

/* name's parts without containers: the last is the variable, the one before it the layer, all but
 * the variable the path. Nothing to do with a name of one part. */
static bool take_apart(char *name, struct tdmi_keras_entry *entry, bool *is_numbered)
{
    char *colon = strrchr(name, ':');
    if (colon && !strchr(colon, '/'))
        *colon = '\0';
    char *slash = strrchr(name, '/');
    if (!slash)
        return false;
    *slash = '\0';
    entry->variable = slash + 1;
    size_t length = strlen(name);
    *is_numbered = length > 5 && strcmp(name + length - 5, "/vars") == 0;
    if (*is_numbered)
        name[length - 5] = '\0';
    char *to = name; /* path, written over the name */
    entry->layer = name;
    for (char *part = name, *next; part; part = next) {
        next = strchr(part, '/');
        if (next)
            *next++ = '\0';
        if (is_container(part))
            continue;
        size_t n = strlen(part);
        if (to != name)
            *to++ = '/';
        memmove(to, part, n + 1);
        entry->layer = to;
        to += n;
    }
    *to = '\0';
    entry->path = name;
    return true;
}

static int by_layer(const void *a, const void *b)
{
    const struct tdmi_keras_entry *left = a, *right = b;
    int order = strcmp(left->layer, right->layer);
    if (order == 0)
        order = strcmp(left->variable, right->variable);
    return order ? order : (left->tensor > right->tensor) - (left->tensor < right->tensor);
}

tdm_status tdmi_keras_names_init(struct tdmi_keras_names *names, struct tdmi_bindings *bindings,
                                 tdm_error *err)
{
    const tdmi_weights *weights = bindings->weights;
    size_t n = tdmi_weights_count(weights);
    *names = (struct tdmi_keras_names){0};
    TDMI_ARENA_NEW(bindings->arena, names->entries, n + 1, err);
    for (size_t i = 0; i < n; i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(weights, i);
        struct tdmi_keras_entry *entry = &names->entries[names->n_entries];
        char *name;
        bool is_numbered = false;
        TDMI_ARENA_COPY(bindings->arena, name, tensor->name, err);
        if (is_ignored(name)) {
            tdmi_bindings_take(bindings, tensor);
            continue;
        }
        if (!take_apart(name, entry, &is_numbered))
            continue;
        entry->tensor = tensor;
        names->is_numbered |= is_numbered;
        names->n_entries++;
    }
    qsort(names->entries, names->n_entries, sizeof *names->entries, by_layer);
    return TDM_OK;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* Keras 3 calls the kernel of a depthwise layer kernel. */
static const char *const variables[][2] = {
    [TDMI_KERAS_KERNEL] = {"kernel"},
    [TDMI_KERAS_DEPTHWISE] = {"depthwise_kernel", "kernel"},
    [TDMI_KERAS_POINTWISE] = {"pointwise_kernel"},
    [TDMI_KERAS_BIAS] = {"bias"},
    [TDMI_KERAS_GAMMA] = {"gamma"},
    [TDMI_KERAS_BETA] = {"beta"},
    [TDMI_KERAS_MEAN] = {"moving_mean"},
    [TDMI_KERAS_VARIANCE] = {"moving_variance"},
};

const char *tdmi_keras_variable_name(enum tdmi_keras_variable variable)
{
    return variables[variable][0];
}

/* The layer is called so in the path, or lies in what is. */
static bool lies_in(const char *path, const char *sought)
{
    size_t n = strlen(sought);
    return strncmp(path, sought, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* First entry of the layer, or of what follows it. */
static size_t first_of(const struct tdmi_keras_names *names, const struct tdmi_keras_entry *sought)
{
    size_t low = 0, high = names->n_entries;
    while (low < high) { /* the first that is not before the sought one */
        size_t middle = low + (high - low) / 2;
        if (by_layer(&names->entries[middle], sought) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tdmi_keras_has_layer(const struct tdmi_keras_names *names, const char *path, const char *layer)
{
    const struct tdmi_keras_entry sought = {.layer = layer, .variable = ""};
    for (size_t e = first_of(names, &sought);
         e < names->n_entries && strcmp(names->entries[e].layer, layer) == 0; e++)
        if (lies_in(names->entries[e].path, path))
            return true;
    return false;
}

int tdmi_keras_count_in(const struct tdmi_keras_names *names, const char *path)
{
    int n = 0;
    for (size_t e = 0; e < names->n_entries; e++)
        n += lies_in(names->entries[e].path, path);
    return n;
}

/*
 * A model that was loaded and saved in one session of TensorFlow has names like
 * "conv2d_1/conv2d_1_1/kernel:0": the group is the layer, or a model within the model, and what is
 * in it is named anew. Keras then goes by the order in the group.
 */
static const struct tdmi_weights_tensor *find_by_order(const struct tdmi_keras_names *names,
                                                       const struct tdmi_keras_place *place)
{
    const struct tdmi_weights_tensor *last = NULL;
    for (int i = 0; i <= place->number; i++) {
        const struct tdmi_weights_tensor *next = NULL;
        for (size_t e = 0; e < names->n_entries; e++) {
            const struct tdmi_weights_tensor *tensor = names->entries[e].tensor;
            if (lies_in(names->entries[e].path, place->path) && (!last || tensor > last) &&
                (!next || tensor < next))
                next = tensor;
        }
        if (!next)
            return NULL;
        last = next;
    }
    return last;
}

static const struct tdmi_weights_tensor *find_called(const struct tdmi_keras_names *names,
                                                     const struct tdmi_keras_place *place,
                                                     const char *variable)
{
    const struct tdmi_keras_entry sought = {.layer = place->layer, .variable = variable};
    size_t low = first_of(names, &sought);
    const struct tdmi_weights_tensor *found = NULL, *decided = NULL;
    int n_found = 0, n_decided = 0;
    for (; low < names->n_entries && strcmp(names->entries[low].layer, place->layer) == 0 &&
           strcmp(names->entries[low].variable, variable) == 0;
         low++) {
        found = names->entries[low].tensor;
        n_found++;
        if (place->path && lies_in(names->entries[low].path, place->path)) {
            decided = found;
            n_decided++;
        }
    }
    if (n_decided == 1)
        return decided;
    /* A tensor of that name in another group is another layer's, named anew. */
    const bool has_group = place->path && tdmi_keras_count_in(names, place->path) > 0;
    return n_found == 1 && !has_group ? found : NULL;
}

const struct tdmi_weights_tensor *tdmi_keras_find(const struct tdmi_keras_names *names,
                                                  const struct tdmi_keras_place *place,
                                                  enum tdmi_keras_variable variable)
{
    char number[16];
    snprintf(number, sizeof number, "%d", place->number);
    if (place->is_by_order)
        return find_by_order(names, place);
    if (names->is_numbered)
        return find_called(names, place, number);
    for (int i = 0; i < 2 && variables[variable][i]; i++) {
        const struct tdmi_weights_tensor *found = find_called(names, place, variables[variable][i]);
        if (found)
            return found;
    }
    const bool is_own_group = place->path && strcmp(place->path, place->layer) == 0;
    return is_own_group && !tdmi_keras_has_layer(names, place->path, place->layer)
               ? find_by_order(names, place)
               : NULL;
}
