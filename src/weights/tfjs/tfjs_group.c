/*
 * A group's weights and their values: shards read as one, quantised numbers as what they stand for.
 */
#include "weights/tfjs/tfjs_group.h"
#include "base/memory.h"
#include "io/storage/storage.h"

#include <math.h>
#include <string.h>
#include "base/banned.h"

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
        return TDMI_WEIGHTS_BAD(err, weights,
                                "a weight of its manifest has no name, or no shape of at most %d "
                                "axes",
                                TDMI_WEIGHTS_RANK);
    if (!read_type(entry, weight))
        return TDMI_WEIGHTS_BAD(err, weights,
                                "weight '%.200s' is of type '%.40s'; float32, float16, int32, "
                                "uint8 and bool are read",
                                name, tdm_json_as_string(tdm_json_member(entry, "dtype"), ""));
    if (!read_coding(entry, weight, &width))
        return TDMI_WEIGHTS_BAD(err, weights,
                                "weight '%.200s' is quantised in a way that is not read: uint8 and "
                                "uint16 with scale and min, and float16 are",
                                name);
    for (size_t i = 0; i < rank; i++) {
        int64_t size = tdm_json_as_integer(tdm_json_at(shape, i), -1);
        weight->tensor.shape[i] = size;
        if (size < 0 || __builtin_mul_overflow(n, (uint64_t)size, &n) || n > INT64_MAX / 8)
            return TDMI_WEIGHTS_BAD(err, weights, "weight '%.200s': its shape is none", name);
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
    uint64_t available = weight->stored_bytes;
    weight->tensor.data = bytes;
    if (weight->coding != AS_IT_IS) {
        available = 4 * (uint64_t)weight->tensor.n_values;
        void *values = tdmi_alloc((size_t)weight->tensor.n_values, 4);
        if (values == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %lld values of '%.200s'",
                            (long long)weight->tensor.n_values, weight->tensor.name);
        scale_values(weight, bytes, values);
        weight->tensor.data = values;
        tdm_status status = tdmi_weights_keep(weights, values, tdmi_free, err);
        if (status != TDM_OK)
            return status;
    }
    return tdmi_weights_add(weights, &weight->tensor, available, err);
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
        if (!tdmi_tfjs_stays_inside(path))
            return TDMI_WEIGHTS_BAD(err, weights,
                                    "the path '%.200s' of a shard leaves the model's folder", path);
        shards[i].path = tdmi_path_join(tdmi_weights_arena(weights), folder, path);
        if (shards[i].path == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory to read %s", tdmi_weights_path(weights));
        TDM_TRY(tdmi_storage_look(shards[i].path, &place, err), err, "cannot read %s",
                tdmi_weights_path(weights));
        if (place.kind != TDMI_FILE_REGULAR)
            return tdmi_storage_refuse(shards[i].path, place.kind, "a shard of weights", err);
        shards[i].n_bytes = (uint64_t)place.size_bytes;
        found += shards[i].n_bytes;
    }
    if (found != wanted)
        return TDMI_WEIGHTS_BAD(err, weights,
                                "the shards of a group have %llu bytes and its shapes ask for "
                                "%llu: a file is cut short, or of another model",
                                (unsigned long long)found, (unsigned long long)wanted);
    return TDM_OK;
}

static tdm_status read_shards(tdmi_weights *weights, const struct shard *shards, size_t n,
                              uint64_t n_bytes, const uint8_t **bytes, tdm_error *err)
{
    uint8_t *all = tdmi_alloc((size_t)n_bytes, 1), *at = all;
    if (all == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %llu bytes of weights of %s",
                        (unsigned long long)n_bytes, tdmi_weights_path(weights));
    *bytes = all;
    tdm_status status = tdmi_weights_keep(weights, all, tdmi_free, err);
    for (size_t i = 0; status == TDM_OK && i < n; i++) {
        tdmi_storage_file *file = NULL;
        status = tdmi_storage_open(shards[i].path, &file, err);
        if (status == TDM_OK && (uint64_t)tdmi_storage_size(file) < shards[i].n_bytes)
            status = TDMI_WEIGHTS_BAD(err, weights, "the file '%.200s' became shorter meanwhile",
                                      shards[i].path);
        if (status == TDM_OK && shards[i].n_bytes > 0)
            status = tdmi_storage_read(file, 0, at, (size_t)shards[i].n_bytes, err);
        tdmi_storage_close(file);
        at += shards[i].n_bytes;
    }
    return status;
}

/* ---- the group --------------------------------------------------------------------------- */

static tdm_status read_weights(const tdmi_weights *weights, const tdm_json_value *entries,
                               struct weight *list, uint64_t *wanted, tdm_error *err)
{
    tdm_status status = TDM_OK;
    *wanted = 0;
    for (size_t i = 0; status == TDM_OK && i < tdm_json_count(entries); i++) {
        status = read_weight(weights, tdm_json_at(entries, i), &list[i], err);
        if (status == TDM_OK &&
            (__builtin_add_overflow(*wanted, list[i].stored_bytes, wanted) || *wanted > SIZE_MAX))
            status = TDMI_WEIGHTS_BAD(err, weights, "its weights do not fit in memory");
    }
    return status;
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
        return TDMI_WEIGHTS_BAD(err, weights,
                                "a group of its weightsManifest is not a list of weights and one "
                                "of paths");
    struct weight *list = tdmi_alloc(n + 1, sizeof *list);
    struct shard *shards = tdmi_alloc(n_shards + 1, sizeof *shards);
    tdm_status status = TDM_OK;
    if (list == NULL || shards == NULL)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory to read %s", tdmi_weights_path(weights));
    if (status == TDM_OK)
        status = read_weights(weights, entries, list, &wanted, err);
    if (status == TDM_OK)
        status = find_shards(weights, folder, paths, wanted, shards, err);
    if (status == TDM_OK)
        status = read_shards(weights, shards, n_shards, wanted, &bytes, err);
    for (size_t i = 0; status == TDM_OK && i < n; i++) {
        status = add_weight(weights, &list[i], bytes, err);
        bytes += list[i].stored_bytes;
    }
    tdmi_free(shards);
    tdmi_free(list);
    return status;
}
