/*
 * The weights of a TensorFlow.js manifest: shards read as one, quantised numbers as what they stand
 * for.
 *
 * Shards are named by the file, so a name is held to the folder: no absolute path, no "..", nothing
 * empty; and it stands there once. Links give one file many names: what is read is bounded by what
 * there is, before anything is read.
 */
#include "weights/tfjs/tfjs_weights.h"
#include "base/memory.h"
#include "io/storage/storage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/banned.h"
#include "weights/errors.h"

/* ---- what a manifest may read ------------------------------------------------------------- */

enum { MOST_SHARDS = 4096, MOST_READINGS = 16 };
#define ALWAYS_READ ((uint64_t)64 << 20)

struct named {
    const char *path;
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

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->path, ((const struct named *)b)->path);
}

static int by_identity(const void *a, const void *b)
{
    const uint64_t *x = ((const struct named *)a)->identity;
    const uint64_t *y = ((const struct named *)b)->identity;
    int i = x[0] == y[0];
    return (x[i] > y[i]) - (x[i] < y[i]);
}

/* What is no path at all, or leads to no file, is refused by the group. */
static tdm_status look(const char *folder, struct named *shard, tdm_error *err)
{
    struct tdmi_place place = {0};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {.block_bytes = 1024};
    if (!stays_inside(shard->path))
        return TDM_OK;
    const char *path = tdmi_path_join(&arena, folder, shard->path);
    TDMI_NEED_MEMORY(path, err);
    TDMI_TRY(tdmi_storage_look(path, &place, err));
    shard->n_bytes = (uint64_t)place.size_bytes;
    memcpy(shard->identity, place.identity, sizeof shard->identity);
    return TDM_OK;
}

static tdm_status check_bytes(const tdmi_weights *weights, const char *folder, struct named *all,
                              size_t n, tdm_error *err)
{
    uint64_t named = 0, there = 0;
    for (size_t i = 0; i < n; i++)
        TDM_TRY(look(folder, &all[i], err), err, "cannot read %s", tdmi_weights_path(weights));
    qsort(all, n, sizeof *all, by_identity);
    for (size_t i = 0; i < n; i++) {
        const bool has_none = all[i].identity[0] == 0 && all[i].identity[1] == 0;
        named += all[i].n_bytes;
        there += i == 0 || has_none || by_identity(&all[i - 1], &all[i]) != 0 ? all[i].n_bytes : 0;
    }
    if (named <= ALWAYS_READ || named / MOST_READINGS <= there)
        return TDM_OK;
    return TDMI_WEIGHTS_BAD(err, weights,
                            "its shards are links to files of %zu bytes and would be read as %zu: "
                            "at most %d times what there is, and 64 MiB always, is accepted",
                            (size_t)there, (size_t)named, MOST_READINGS);
}

tdm_status tdmi_tfjs_check_shards(const tdmi_weights *weights, const char *folder,
                                  const tdm_json_value *groups, tdm_error *err)
{
    size_t n = 0, n_all = 0;
    for (size_t i = 0; i < tdm_json_count(groups); i++)
        n_all += tdm_json_count(tdm_json_member(tdm_json_at(groups, i), "paths"));
    if (n_all > MOST_SHARDS)
        return TDMI_WEIGHTS_BAD(err, weights, "it names %zu shards; at most %d are read", n_all,
                                MOST_SHARDS);
    TDMI_AT_END(tdmi_free_at) struct named *all = NULL;
    TDMI_TRY(TDMI_NEW(all, n_all + 1, err));
    for (size_t i = 0; i < tdm_json_count(groups); i++) {
        const tdm_json_value *paths = tdm_json_member(tdm_json_at(groups, i), "paths");
        for (size_t k = 0; k < tdm_json_count(paths); k++)
            all[n++].path = tdm_json_as_string(tdm_json_at(paths, k), "");
    }
    qsort(all, n, sizeof *all, by_path);
    for (size_t i = 1; i < n; i++)
        if (*all[i].path != '\0' && by_path(&all[i - 1], &all[i]) == 0)
            return TDMI_WEIGHTS_BAD(err, weights, "shard '%s' is listed twice", all[i].path);
    return check_bytes(weights, folder, all, n, err);
}

/* ---- what a weight says of itself -------------------------------------------------------- */

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
                                "weight '%s' is quantised in a way that is not read: uint8 and "
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
    void *values = NULL;
    weight->tensor.data = bytes;
    if (weight->coding == AS_IT_IS)
        return tdmi_weights_add(weights, &weight->tensor, weight->stored_bytes, err);
    const uint64_t n_bytes = 4 * (uint64_t)weight->tensor.n_values;
    TDMI_NEED_MEMORY(values = tdmi_alloc((size_t)n_bytes, 1), err);
    scale_values(weight, bytes, values);
    weight->tensor.data = values;
    TDMI_TRY(tdmi_weights_keep(weights, values, tdmi_free, err));
    return tdmi_weights_add(weights, &weight->tensor, n_bytes, err);
}

/* ---- shards ------------------------------------------------------------------------------ */

struct shard {
    const char *path;
    uint64_t n_bytes;
};

/* Each shard's place and size; all of them are to have wanted bytes. */
static tdm_status find_shards(tdmi_weights *weights, const char *folder,
                              const tdm_json_value *paths, uint64_t wanted, struct shard *shards,
                              tdm_error *err)
{
    uint64_t found = 0;
    for (size_t i = 0; i < tdm_json_count(paths); i++) {
        const char *path = tdm_json_as_string(tdm_json_at(paths, i), "");
        struct tdmi_place place = {0};
        if (!stays_inside(path))
            return TDMI_WEIGHTS_BAD(err, weights,
                                    "the path '%s' of a shard leaves the model's folder", path);
        shards[i].path = tdmi_path_join(tdmi_weights_arena(weights), folder, path);
        TDMI_NEED_MEMORY(shards[i].path, err);
        TDM_TRY(tdmi_storage_look(shards[i].path, &place, err), err, "cannot read %s",
                tdmi_weights_path(weights));
        if (place.kind != TDMI_FILE_REGULAR)
            return tdmi_storage_refuse(shards[i].path, place.kind, "a shard of weights", err);
        shards[i].n_bytes = (uint64_t)place.size_bytes;
        found += shards[i].n_bytes;
    }
    if (found != wanted)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "the shards of a group have %zu bytes and its shapes ask for %zu: "
                                "a file is cut short, or of another model",
                                (size_t)found, (size_t)wanted);
    return TDM_OK;
}

static tdm_status read_shards(tdmi_weights *weights, const struct shard *shards, size_t n,
                              uint64_t n_bytes, const uint8_t **bytes, tdm_error *err)
{
    uint8_t *at = NULL;
    TDMI_TRY(TDMI_NEW(at, n_bytes, err));
    *bytes = at;
    TDMI_TRY(tdmi_weights_keep(weights, at, tdmi_free, err));
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

/* ---- the group --------------------------------------------------------------------------- */

static tdm_status read_weights(const tdmi_weights *weights, const tdm_json_value *entries,
                               struct weight *list, uint64_t *wanted, tdm_error *err)
{
    *wanted = 0;
    for (size_t i = 0; i < tdm_json_count(entries); i++) {
        TDMI_TRY(read_weight(weights, tdm_json_at(entries, i), &list[i], err));
        if (__builtin_add_overflow(*wanted, list[i].stored_bytes, wanted) || *wanted > SIZE_MAX)
            return TDMI_WEIGHTS_BAD(err, weights, "its weights do not fit in memory");
    }
    return TDM_OK;
}

tdm_status tdmi_tfjs_add_group(tdmi_weights *weights, const char *folder,
                               const tdm_json_value *group, tdm_error *err)
{
    const tdm_json_value *paths = tdm_json_member(group, "paths");
    const tdm_json_value *entries = tdm_json_member(group, "weights");
    const size_t n = tdm_json_count(entries), n_shards = tdm_json_count(paths);
    uint64_t wanted = 0;
    const uint8_t *bytes = NULL;
    if (tdm_json_kind_of(paths) != TDM_JSON_ARRAY || tdm_json_kind_of(entries) != TDM_JSON_ARRAY)
        return TDMI_WEIGHTS_BAD(
            err, weights,
            "a group of its weightsManifest is not a list of weights and one of paths");
    TDMI_AT_END(tdmi_free_at) struct weight *list = NULL;
    TDMI_AT_END(tdmi_free_at) struct shard *shards = NULL;
    TDMI_TRY(TDMI_NEW(list, n + 1, err));
    TDMI_TRY(TDMI_NEW(shards, n_shards + 1, err));
    TDMI_TRY(read_weights(weights, entries, list, &wanted, err));
    TDMI_TRY(find_shards(weights, folder, paths, wanted, shards, err));
    TDMI_TRY(read_shards(weights, shards, n_shards, wanted, &bytes, err));
    for (size_t i = 0; i < n; bytes += list[i++].stored_bytes)
        TDMI_TRY(add_weight(weights, &list[i], bytes, err));
    return TDM_OK;
}
