/*
 * PyTorch's files since 1.6: a zip with one folder of any name,
 *
 *     NAME/data.pkl    the pickled object, whose storages are
 *     NAME/data/KEY    bytes, stored as they are
 *     NAME/byteorder   "little" or "big"; files without it are little
 *
 * The storages are used where they lie in the file.
 */
#include "weights/torch/torch_state.h"
#include "weights/zip_members.h"

#include <stdio.h>
#include <string.h>

static const char pickle_name[] = "data.pkl";

/* "data.pkl" itself, or in a folder that lies in no other. */
static bool is_pickle(const char *name)
{
    const char *slash = strchr(name, '/');
    return strcmp(slash == NULL ? name : slash + 1, pickle_name) == 0;
}

static bool is_form(const struct tdmi_weights_input *input)
{
    return tdmi_zip_members_have(input, is_pickle);
}

/* The members of a file; storages of big-endian ones are byte-swapped once and kept. */
struct torch_zip {
    struct tdmi_zip_members members;
    char *folder; /* "NAME/" or "" */
    bool is_big_endian;
    const uint8_t **storages; /* by member, NULL until looked for */
};

/* *index < 0: there is none. */
static tdm_status find_member(const struct torch_zip *zip, const char *name, int64_t *index,
                              tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text path = {0};
    tdmi_text_printf(&path, "%s%s", zip->folder, name);
    TDMI_TRY(tdmi_text_status(&path, err));
    *index = tdmi_archive_find(zip->members.archive, path.bytes);
    return TDM_OK;
}

static tdm_status swap_bytes(struct torch_zip *zip, size_t n_bytes, size_t width,
                             const uint8_t **bytes, tdm_error *err)
{
    uint8_t *swapped;
    TDMI_ARENA_NEW(tdmi_weights_arena(zip->members.weights), swapped, n_bytes, err);
    for (size_t i = 0; i + width <= n_bytes; i += width)
        for (size_t j = 0; j < width; j++)
            swapped[i + j] = (*bytes)[i + width - 1 - j];
    *bytes = swapped;
    return TDM_OK;
}

static tdm_status find_storage(void *self, const struct tdmi_torch_storage *storage,
                               const uint8_t **bytes, tdm_error *err)
{
    struct torch_zip *zip = self;
    char name[100];
    snprintf(name, sizeof name, "data/%.*s",
             (int)(storage->key_bytes < 80 ? storage->key_bytes : 80), (const char *)storage->key);
    int64_t index = -1;
    TDMI_TRY(find_member(zip, name, &index, err));
    if (index < 0)
        return TDMI_WEIGHTS_BAD(err, zip->members.weights, "it has no member '%s%s'", zip->folder,
                                name);
    const struct tdmi_archive_entry *entry = tdmi_archive_entry(zip->members.archive, index);
    if ((uint64_t)entry->size_bytes < storage->n_bytes)
        return TDMI_WEIGHTS_BAD(
            err, zip->members.weights, "'%s' has %lld bytes, and a storage of %zu is to be there",
            entry->name, (long long)entry->size_bytes, (size_t)storage->n_bytes);
    if (zip->is_big_endian && storage->is_untyped)
        return TDMI_WEIGHTS_BAD(err, zip->members.weights,
                                "'%s' is big-endian and does not say of what type", entry->name);
    if (zip->storages[index] == NULL) {
        TDMI_TRY(tdmi_zip_members_bytes(&zip->members, index, bytes, err));
        if (zip->is_big_endian && storage->value_bytes > 1)
            TDMI_TRY(swap_bytes(zip, (size_t)entry->size_bytes, storage->value_bytes, bytes, err));
        zip->storages[index] = *bytes;
    }
    *bytes = zip->storages[index];
    return TDM_OK;
}

static tdm_status read_byte_order(struct torch_zip *zip, tdm_error *err)
{
    const uint8_t *bytes = NULL;
    int64_t index = -1;
    TDMI_TRY(find_member(zip, "byteorder", &index, err));
    if (index < 0)
        return TDM_OK;
    size_t n = (size_t)tdmi_archive_entry(zip->members.archive, index)->size_bytes;
    TDMI_TRY(tdmi_zip_members_bytes(&zip->members, index, &bytes, err));
    zip->is_big_endian = n == strlen("big") && memcmp(bytes, "big", n) == 0;
    if (!zip->is_big_endian && (n != strlen("little") || memcmp(bytes, "little", n) != 0))
        return TDMI_WEIGHTS_BAD(err, zip->members.weights,
                                "its byteorder is '%.*s'; little and big are read",
                                tdmi_precision(n), (const char *)bytes);
    return TDM_OK;
}

/* The pickle's member and its folder. */
static tdm_status find_pickle(struct torch_zip *zip, int64_t *index, tdm_error *err)
{
    tdmi_weights *weights = zip->members.weights;
    int64_t n = tdmi_archive_entries(zip->members.archive);
    for (*index = 0; *index < n; ++*index) {
        const char *name = tdmi_archive_entry(zip->members.archive, *index)->name;
        if (!is_pickle(name))
            continue;
        TDMI_ARENA_COPY(tdmi_weights_arena(weights), zip->folder, name, err);
        TDMI_ARENA_NEW(tdmi_weights_arena(weights), zip->storages, n, err);
        zip->folder[strlen(name) - strlen(pickle_name)] = '\0';
        break;
    }
    if (*index == n)
        return TDMI_WEIGHTS_BAD(err, weights, "it has no data.pkl: it is damaged");
    int64_t program = -1;
    TDMI_TRY(find_member(zip, "constants.pkl", &program, err));
    if (program >= 0)
        return TDMI_WEIGHTS_BAD(
            err, weights,
            "it is TorchScript, a program, which is not run: save model.state_dict() instead");
    return TDM_OK;
}

static tdm_status read_state(struct torch_zip *zip, int64_t index, tdmi_arena *arena,
                             tdm_error *err)
{
    enum { MOST_PACKED_BYTES = 1 << 20 };
    const struct tdmi_archive_entry *entry = tdmi_archive_entry(zip->members.archive, index);
    const uint8_t *bytes = NULL;
    struct tdmi_pickle pickle = {0};
    struct tdmi_torch_files files = {.weights = zip->members.weights,
                                     .find = find_storage,
                                     .self = zip,
                                     .most_copied_bytes = zip->members.most_bytes};
    if (entry->size_bytes >
        (entry->method == 0 ? (int64_t)TDMI_PICKLE_MOST_BYTES : (int64_t)MOST_PACKED_BYTES))
        return TDMI_WEIGHTS_BAD(
            err, zip->members.weights,
            "'%s' has %lld bytes; a pickle of at most %zu is read, of %d where it is compressed",
            entry->name, (long long)entry->size_bytes, TDMI_PICKLE_MOST_BYTES, MOST_PACKED_BYTES);
    TDMI_TRY(tdmi_zip_members_bytes(&zip->members, index, &bytes, err));
    TDMI_TRY(tdmi_pickle_read(bytes, (size_t)entry->size_bytes,
                              tdmi_weights_path(zip->members.weights), 0, arena, &pickle, err));
    return tdmi_torch_add_state(&files, &pickle, err);
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    struct torch_zip zip = {0};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    int64_t index = 0;
    TDMI_TRY(tdmi_zip_members_open(weights, input, &zip.members, err));
    TDMI_TRY(find_pickle(&zip, &index, err));
    TDMI_TRY(read_byte_order(&zip, err));
    return read_state(&zip, index, &arena, err);
}

const struct tdmi_weights_form tdmi_weights_form_torch = {
    .name = "pytorch",
    .what = "PyTorch (.pth, .pt)",
    .is_form = is_form,
    .read = read,
};
