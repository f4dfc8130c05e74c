/*
 * Keras's weights in HDF5: any HDF5 file is taken for one of Keras.
 *
 * Keras 1 and 2, and .h5 files of Keras 3, say the order: a group has the attribute "layer_names",
 * each of its layers one "weight_names". That group is "model_weights" of a full model, whose root
 * has "model_config", or the root itself. Lists that do not fit in one attribute are in parts:
 * "layer_names0", "layer_names1". Files *.weights.h5 of Keras 3 are a tree of groups instead, whose
 * arrays lie in groups called "vars", numbered.
 *
 * An optimizer's state is left out: it is of no use to a network.
 */
#include "weights/keras/h5.h"
#include "base/text/text.h"
#include "weights/hdf5/hdf5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 1000, DEPTH_MAX = 32, GROUPS_MAX = 16384, NAME_BYTES_MAX = 1024 };

struct reader {
    tdmi_weights *weights;
    tdmi_hdf5 *file;
    tdmi_text *name; /* of the tensor or group at hand */
    int n_groups;
};

struct names {
    struct tdmi_hdf5_text *items; /* freed by who reads them, also after a failure */
    uint64_t n;
};

static void release_names(struct names *names)
{
    tdmi_free(names->items);
}

static struct tdmi_hdf5_text text_of(const char *text)
{
    return (struct tdmi_hdf5_text){text, strlen(text)};
}

/* ---- facts ------------------------------------------------------------------------------- */

/* A text attribute as a fact; none is none, and one that is no text is no fact. */
static tdm_status note_attribute(struct reader *reader, const tdmi_hdf5_object *object,
                                 const char *attribute, const char *key, tdm_error *err)
{
    struct tdmi_hdf5_values values;
    struct tdmi_hdf5_text text;
    bool is_there;
    TDMI_TRY(tdmi_hdf5_attribute(reader->file, object, attribute, &values, &is_there, err));
    bool is_text = values.kind == TDMI_HDF5_FIXED_TEXT || values.kind == TDMI_HDF5_VARIABLE_TEXT;
    if (!is_there || !is_text || values.n_values != 1)
        return TDM_OK;
    TDMI_TRY(tdmi_hdf5_text_at(reader->file, &values, 0, &text, err));
    return tdmi_weights_note(reader->weights, key, text.bytes, text.length_bytes, err);
}

static tdm_status note_facts(struct reader *reader, const tdmi_hdf5_object *object, tdm_error *err)
{
    static const char *const keys[] = {"model_config",    "keras_version", "backend",
                                       "training_config", "network",       "classes",
                                       "preprocess",      "lineage"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        TDMI_TRY(note_attribute(reader, object, keys[i], keys[i], err));
    return TDM_OK;
}

/* ---- one tensor -------------------------------------------------------------------------- */

/* Keras 3 stores bfloat16 as two opaque bytes and says so beside them. */
static tdm_status is_bfloat16(struct reader *reader, const tdmi_hdf5_object *object,
                              const struct tdmi_hdf5_values *values, bool *is, tdm_error *err)
{
    struct tdmi_hdf5_values said;
    struct tdmi_hdf5_text text;
    *is = false;
    if (values->kind != TDMI_HDF5_OPAQUE || values->item_bytes != 2)
        return TDM_OK;
    TDMI_TRY(tdmi_hdf5_attribute(reader->file, object, "dtype", &said, is, err));
    if (!*is || said.n_values != 1)
        return TDM_OK;
    TDMI_TRY(tdmi_hdf5_text_at(reader->file, &said, 0, &text, err));
    *is = tdmi_text_is(text.bytes, text.length_bytes, "bfloat16");
    return TDM_OK;
}

/* The dataset called reader->name-> */
static tdm_status add_tensor(struct reader *reader, tdmi_hdf5_object *object, tdm_error *err)
{
    bool is_wide = false;
    struct tdmi_hdf5_values values;
    const char *name = tdmi_text_string(reader->name);
    TDMI_TRY(tdmi_text_status(reader->name, err));
    if (strlen(name) != reader->name->length_bytes || strlen(name) > NAME_BYTES_MAX)
        return TDMI_WEIGHTS_BAD(
            err, reader->weights,
            "tensor '%s' has a name of %zu bytes with a zero among them, or of more than %d", name,
            reader->name->length_bytes, NAME_BYTES_MAX);
    if (tdmi_hdf5_mark(object))
        return TDMI_WEIGHTS_BAD(err, reader->weights, "tensor '%s' is listed twice", name);
    TDM_TRY(tdmi_hdf5_dataset(reader->file, object, &values, err), err, "reading tensor '%s'",
            name);
    TDM_TRY(is_bfloat16(reader, object, &values, &is_wide, err), err, "reading tensor '%s'", name);
    if (is_wide)
        values.dtype = TDMI_DTYPE_BF16;
    else if (values.kind != TDMI_HDF5_NUMBERS)
        return TDMI_WEIGHTS_BAD(err, reader->weights,
                                "tensor '%s' is made of %s of %zu bytes; numbers are read", name,
                                values.type_name, values.item_bytes);
    struct tdmi_weights_tensor tensor = {
        .name = name, .dtype = values.dtype, .rank = values.rank, .data = values.data};
    memcpy(tensor.shape, values.shape, sizeof values.shape);
    return tdmi_weights_add(reader->weights, &tensor, values.n_values * values.item_bytes, err);
}

/* ---- by lists of names ------------------------------------------------------------------- */

static tdm_status append(struct reader *reader, const struct tdmi_hdf5_values *values,
                         struct names *names, tdm_error *err)
{
    if (values->n_values == 0)
        return TDM_OK;
    struct tdmi_hdf5_text *more =
        tdmi_realloc(names->items, (size_t)(names->n + values->n_values), sizeof *names->items);
    TDMI_CHECK_MEMORY(more, err);
    names->items = more;
    for (uint64_t i = 0; i < values->n_values; i++)
        TDMI_TRY(tdmi_hdf5_text_at(reader->file, values, i, &names->items[names->n++], err));
    return TDM_OK;
}

/* The attribute of that name, or its parts. */
static tdm_status read_names(struct reader *reader, const tdmi_hdf5_object *group, const char *key,
                             struct names *names, bool *is_there, tdm_error *err)
{
    struct tdmi_hdf5_values values;
    TDMI_TRY(tdmi_hdf5_attribute(reader->file, group, key, &values, is_there, err));
    if (*is_there)
        return append(reader, &values, names, err);
    bool has_part = true;
    for (int part = 0; has_part; part++) {
        char attribute[64];
        if (part == PARTS_MAX)
            return TDMI_WEIGHTS_BAD(err, reader->weights, "'%s' is in more than %d parts", key,
                                    PARTS_MAX);
        snprintf(attribute, sizeof attribute, "%s%d", key, part);
        TDMI_TRY(tdmi_hdf5_attribute(reader->file, group, attribute, &values, &has_part, err));
        *is_there |= has_part;
        if (has_part)
            TDMI_TRY(append(reader, &values, names, err));
    }
    return TDM_OK;
}

/* The member of a group that a list promises. */
static tdm_status find_listed(struct reader *reader, tdmi_hdf5_object *group,
                              struct tdmi_hdf5_text path, const char *what,
                              tdmi_hdf5_object **object, tdm_error *err)
{
    TDMI_TRY(tdmi_hdf5_find(reader->file, group, path, object, err));
    if (*object == NULL)
        return TDMI_WEIGHTS_BAD(err, reader->weights, "%s '%.*s' is listed and not there", what,
                                tdmi_precision(path.length_bytes), path.bytes);
    return TDM_OK;
}

static tdm_status read_layer(struct reader *reader, tdmi_hdf5_object *group,
                             struct tdmi_hdf5_text layer, tdm_error *err)
{
    TDMI_AT_END(release_names) struct names names = {0};
    bool is_there = false;
    TDMI_TRY(read_names(reader, group, "weight_names", &names, &is_there, err));
    for (uint64_t i = 0; i < names.n; i++) {
        tdmi_hdf5_object *object = NULL;
        TDMI_TRY(find_listed(reader, group, names.items[i], "weight", &object, err));
        tdmi_text_clear(reader->name);
        tdmi_text_add(reader->name, layer.bytes, layer.length_bytes);
        tdmi_text_add(reader->name, "/", 1);
        tdmi_text_add(reader->name, names.items[i].bytes, names.items[i].length_bytes);
        TDMI_TRY(add_tensor(reader, object, err));
    }
    return TDM_OK;
}

/* Weights that belong to no layer are in a group that no list names. */
static tdm_status read_layers(struct reader *reader, tdmi_hdf5_object *group,
                              const struct names *layers, tdm_error *err)
{
    const struct tdmi_hdf5_text top = text_of("top_level_model_weights");
    tdmi_hdf5_object *object = NULL;
    for (uint64_t i = 0; i < layers->n; i++) {
        TDMI_TRY(find_listed(reader, group, layers->items[i], "layer", &object, err));
        TDM_TRY(read_layer(reader, object, layers->items[i], err), err, "reading layer '%.*s'",
                tdmi_precision(layers->items[i].length_bytes), layers->items[i].bytes);
    }
    TDMI_TRY(tdmi_hdf5_find(reader->file, group, top, &object, err));
    if (object != NULL)
        TDMI_TRY(read_layer(reader, object, top, err));
    return TDM_OK;
}

/* ---- by groups --------------------------------------------------------------------------- */

static tdm_status walk(struct reader *reader, tdmi_hdf5_object *group, bool is_vars, int depth,
                       tdm_error *err);

static tdm_status visit(struct reader *reader, const struct tdmi_hdf5_link *link, bool is_vars,
                        int depth, tdm_error *err)
{
    tdmi_hdf5_object *object = NULL;
    size_t length = reader->name->length_bytes;
    TDMI_TRY(tdmi_hdf5_follow(reader->file, link, &object, err));
    if (length > 0)
        tdmi_text_add(reader->name, "/", 1);
    tdmi_text_add(reader->name, link->name.bytes, link->name.length_bytes);
    TDMI_TRY(tdmi_text_status(reader->name, err));
    if (tdmi_hdf5_is_group(object))
        TDMI_TRY(walk(reader, object,
                      tdmi_text_is(link->name.bytes, link->name.length_bytes, "vars"), depth + 1,
                      err));
    else if (is_vars)
        TDMI_TRY(add_tensor(reader, object, err));
    else
        return TDMI_WEIGHTS_BAD(
            err, reader->weights,
            "'%s' is an array outside of the groups 'vars' in which Keras keeps weights",
            reader->name->bytes);
    reader->name->length_bytes = length;
    reader->name->bytes[length] = 0;
    return TDM_OK;
}

/* The name that a layer has in the model's configuration stands beside its arrays: a fact called
 * as its group. */
static tdm_status note_layer(struct reader *reader, const tdmi_hdf5_object *vars, tdm_error *err)
{
    char key[NAME_BYTES_MAX + 1];
    snprintf(key, sizeof key, "%s", tdmi_text_string(reader->name));
    char *slash = strrchr(key, '/');
    if (slash == NULL)
        return TDM_OK; /* the model itself */
    *slash = 0;
    return note_attribute(reader, vars, "name", key, err);
}

static tdm_status walk(struct reader *reader, tdmi_hdf5_object *group, bool is_vars, int depth,
                       tdm_error *err)
{
    const struct tdmi_hdf5_link *links;
    size_t n_links = 0;
    const char *name = tdmi_text_string(reader->name);
    if (tdmi_hdf5_mark(group))
        return TDMI_WEIGHTS_BAD(err, reader->weights, "group '%s' is reached by two ways", name);
    if (depth > DEPTH_MAX || ++reader->n_groups > GROUPS_MAX ||
        reader->name->length_bytes > NAME_BYTES_MAX)
        return TDMI_WEIGHTS_BAD(err, reader->weights,
                                "there are more than %d groups, or '%s' is more than %d deep",
                                GROUPS_MAX, name, DEPTH_MAX);
    if (is_vars)
        TDMI_TRY(note_layer(reader, group, err));
    TDMI_TRY(tdmi_hdf5_links(reader->file, group, &links, &n_links, err));
    for (size_t i = 0; i < n_links; i++)
        if (depth > 0 ||
            (!tdmi_text_is(links[i].name.bytes, links[i].name.length_bytes, "optimizer") &&
             !tdmi_text_is(links[i].name.bytes, links[i].name.length_bytes, "optimizer_weights")))
            TDMI_TRY(visit(reader, &links[i], is_vars, depth, err));
    return TDM_OK;
}

/* ---- a file ------------------------------------------------------------------------------ */

static tdm_status read_all(struct reader *reader, struct names *layers, tdm_error *err)
{
    tdmi_hdf5_object *root = tdmi_hdf5_root(reader->file), *group = NULL;
    bool is_listed = false;
    TDMI_TRY(note_facts(reader, root, err));
    TDMI_TRY(tdmi_hdf5_find(reader->file, root, text_of("model_weights"), &group, err));
    if (group == NULL)
        group = root;
    else
        TDMI_TRY(note_facts(reader, group, err));
    TDMI_TRY(read_names(reader, group, "layer_names", layers, &is_listed, err));
    if (is_listed)
        return read_layers(reader, group, layers, err);
    TDMI_TRY(walk(reader, root, false, 0, err));
    if (tdmi_weights_count(reader->weights) == 0)
        return TDMI_WEIGHTS_BAD(err, reader->weights,
                                "it is an HDF5 file, and not one of Keras: it has neither "
                                "'layer_names' nor groups called 'vars' with arrays");
    return TDM_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct tdmi_weights_tensor *const *left = a, *const *right = b;
    uintptr_t x = (uintptr_t)(*left)->data, y = (uintptr_t)(*right)->data;
    return (x > y) - (x < y);
}

/* No byte is in two tensors. */
static tdm_status check_apart(const struct reader *reader, tdm_error *err)
{
    size_t n = 0, n_tensors = tdmi_weights_count(reader->weights);
    TDMI_AT_END(tdmi_free_at) const struct tdmi_weights_tensor **sorted = NULL;
    TDMI_TRY(TDMI_NEW(sorted, n_tensors + 1, err));
    for (size_t i = 0; i < n_tensors; i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(reader->weights, i);
        if (tensor->bytes > 0)
            sorted[n++] = tensor;
    }
    qsort(sorted, n, sizeof *sorted, by_place);
    for (size_t i = 1; i < n; i++)
        if ((uintptr_t)sorted[i]->data - (uintptr_t)sorted[i - 1]->data < sorted[i - 1]->bytes)
            return TDMI_WEIGHTS_BAD(err, reader->weights,
                                    "tensors '%s' and '%s' share bytes of the file",
                                    sorted[i - 1]->name, sorted[i]->name);
    return TDM_OK;
}

static void release(void *file)
{
    tdmi_hdf5_close(file);
}

tdm_status tdmi_keras_h5_read(tdmi_weights *weights, const uint8_t *bytes, size_t n_bytes,
                              const char *name, tdm_error *err)
{
    TDMI_AT_END(release_names) struct names layers = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text path = {0};
    struct reader reader = {.weights = weights, .name = &path};
    TDMI_TRY(tdmi_hdf5_open(bytes, n_bytes, name, true, &reader.file, err));
    TDMI_TRY(tdmi_weights_keep(weights, reader.file, release, err));
    TDMI_TRY(read_all(&reader, &layers, err));
    return check_apart(&reader, err);
}

static bool is_form(const struct tdmi_weights_input *input)
{
    return !input->is_folder && tdmi_hdf5_is(input->bytes, input->n_bytes);
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    return tdmi_keras_h5_read(weights, input->bytes, input->n_bytes, input->path, err);
}

const struct tdmi_weights_form tdmi_weights_form_keras_h5 = {
    .name = "keras-h5",
    .what = "Keras .h5",
    .is_form = is_form,
    .read = read,
};
