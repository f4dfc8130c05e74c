/*
 * Collect the contents of an HDF5 file as a tree of names, then write its structure in one piece,
 * followed by the values of all arrays, each at a multiple of 8 bytes.
 */
#include "weights/hdf5/write.h"
#include "base/bytes.h"
#include "base/file/file.h"
#include "weights/errors.h"
#include "weights/hdf5/tree.h"

#include <string.h>

enum { KEY_BYTES_MAX = 255, TEXTS_MAX = 65535 };

struct tdmi_hdf5_writer {
    tdmi_arena arena;
    struct tdmi_hdf5_node root;
    unsigned n_texts;
    tdm_error failure; /* the first one; code TDM_OK while all is well */
};

tdmi_hdf5_writer *tdmi_hdf5_writer_new(void)
{
    tdmi_hdf5_writer *writer = tdmi_alloc(1, sizeof *writer);
    if (writer != NULL)
        writer->root.name = "";
    return writer;
}

void tdmi_hdf5_writer_free(tdmi_hdf5_writer *writer)
{
    if (writer == NULL)
        return;
    tdmi_arena_release(&writer->arena);
    tdmi_free(writer);
}

static bool is_ready(const tdmi_hdf5_writer *writer)
{
    return writer != NULL && writer->failure.code == TDM_OK;
}

/* ---- the tree ---------------------------------------------------------------------------- */

static struct tdmi_hdf5_node *find_member(const struct tdmi_hdf5_node *group, const char *name,
                                          size_t length)
{
    for (size_t i = 0; i < group->n_members; i++)
        if (strncmp(group->members[i]->name, name, length) == 0 &&
            group->members[i]->name[length] == 0)
            return group->members[i];
    return NULL;
}

static tdm_status add_member(tdmi_hdf5_writer *writer, struct tdmi_hdf5_node *group,
                             const char *name, size_t length, struct tdmi_hdf5_node **added)
{
    tdm_error *err = &writer->failure;
    struct tdmi_hdf5_node *node;
    char *copy;
    TDMI_ARENA_ROOM(&writer->arena, group->members, group->capacity, group->n_members, err);
    TDMI_ARENA_NEW(&writer->arena, node, 1, err);
    TDMI_ARENA_NEW(&writer->arena, copy, length + 1, err);
    memcpy(copy, name, length);
    node->name = copy;
    group->members[group->n_members++] = *added = node;
    return TDM_OK;
}

/* The node of that path, made where it is missing; *is_new says whether it was. */
static tdm_status find_node(tdmi_hdf5_writer *writer, const char *path,
                            struct tdmi_hdf5_node **found, bool *is_new)
{
    struct tdmi_hdf5_node *node = &writer->root;
    *is_new = false;
    for (const char *at = path; *at != 0;) {
        const size_t length = strcspn(at, "/");
        if (length == 0) {
            at++;
            continue;
        }
        if (node->is_array)
            return TDM_FAIL(&writer->failure, TDM_E_USAGE, "'%s' is below '%s', which is an array",
                            path, node->name);
        struct tdmi_hdf5_node *member = find_member(node, at, length);
        *is_new = member == NULL;
        if (member == NULL)
            TDMI_TRY(add_member(writer, node, at, length, &member));
        node = member;
        at += length;
    }
    *found = node;
    return TDM_OK;
}

void tdmi_hdf5_writer_group(tdmi_hdf5_writer *writer, const char *path)
{
    bool is_new;
    struct tdmi_hdf5_node *node = NULL;
    if (is_ready(writer) && find_node(writer, path, &node, &is_new) == TDM_OK && node->is_array)
        (void)TDM_FAIL(&writer->failure, TDM_E_USAGE,
                       "'%s' is to be a group, and is an array already", path);
}

static tdm_status add_array(tdmi_hdf5_writer *writer, const char *path,
                            const struct tdmi_hdf5_node *array, const int64_t *shape)
{
    bool is_new;
    struct tdmi_hdf5_node *node;
    const enum tdmi_dtype dtype = array->dtype;
    uint64_t n_bytes = tdmi_dtype_bytes(dtype);
    bool is_bad = (dtype != TDMI_DTYPE_F32 && dtype != TDMI_DTYPE_F16 && dtype != TDMI_DTYPE_F64) ||
                  array->rank < 0 || array->rank > TDMI_HDF5_RANK;
    for (int i = 0; i < array->rank && !is_bad; i++)
        is_bad = shape[i] < 0 || __builtin_mul_overflow(n_bytes, (uint64_t)shape[i], &n_bytes);
    if (is_bad || n_bytes > (uint64_t)PTRDIFF_MAX)
        return TDM_FAIL(&writer->failure, TDM_E_USAGE,
                        "'%s' is no array that HDF5 files of ours hold: type %s, %d axes (F16, F32 "
                        "and F64; at most %d)",
                        path, tdmi_dtype_name(dtype), array->rank, TDMI_HDF5_RANK);
    TDMI_TRY(find_node(writer, path, &node, &is_new));
    if (!is_new)
        return TDM_FAIL(&writer->failure, TDM_E_USAGE, "'%s' is there twice", path);
    const char *name = node->name;
    *node = *array;
    node->name = name;
    node->n_bytes = (size_t)n_bytes;
    for (int i = 0; i < array->rank; i++)
        node->shape[i] = shape[i];
    return TDM_OK;
}

void tdmi_hdf5_writer_add(tdmi_hdf5_writer *writer, const char *path, enum tdmi_dtype dtype,
                          int rank, const int64_t *shape, const void *data)
{
    const struct tdmi_hdf5_node array = {
        .is_array = true, .dtype = dtype, .rank = rank, .data = data};
    if (is_ready(writer))
        (void)add_array(writer, path, &array, shape);
}

/* ---- attributes -------------------------------------------------------------------------- */

static tdm_status add_note(tdmi_hdf5_writer *writer, const char *path, const char *key,
                           struct tdmi_hdf5_note **added)
{
    bool is_new;
    struct tdmi_hdf5_node *node;
    struct tdmi_hdf5_note **last, *note;
    TDMI_TRY(find_node(writer, path, &node, &is_new));
    for (last = &node->notes; *last != NULL && strcmp((*last)->key, key) != 0;)
        last = &(*last)->next;
    if (*last != NULL || strlen(key) > KEY_BYTES_MAX)
        return TDM_FAIL(
            &writer->failure, TDM_E_USAGE,
            "attribute '%s' of '%s' is there twice, or its name is longer than %d bytes", key, path,
            KEY_BYTES_MAX);
    TDMI_ARENA_NEW(&writer->arena, note, 1, &writer->failure);
    TDMI_ARENA_COPY(&writer->arena, note->key, key, &writer->failure);
    *last = *added = note;
    return TDM_OK;
}

static tdm_status add_text(tdmi_hdf5_writer *writer, const char *path, const char *key,
                           const char *text)
{
    struct tdmi_hdf5_note *note;
    if (++writer->n_texts > TEXTS_MAX)
        return TDM_FAIL(&writer->failure, TDM_E_USAGE,
                        "an HDF5 file of ours holds %d texts, and '%s' is one more", TEXTS_MAX,
                        key);
    TDMI_TRY(add_note(writer, path, key, &note));
    TDMI_ARENA_COPY(&writer->arena, note->text, text, &writer->failure);
    return TDM_OK;
}

void tdmi_hdf5_writer_note(tdmi_hdf5_writer *writer, const char *path, const char *key,
                           const char *text)
{
    if (is_ready(writer))
        (void)add_text(writer, path, key, text);
}

static tdm_status add_part(tdmi_hdf5_writer *writer, const char *path, const char *key,
                           const char *const *texts, size_t n_texts, size_t item_bytes)
{
    struct tdmi_hdf5_note *note;
    char *items = tdmi_arena_alloc(&writer->arena, n_texts + 1, item_bytes);
    TDMI_CHECK_MEMORY(items, &writer->failure);
    TDMI_TRY(add_note(writer, path, key, &note));
    for (size_t i = 0; i < n_texts; i++)
        memcpy(items + i * item_bytes, texts[i], strlen(texts[i]));
    note->items = items;
    note->item_bytes = item_bytes;
    note->n_items = n_texts;
    return TDM_OK;
}

static tdm_status add_list(tdmi_hdf5_writer *writer, const char *path, const char *key,
                           const char *const *texts, size_t n_texts)
{
    size_t item_bytes = 1;
    for (size_t i = 0; i < n_texts; i++)
        item_bytes = strlen(texts[i]) > item_bytes ? strlen(texts[i]) : item_bytes;
    if (item_bytes > TDMI_HDF5_LIST_BYTES_MAX)
        return TDM_FAIL(&writer->failure, TDM_E_USAGE,
                        "a text in the list '%s' has %zu bytes; at most %d fit in a header", key,
                        item_bytes, TDMI_HDF5_LIST_BYTES_MAX);
    const size_t per_part = TDMI_HDF5_LIST_BYTES_MAX / item_bytes;
    if (n_texts <= per_part)
        return add_part(writer, path, key, texts, n_texts, item_bytes);
    for (size_t first = 0, part = 0; first < n_texts; first += per_part) {
        const size_t n = n_texts - first < per_part ? n_texts - first : per_part;
        const char *own = tdmi_arena_printf(&writer->arena, "%s%zu", key, part++);
        TDMI_CHECK_MEMORY(own, &writer->failure);
        TDMI_TRY(add_part(writer, path, own, texts + first, n, item_bytes));
    }
    return TDM_OK;
}

void tdmi_hdf5_writer_note_list(tdmi_hdf5_writer *writer, const char *path, const char *key,
                                const char *const *texts, size_t n_texts)
{
    if (is_ready(writer))
        (void)add_list(writer, path, key, texts, n_texts);
}

/* ---- the file ---------------------------------------------------------------------------- */

/* Gives every array its place; returns the end. */
static uint64_t place_values(const struct tdmi_hdf5_node *node, char *structure, uint64_t at)
{
    for (size_t i = 0; i < node->n_members; i++)
        at = place_values(node->members[i], structure, at);
    if (!node->is_array || node->n_bytes == 0)
        return at;
    at = tdmi_hdf5_padded(at);
    tdmi_write_little(structure + node->address_at, at, 8);
    return at + node->n_bytes;
}

/* *at: where the file ends so far. */
static tdm_status write_values(tdmi_atomic_file *file, const struct tdmi_hdf5_node *node,
                               uint64_t *at, tdm_error *err)
{
    static const char zeros[8];
    for (size_t i = 0; i < node->n_members; i++)
        TDMI_TRY(write_values(file, node->members[i], at, err));
    if (!node->is_array || node->n_bytes == 0)
        return TDM_OK;
    TDMI_TRY(tdmi_atomic_write(file, zeros, (size_t)(tdmi_hdf5_padded(*at) - *at), err));
    *at = tdmi_hdf5_padded(*at) + node->n_bytes;
    return tdmi_atomic_write(file, node->data, node->n_bytes, err);
}

static tdm_status finish(tdmi_hdf5_writer *writer, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text structure = {0};
    TDMI_AT_END(tdmi_atomic_abort_at) tdmi_atomic_file *file = NULL;
    TDMI_CHECK_MEMORY(writer, err);
    if (writer->failure.code != TDM_OK && err != NULL)
        *err = writer->failure;
    TDMI_TRY(writer->failure.code);
    tdmi_hdf5_write_structure(&writer->root, &structure);
    TDMI_TRY(tdmi_text_status(&structure, err));
    uint64_t at = structure.length_bytes;
    tdmi_write_little(structure.bytes + TDMI_HDF5_END_AT,
                      place_values(&writer->root, structure.bytes, at), 8);
    TDMI_TRY(tdmi_atomic_open(path, &file, err));
    TDMI_TRY(tdmi_atomic_write(file, structure.bytes, structure.length_bytes, err));
    TDMI_TRY(write_values(file, &writer->root, &at, err));
    return tdmi_atomic_commit(tdmi_take(&file), err);
}

tdm_status tdmi_hdf5_writer_finish(tdmi_hdf5_writer *writer, const char *path, tdm_error *err)
{
    return TDM_WRAP(err, finish(writer, path, err), "writing %s", path);
}
