/*
 * TensorFlow.js: a model.json, which says the network ("modelTopology") and what lies where
 * ("weightsManifest"), and files of values ("shards") beside it, read as one. The path is that of
 * the model.json or of its folder.
 *
 * Shards are named by the file, so a name is held to the folder: no absolute path, no "..", nothing
 * empty; and it stands there once. Links give one file many names: what is read is bounded by what
 * there is, before anything is read.
 */
#include "base/text/json.h"
#include "io/storage/storage.h"
#include "weights/form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- shards ------------------------------------------------------------------------------ */

enum { MOST_SHARDS = 4096, MOST_READINGS = 16 };
#define ALWAYS_READ ((uint64_t)64 << 20)

struct shard {
    const char *name,
        *path; /* in the manifest; of the file, NULL: the name is no path in the folder */
    enum tdmi_file_kind kind;
    uint64_t identity[2], n_bytes;
};

/* Is it a path to a file of the folder, or below? */
static bool stays_inside(const char *path)
{
    for (const char *at = path;; at++) {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && memcmp(at, "..", 2) == 0))
            return false;
        at += n;
        if (*at == '\0')
            return strchr(path, '\\') == NULL;
    }
}

static int by_name(const void *a, const void *b)
{
    const struct shard *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

static int by_identity(const void *a, const void *b)
{
    const struct shard *const *left = a, *const *right = b;
    const uint64_t *x = (*left)->identity, *y = (*right)->identity;
    int i = x[0] == y[0];
    return (x[i] > y[i]) - (x[i] < y[i]);
}

static tdm_status find_shard(tdmi_weights *weights, const char *folder, struct shard *shard,
                             tdm_error *err)
{
    struct tdmi_place place = {0};
    if (!stays_inside(shard->name))
        return TDM_OK; /* its group refuses it */
    shard->path = tdmi_path_join(tdmi_weights_arena(weights), folder, shard->name);
    TDMI_CHECK_MEMORY(shard->path, err);
    TDM_TRY(tdmi_storage_look(shard->path, &place, err), err, "cannot read %s",
            tdmi_weights_path(weights));
    shard->kind = place.kind;
    shard->n_bytes = (uint64_t)place.size_bytes;
    memcpy(shard->identity, place.identity, sizeof shard->identity);
    return TDM_OK;
}

/* No shard may be named twice, in one group or in two, nor one file by many links: many times the
 * bytes of the folder would be read. */
static tdm_status find_shards(tdmi_weights *weights, const char *folder, struct shard *shards,
                              size_t n, tdm_error *err)
{
    uint64_t named = 0, there = 0;
    TDMI_AT_END(tdmi_free_at) const struct shard **sorted = NULL;
    TDMI_TRY(TDMI_NEW(sorted, n + 1, err));
    for (size_t i = 0; i < n; i++)
        sorted[i] = &shards[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 1; i < n; i++)
        if (*sorted[i]->name != '\0' && by_name(&sorted[i - 1], &sorted[i]) == 0)
            return TDMI_WEIGHTS_BAD(err, weights, "shard '%s' is listed twice", sorted[i]->name);
    for (size_t i = 0; i < n; i++)
        TDMI_TRY(find_shard(weights, folder, &shards[i], err));
    qsort(sorted, n, sizeof *sorted, by_identity);
    for (size_t i = 0; i < n; i++) {
        const bool has_none = sorted[i]->identity[0] == 0 && sorted[i]->identity[1] == 0;
        named += sorted[i]->n_bytes;
        if (i == 0 || has_none || by_identity(&sorted[i - 1], &sorted[i]) != 0)
            there += sorted[i]->n_bytes;
    }
    if (named <= ALWAYS_READ || named / MOST_READINGS <= there)
        return TDM_OK;
    return TDMI_WEIGHTS_BAD(err, weights,
                            "its shards are links to files of %zu bytes and would be read as %zu: "
                            "at most %d times what there is, and 64 MiB always, is accepted",
                            (size_t)there, (size_t)named, MOST_READINGS);
}

/* All of them together have needed bytes. */
static tdm_status check_shards(const tdmi_weights *weights, const struct shard *shards, size_t n,
                               uint64_t needed, tdm_error *err)
{
    uint64_t found = 0;
    for (size_t i = 0; i < n; found += shards[i++].n_bytes) {
        if (shards[i].path == NULL)
            return TDMI_WEIGHTS_BAD(
                err, weights, "the path '%s' of a shard leaves the model's folder", shards[i].name);
        if (shards[i].kind != TDMI_FILE_REGULAR)
            return tdmi_storage_refuse(shards[i].path, shards[i].kind, "a shard of weights", err);
    }
    if (found != needed)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "the shards of a group have %zu bytes and its shapes need %zu: a "
                                "file is cut short, or of another model",
                                (size_t)found, (size_t)needed);
    return TDM_OK;
}

static tdm_status read_shards(tdmi_weights *weights, const struct shard *shards, size_t n,
                              uint64_t n_bytes, const uint8_t **bytes, tdm_error *err)
{
    uint8_t *at = NULL;
    TDMI_ARENA_NEW(tdmi_weights_arena(weights), at, n_bytes, err);
    *bytes = at;
    for (size_t i = 0; i < n; at += shards[i++].n_bytes) {
        TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *file = NULL;
        TDMI_TRY(tdmi_storage_open(shards[i].path, &file, err));
        if ((uint64_t)tdmi_storage_size(file) < shards[i].n_bytes)
            return TDMI_WEIGHTS_BAD(err, weights, "the file '%s' became shorter meanwhile",
                                    shards[i].path);
        if (shards[i].n_bytes > 0)
            TDMI_TRY(tdmi_storage_read(file, 0, at, (size_t)shards[i].n_bytes, err));
    }
    return TDM_OK;
}

/* ---- entries of weights ------------------------------------------------------------------ */

enum coding { AS_IT_IS, SCALED_8, SCALED_16 };

struct weight {
    struct tdmi_weights_tensor tensor; /* n_values too; not bytes */
    enum coding coding;
    double scale, least; /* value = least + scale × what is stored */
    uint64_t stored_bytes;
};

static bool read_type(const tdm_json_value *entry, struct weight *weight)
{
    static const struct {
        const char *name;
        enum tdmi_dtype dtype;
    } types[] = {{"float32", TDMI_DTYPE_F32},
                 {"float16", TDMI_DTYPE_F16},
                 {"int32", TDMI_DTYPE_I32},
                 {"uint8", TDMI_DTYPE_U8},
                 {"bool", TDMI_DTYPE_BOOL}};
    const char *name = tdm_json_as_string(tdm_json_member(entry, "dtype"), "");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, name) == 0) {
            weight->tensor.dtype = types[i].dtype;
            return true;
        }
    return false;
}

static bool read_coding(const tdm_json_value *entry, struct weight *weight, size_t *width)
{
    const tdm_json_value *coding = tdm_json_member(entry, "quantization");
    const char *type = tdm_json_as_string(tdm_json_member(coding, "dtype"), "");
    *width = tdmi_dtype_bytes(weight->tensor.dtype);
    if (coding == NULL || tdm_json_kind_of(coding) == TDM_JSON_NULL)
        return true;
    bool is_float = weight->tensor.dtype == TDMI_DTYPE_F32;
    if (strcmp(type, "float16") == 0 && is_float) {
        weight->tensor.dtype = TDMI_DTYPE_F16;
        *width = 2;
        return true;
    }
    weight->coding = strcmp(type, "uint8") == 0    ? SCALED_8
                     : strcmp(type, "uint16") == 0 ? SCALED_16
                                                   : AS_IT_IS;
    *width = weight->coding == SCALED_8 ? 1 : 2;
    weight->scale = tdm_json_as_number(tdm_json_member(coding, "scale"), (double)NAN);
    weight->least = tdm_json_as_number(tdm_json_member(coding, "min"), (double)NAN);
    return weight->coding != AS_IT_IS && (is_float || weight->tensor.dtype == TDMI_DTYPE_I32) &&
           isfinite(weight->scale) && isfinite(weight->least);
}

static tdm_status read_weight(const tdmi_weights *weights, const tdm_json_value *entry,
                              struct weight *weight, tdm_error *err)
{
    const tdm_json_value *shape = tdm_json_member(entry, "shape");
    const char *name = tdm_json_as_string(tdm_json_member(entry, "name"), NULL);
    size_t rank = tdm_json_count(shape), width = 0;
    uint64_t n = 1;
    *weight = (struct weight){.tensor = {.name = name, .rank = (int)rank}};
    if (name == NULL || tdm_json_kind_of(shape) != TDM_JSON_ARRAY || rank > TDMI_WEIGHTS_RANK)
        return TDMI_WEIGHTS_BAD(
            err, weights, "a weight of its manifest has no name, or no shape of at most %d axes",
            TDMI_WEIGHTS_RANK);
    if (!read_type(entry, weight))
        return TDMI_WEIGHTS_BAD(
            err, weights,
            "weight '%s' is of type '%s'; float32, float16, int32, uint8 and bool are read", name,
            tdm_json_as_string(tdm_json_member(entry, "dtype"), ""));
    if (!read_coding(entry, weight, &width))
        return TDMI_WEIGHTS_BAD(err, weights,
                                "weight '%s' has an unsupported quantisation: uint8 and "
                                "uint16 with scale and min, and float16 are",
                                name);
    for (size_t i = 0; i < rank; i++) {
        int64_t size = tdm_json_as_integer(tdm_json_at(shape, i), -1);
        weight->tensor.shape[i] = size;
        if (size < 0 || __builtin_mul_overflow(n, (uint64_t)size, &n) || n > INT64_MAX / 8)
            return TDMI_WEIGHTS_BAD(err, weights, "weight '%s': its shape is none", name);
    }
    weight->tensor.n_values = (int64_t)n;
    weight->stored_bytes = n * width;
    return TDM_OK;
}

/* ---- values ------------------------------------------------------------------------------ */

static void scale_values(const struct weight *weight, const uint8_t *from, void *to)
{
    float *floats = to;
    int32_t *integers = to;
    for (int64_t i = 0; i < weight->tensor.n_values; i++) {
        unsigned stored =
            weight->coding == SCALED_8 ? from[i] : from[2 * i] | (unsigned)from[2 * i + 1] << 8;
        double value = stored * weight->scale + weight->least;
        if (weight->tensor.dtype == TDMI_DTYPE_F32)
            floats[i] = (float)value;
        else
            integers[i] = (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, floor(value + 0.5)));
    }
}

static tdm_status add_weight(tdmi_weights *weights, struct weight *weight, const uint8_t *bytes,
                             tdm_error *err)
{
    uint8_t *values = NULL;
    weight->tensor.data = bytes;
    if (weight->coding == AS_IT_IS)
        return tdmi_weights_add(weights, &weight->tensor, weight->stored_bytes, err);
    const uint64_t n_bytes = 4 * (uint64_t)weight->tensor.n_values;
    TDMI_ARENA_NEW(tdmi_weights_arena(weights), values, n_bytes, err);
    scale_values(weight, bytes, values);
    weight->tensor.data = values;
    return tdmi_weights_add(weights, &weight->tensor, n_bytes, err);
}

/* ---- the group --------------------------------------------------------------------------- */

static tdm_status read_weights(const tdmi_weights *weights, const tdm_json_value *entries,
                               struct weight *list, uint64_t *needed, tdm_error *err)
{
    *needed = 0;
    for (size_t i = 0; i < tdm_json_count(entries); i++) {
        TDMI_TRY(read_weight(weights, tdm_json_at(entries, i), &list[i], err));
        if (__builtin_add_overflow(*needed, list[i].stored_bytes, needed) || *needed > SIZE_MAX)
            return TDMI_WEIGHTS_BAD(err, weights, "its weights do not fit in memory");
    }
    return TDM_OK;
}

static tdm_status add_group(tdmi_weights *weights, const tdm_json_value *group,
                            const struct shard *shards, size_t n_shards, tdm_error *err)
{
    const tdm_json_value *entries = tdm_json_member(group, "weights");
    const size_t n = tdm_json_count(entries);
    uint64_t needed = 0;
    const uint8_t *bytes = NULL;
    if (tdm_json_kind_of(tdm_json_member(group, "paths")) != TDM_JSON_ARRAY ||
        tdm_json_kind_of(entries) != TDM_JSON_ARRAY)
        return TDMI_WEIGHTS_BAD(
            err, weights,
            "a group of its weightsManifest is not a list of weights and one of paths");
    TDMI_AT_END(tdmi_free_at) struct weight *list = NULL;
    TDMI_TRY(TDMI_NEW(list, n + 1, err));
    TDMI_TRY(read_weights(weights, entries, list, &needed, err));
    TDMI_TRY(check_shards(weights, shards, n_shards, needed, err));
    TDMI_TRY(read_shards(weights, shards, n_shards, needed, &bytes, err));
    for (size_t i = 0; i < n; bytes += list[i++].stored_bytes)
        TDMI_TRY(add_weight(weights, &list[i], bytes, err));
    return TDM_OK;
}

/* Add the tensors of all groups to the list; their shards lie in folder ("" is here). TDM_E_INPUT:
 * a path that leaves the folder or is listed twice, a type that is not read, or shards of another
 * size than the shapes need, which is found out before memory is allocated. */
static tdm_status add_groups(tdmi_weights *weights, const char *folder,
                             const tdm_json_value *groups, tdm_error *err)
{
    size_t n = 0, n_all = 0;
    for (size_t i = 0; i < tdm_json_count(groups); i++)
        n_all += tdm_json_count(tdm_json_member(tdm_json_at(groups, i), "paths"));
    if (n_all > MOST_SHARDS)
        return TDMI_WEIGHTS_BAD(err, weights, "it names %zu shards; at most %d are read", n_all,
                                MOST_SHARDS);
    TDMI_AT_END(tdmi_free_at) struct shard *shards = NULL;
    TDMI_TRY(TDMI_NEW(shards, n_all + 1, err));
    for (size_t i = 0; i < tdm_json_count(groups); i++) {
        const tdm_json_value *paths = tdm_json_member(tdm_json_at(groups, i), "paths");
        for (size_t k = 0; k < tdm_json_count(paths); k++)
            shards[n++].name = tdm_json_as_string(tdm_json_at(paths, k), "");
    }
    TDMI_TRY(find_shards(weights, folder, shards, n_all, err));
    n = 0;
    for (size_t i = 0; i < tdm_json_count(groups); i++) {
        const tdm_json_value *group = tdm_json_at(groups, i);
        const size_t n_shards = tdm_json_count(tdm_json_member(group, "paths"));
        TDMI_TRY(add_group(weights, group, shards + n, n_shards, err));
        n += n_shards;
    }
    return TDM_OK;
}

/* ---- a model ----------------------------------------------------------------------------- */

static const char model_name[] = "model.json";
#define MOST_JSON_BYTES ((size_t)16 << 20)

static bool has_model(const char *folder)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {.block_bytes = 1024};
    const char *path = tdmi_path_join(&arena, folder, model_name);
    return path != NULL && tdmi_file_kind_of(path) == TDMI_FILE_REGULAR;
}

static bool is_form(const struct tdmi_weights_input *input)
{
    static const char key[] = "\"weightsManifest\"";
    size_t at = 0;
    if (input->is_folder)
        return has_model(input->path);
    while (at < input->n_bytes && strchr(" \t\r\n", input->bytes[at]) != NULL &&
           input->bytes[at] != '\0')
        at++;
    return at < input->n_bytes && input->bytes[at] == '{' &&
           memmem(input->bytes, input->n_bytes, key, sizeof key - 1) != NULL;
}

/* ---- the network ------------------------------------------------------------------------- */

static tdm_status note_text(tdmi_weights *weights, const char *key, const tdm_json_value *value,
                            tdm_error *err)
{
    const char *text = tdm_json_as_string(value, NULL);
    return text == NULL ? TDM_OK : tdmi_weights_note(weights, key, text, strlen(text), err);
}

/* Keras's topology holds the config among other things, or is the config itself; a graph-model's is
 * neither, and is left. */
static tdm_status note_topology(tdmi_weights *weights, const tdm_json_value *topology,
                                tdm_error *err)
{
    const tdm_json_value *config = tdm_json_member(topology, "model_config");
    const char *json = NULL;
    size_t length = 0;
    TDMI_TRY(note_text(weights, "keras_version", tdm_json_member(topology, "keras_version"), err));
    if (tdm_json_as_string(config, NULL) != NULL)
        return note_text(weights, "model_config", config, err);
    if (config == NULL && tdm_json_member(topology, "class_name") != NULL)
        config = topology;
    if (config == NULL)
        return TDM_OK;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(0);
    tdmi_json_copy(writer, NULL, config);
    TDMI_TRY(tdm_json_finish(writer, &json, &length, err));
    return tdmi_weights_note(weights, "model_config", json, length, err);
}

/* ---- the file ---------------------------------------------------------------------------- */

static tdm_status read_model(tdmi_weights *weights, const char *folder, const tdm_json_value *root,
                             tdm_error *err)
{
    static const char *const facts[] = {"format", "generatedBy", "convertedBy"};
    const tdm_json_value *groups = tdm_json_member(root, "weightsManifest");
    if (tdm_json_kind_of(groups) != TDM_JSON_ARRAY)
        return TDMI_WEIGHTS_BAD(err, weights, "it has no list \"weightsManifest\"");
    TDMI_TRY(add_groups(weights, folder, groups, err));
    TDMI_TRY(note_topology(weights, tdm_json_member(root, "modelTopology"), err));
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        TDMI_TRY(note_text(weights, facts[i], tdm_json_member(root, facts[i]), err));
    if (tdmi_weights_count(weights) == 0)
        return TDMI_WEIGHTS_BAD(err, weights, "there are no weights in it");
    return TDM_OK;
}

/* The folder of a path, "" for none. */
static char *folder_of(tdmi_weights *weights, const char *path)
{
    char *folder = tdmi_arena_copy(tdmi_weights_arena(weights), path);
    if (folder != NULL) {
        char *name = folder + (tdmi_path_name(folder) - folder);
        *(name > folder + 1 ? name - 1 : name) = '\0';
    }
    return folder;
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *loaded = NULL;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const void *text = input->bytes;
    size_t length = input->n_bytes;
    const char *path = input->is_folder
                           ? tdmi_path_join(tdmi_weights_arena(weights), input->path, model_name)
                           : input->path;
    const char *folder = path == NULL ? NULL : folder_of(weights, path);
    TDMI_CHECK_MEMORY(folder, err);
    if (input->is_folder) {
        TDMI_TRY(tdmi_file_read(path, MOST_JSON_BYTES, &loaded, &length, err));
        text = loaded;
    }
    if (length > MOST_JSON_BYTES)
        return TDMI_WEIGHTS_BAD(err, weights, "it has %zu bytes; a model.json of %zu is read",
                                length, MOST_JSON_BYTES);
    TDMI_TRY(tdm_json_read(text, length, path, &document, err));
    return read_model(weights, folder, tdm_json_root(document), err);
}

const struct tdmi_weights_form tdmi_weights_form_tfjs = {
    .name = "tfjs",
    .what = "TensorFlow.js (model.json)",
    .is_form = is_form,
    .read = read,
};
