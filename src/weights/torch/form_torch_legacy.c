/*
 * PyTorch's files before 1.6: pickles one after the other, then the storages.
 *
 *     a magic number | protocol 1001 | facts about the machine | the object | the storages' keys
 *     for every key: n values, 8 bytes | the values, little-endian on every machine
 *
 * The storages are used where they lie in the file, and need not be aligned.
 */
#include "weights/torch/torch_state.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { PROTOCOL = 1001 };

static const uint8_t magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

/* A pickle of protocol 2 to 5; what kind of one the reader says. */
static bool is_form(const struct tdmi_weights_input *input)
{
    return input->n_bytes >= 3 && input->bytes[0] == 0x80 && input->bytes[1] >= 2 &&
           input->bytes[1] <= 5;
}

struct placed {
    const uint8_t *key;
    size_t key_bytes;
    const uint8_t *bytes;
    uint64_t n_bytes;
};

struct legacy {
    tdmi_weights *weights;
    const uint8_t *bytes;
    size_t n_bytes, at;
    tdmi_arena *arena;       /* of values that are needed while the file is read */
    struct placed *storages; /* by key */
    size_t n_storages;
};

static tdm_status next_pickle(struct legacy *file, struct tdmi_pickle *pickle, tdm_error *err)
{
    TDMI_TRY(tdmi_pickle_read(file->bytes + file->at, file->n_bytes - file->at,
                              tdmi_weights_path(file->weights), file->at, file->arena, pickle,
                              err));
    file->at += pickle->used_bytes;
    return TDM_OK;
}

static tdm_status read_head(struct legacy *file, tdm_error *err)
{
    struct tdmi_pickle pickle = {0};
    TDMI_TRY(next_pickle(file, &pickle, err));
    const tdmi_pickle_value *value = pickle.value;
    if (value->kind != TDMI_PICKLE_LONG || value->count != sizeof magic ||
        memcmp(value->bytes, magic, sizeof magic) != 0)
        return TDMI_WEIGHTS_BAD(err, file->weights,
                                "it is a pickle, but none of PyTorch's: files written by "
                                "torch.save(model.state_dict(), …) are read");
    TDMI_TRY(next_pickle(file, &pickle, err));
    if (pickle.value->kind != TDMI_PICKLE_INTEGER || pickle.value->integer != PROTOCOL)
        return TDMI_WEIGHTS_BAD(
            err, file->weights,
            "it is not of PyTorch's protocol %d, the only one with storages behind the pickles",
            PROTOCOL);
    return next_pickle(file, &pickle, err);
}

/* ---- storages ---------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct placed *left = a, *right = b;
    size_t least = left->key_bytes < right->key_bytes ? left->key_bytes : right->key_bytes;
    int order = least == 0 ? 0 : memcmp(left->key, right->key, least);
    if (order != 0)
        return order;
    return left->key_bytes < right->key_bytes ? -1 : left->key_bytes > right->key_bytes;
}

/* The length of a storage counts values, so its place needs the type, which an id in the object
 * knows: all ids are looked through once. */
struct ids {
    struct legacy *file;
    struct placed *known; /* n_bytes: of a value */
    size_t n;
    int64_t capacity;
    tdm_error *err;
};

static void release_ids(struct ids *ids)
{
    tdmi_free(ids->known);
}

static tdm_status add_id(struct ids *ids, const tdmi_pickle_value *value)
{
    struct tdmi_torch_storage storage;
    enum tdmi_dtype dtype;
    TDMI_TRY(
        tdmi_torch_storage_of(ids->file->weights, "a value", value, &dtype, &storage, ids->err));
    TDMI_TRY(TDMI_MAKE_ROOM(ids->known, ids->capacity, ids->n, ids->err));
    ids->known[ids->n++] = (struct placed){
        .key = storage.key, .key_bytes = storage.key_bytes, .n_bytes = storage.value_bytes};
    return TDM_OK;
}

static tdm_status add_ids(struct ids *ids, const struct tdmi_pickle *object)
{
    for (const tdmi_pickle_value *id = object->persistent; id != NULL; id = id->next)
        TDMI_TRY(add_id(ids, id));
    if (ids->n > 0)
        qsort(ids->known, ids->n, sizeof *ids->known, by_key);
    for (size_t i = 1; i < ids->n; i++)
        if (by_key(&ids->known[i - 1], &ids->known[i]) == 0 &&
            ids->known[i - 1].n_bytes != ids->known[i].n_bytes)
            return TDMI_WEIGHTS_BAD(ids->err, ids->file->weights,
                                    "a storage is meant to have two types");
    return TDM_OK;
}

/* The next storage of the file is that of this key. */
static tdm_status place_one(struct legacy *file, const struct ids *ids,
                            const tdmi_pickle_value *key, tdm_error *err)
{
    struct placed sample = {.key = key->bytes, .key_bytes = key->count};
    const struct placed *known =
        key->kind != TDMI_PICKLE_TEXT || ids->n == 0
            ? NULL
            : bsearch(&sample, ids->known, ids->n, sizeof *ids->known, by_key);
    const uint64_t left = file->n_bytes - file->at;
    if (known == NULL)
        return TDMI_WEIGHTS_BAD(err, file->weights,
                                "storage %zu of its list is of no tensor: it is damaged",
                                file->n_storages);
    const uint64_t n = left < 8 ? 0 : tdmi_read_little(file->bytes + file->at, 8);
    if (left < 8 || n > (left - 8) / known->n_bytes)
        return TDMI_WEIGHTS_BAD(err, file->weights,
                                "storage %zu should have %zu values at byte %zu, past the end of "
                                "the file: it is cut short or damaged",
                                file->n_storages, (size_t)n, file->at);
    sample.bytes = file->bytes + file->at + 8;
    sample.n_bytes = n * known->n_bytes;
    file->at += 8 + (size_t)sample.n_bytes;
    file->storages[file->n_storages++] = sample;
    return TDM_OK;
}

static tdm_status place_storages(struct legacy *file, const struct tdmi_pickle *object,
                                 tdm_error *err)
{
    struct tdmi_pickle pickle = {0};
    TDMI_AT_END(release_ids) struct ids ids = {.file = file, .err = err};
    TDMI_TRY(next_pickle(file, &pickle, err));
    TDMI_TRY(add_ids(&ids, object));
    if (pickle.value->kind != TDMI_PICKLE_LIST)
        return TDMI_WEIGHTS_BAD(err, file->weights, "it has no list of its storages");
    TDMI_ARENA_NEW(file->arena, file->storages, pickle.value->count + 1, err);
    for (size_t i = 0; i < pickle.value->count; i++)
        TDMI_TRY(place_one(file, &ids, pickle.value->items[i], err));
    if (file->n_storages > 0)
        qsort(file->storages, file->n_storages, sizeof *file->storages, by_key);
    return TDM_OK;
}

static tdm_status find_storage(void *self, const struct tdmi_torch_storage *storage,
                               const uint8_t **bytes, tdm_error *err)
{
    struct legacy *file = self;
    const struct placed sample = {.key = storage->key, .key_bytes = storage->key_bytes};
    const struct placed *found =
        file->n_storages == 0
            ? NULL
            : bsearch(&sample, file->storages, file->n_storages, sizeof *file->storages, by_key);
    if (found == NULL || found->n_bytes < storage->n_bytes)
        return TDMI_WEIGHTS_BAD(
            err, file->weights, "storage '%.*s' should have %zu bytes; there are %zu",
            tdmi_precision(storage->key_bytes), (const char *)storage->key,
            (size_t)storage->n_bytes, found == NULL ? (size_t)0 : (size_t)found->n_bytes);
    *bytes = found->bytes;
    return TDM_OK;
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct legacy file = {
        .weights = weights, .bytes = input->bytes, .n_bytes = input->n_bytes, .arena = &arena};
    struct tdmi_torch_files files = {.weights = weights,
                                     .find = find_storage,
                                     .self = &file,
                                     .most_copied_bytes = 4 * (uint64_t)input->n_bytes};
    struct tdmi_pickle object = {0};
    TDMI_TRY(read_head(&file, err));
    TDMI_TRY(next_pickle(&file, &object, err));
    TDMI_TRY(place_storages(&file, &object, err));
    return tdmi_torch_add_state(&files, &object, err);
}

const struct tdmi_weights_form tdmi_weights_form_torch_legacy = {
    .name = "pytorch-legacy",
    .what = "PyTorch before 1.6",
    .is_form = is_form,
    .read = read,
};
