/*
 * What an HDF5 file is to hold, collected as a tree of names; then its structure in one piece,
 * followed by the values of all arrays, each at a multiple of 8 bytes.
 */
#include "weights/hdf5/write.h"
#include "base/arena.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "weights/allocated.h"
#include "weights/hdf5/tree.h"

#include <string.h>
#include "base/banned.h"

enum { KEY_BYTES_MAX = 255, TEXTS_MAX = 65535, MEMBERS_FIRST = 8 };

struct tdmi_hdf5_writer {
    tdmi_arena arena;
    struct tdmi_hdf5_node *root;
    unsigned n_texts;
    tdm_status status; /* the first failure */
    tdm_error err;
};

tdmi_hdf5_writer *tdmi_hdf5_writer_new(void)
{
    tdmi_hdf5_writer *writer = tdmi_alloc(1, sizeof *writer);
    if (writer == NULL)
        return NULL;
    tdmi_arena_init(&writer->arena, 0);
    writer->root = tdmi_arena_alloc(&writer->arena, 1, sizeof *writer->root);
    if (writer->root == NULL) {
        tdmi_hdf5_writer_free(writer);
        return NULL;
    }
    writer->root->name = "";
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
    return writer != NULL && writer->status == TDM_OK;
}

static void fail_memory(tdmi_hdf5_writer *writer)
{
    writer->status = TDM_FAIL(&writer->err, TDM_E_MEMORY, "no memory for an HDF5 file's contents");
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

static struct tdmi_hdf5_node *add_member(tdmi_hdf5_writer *writer, struct tdmi_hdf5_node *group,
                                         const char *name, size_t length)
{
    if (group->n_members == group->capacity) {
        size_t capacity = group->capacity ? 2 * group->capacity : MEMBERS_FIRST;
        struct tdmi_hdf5_node **more =
            tdmi_arena_alloc(&writer->arena, capacity, sizeof(struct tdmi_hdf5_node *));
        if (more == NULL)
            return NULL;
        if (group->n_members > 0)
            memcpy(more, group->members, group->n_members * sizeof *more);
        group->members = more;
        group->capacity = capacity;
    }
    struct tdmi_hdf5_node *node = tdmi_arena_alloc(&writer->arena, 1, sizeof *node);
    char *copy = tdmi_arena_alloc(&writer->arena, length + 1, 1);
    if (node == NULL || copy == NULL)
        return NULL;
    memcpy(copy, name, length);
    node->name = copy;
    group->members[group->n_members++] = node;
    return node;
}

/* The node of that path, made where it is missing; *is_new says whether it was. NULL: failed. */
static struct tdmi_hdf5_node *node_of(tdmi_hdf5_writer *writer, const char *path, bool *is_new)
{
    struct tdmi_hdf5_node *node = writer->root;
    *is_new = false;
    for (const char *at = path; *at != 0;) {
        size_t length = strcspn(at, "/");
        if (length == 0) {
            at++;
            continue;
        }
        if (node->is_array) {
            writer->status = TDM_FAIL(&writer->err, TDM_E_USAGE,
                                      "'%s' is below '%s', which is an array", path, node->name);
            return NULL;
        }
        struct tdmi_hdf5_node *member = find_member(node, at, length);
        *is_new = member == NULL;
        if (member == NULL)
            member = add_member(writer, node, at, length);
        if (member == NULL) {
            fail_memory(writer);
            return NULL;
        }
        node = member;
        at += length;
    }
    return node;
}

void tdmi_hdf5_writer_group(tdmi_hdf5_writer *writer, const char *path)
{
    bool is_new;
    if (!is_ready(writer))
        return;
    const struct tdmi_hdf5_node *node = node_of(writer, path, &is_new);
    if (node != NULL && node->is_array)
        writer->status = TDM_FAIL(&writer->err, TDM_E_USAGE,
                                  "'%s' is to be a group, and is an array already", path);
}

void tdmi_hdf5_writer_add(tdmi_hdf5_writer *writer, const char *path, enum tdmi_dtype dtype,
                          int rank, const int64_t *shape, const void *data)
{
    bool is_new;
    uint64_t n_bytes = tdmi_dtype_bytes(dtype);
    if (!is_ready(writer))
        return;
    bool is_float = dtype == TDMI_DTYPE_F32 || dtype == TDMI_DTYPE_F16 || dtype == TDMI_DTYPE_F64;
    bool is_bad = !is_float || rank < 0 || rank > TDMI_HDF5_RANK;
    for (int i = 0; i < rank && !is_bad; i++)
        is_bad = shape[i] < 0 || __builtin_mul_overflow(n_bytes, (uint64_t)shape[i], &n_bytes);
    if (is_bad || n_bytes > (uint64_t)PTRDIFF_MAX) {
        writer->status = TDM_FAIL(&writer->err, TDM_E_USAGE,
                                  "'%s' is no array that HDF5 files of ours hold: type %s, %d axes "
                                  "(F16, F32 and F64; at most %d)",
                                  path, tdmi_dtype_name(dtype), rank, TDMI_HDF5_RANK);
        return;
    }
    struct tdmi_hdf5_node *node = node_of(writer, path, &is_new);
    if (node == NULL)
        return;
    if (!is_new) {
        writer->status = TDM_FAIL(&writer->err, TDM_E_USAGE, "'%s' is there twice", path);
        return;
    }
    node->is_array = true;
    node->dtype = dtype;
    node->rank = rank;
    if (rank > 0)
        memcpy(node->shape, shape, (size_t)rank * sizeof *shape);
    node->n_bytes = (size_t)n_bytes;
    node->data = data;
}

/* ---- attributes -------------------------------------------------------------------------- */

static struct tdmi_hdf5_note *add_note(tdmi_hdf5_writer *writer, const char *path, const char *key)
{
    bool is_new;
    struct tdmi_hdf5_node *node = node_of(writer, path, &is_new);
    if (node == NULL)
        return NULL;
    bool is_there = false;
    for (const struct tdmi_hdf5_note *note = node->notes; note != NULL; note = note->next)
        is_there |= strcmp(note->key, key) == 0;
    if (is_there || strlen(key) > KEY_BYTES_MAX) {
        writer->status = TDM_FAIL(&writer->err, TDM_E_USAGE,
                                  "attribute '%.200s' of '%.100s' is there twice, or its name is "
                                  "longer than %d bytes",
                                  key, path, KEY_BYTES_MAX);
        return NULL;
    }
    struct tdmi_hdf5_note *note = tdmi_arena_alloc(&writer->arena, 1, sizeof *note);
    const char *copy = tdmi_arena_copy(&writer->arena, key);
    if (note == NULL || copy == NULL) {
        fail_memory(writer);
        return NULL;
    }
    note->key = copy;
    if (node->last_note != NULL)
        node->last_note->next = note;
    else
        node->notes = note;
    node->last_note = note;
    return note;
}

void tdmi_hdf5_writer_note(tdmi_hdf5_writer *writer, const char *path, const char *key,
                           const char *text)
{
    if (!is_ready(writer))
        return;
    if (++writer->n_texts > TEXTS_MAX) {
        writer->status =
            TDM_FAIL(&writer->err, TDM_E_USAGE,
                     "an HDF5 file of ours holds %d texts, and '%s' is one more", TEXTS_MAX, key);
        return;
    }
    struct tdmi_hdf5_note *note = add_note(writer, path, key);
    if (note == NULL)
        return;
    note->text = tdmi_arena_copy(&writer->arena, text);
    if (note->text == NULL)
        fail_memory(writer);
}

static void note_part(tdmi_hdf5_writer *writer, const char *path, const char *key,
                      const char *const *texts, size_t n_texts, size_t item_bytes)
{
    char *items = tdmi_arena_alloc(&writer->arena, n_texts + 1, item_bytes);
    if (items == NULL) {
        fail_memory(writer);
        return;
    }
    struct tdmi_hdf5_note *note = add_note(writer, path, key);
    if (note == NULL)
        return;
    for (size_t i = 0; i < n_texts; i++)
        memcpy(items + i * item_bytes, texts[i], strlen(texts[i]));
    note->items = items;
    note->item_bytes = item_bytes;
    note->n_items = n_texts;
}

void tdmi_hdf5_writer_note_list(tdmi_hdf5_writer *writer, const char *path, const char *key,
                                const char *const *texts, size_t n_texts)
{
    if (!is_ready(writer))
        return;
    size_t item_bytes = 1;
    for (size_t i = 0; i < n_texts; i++)
        item_bytes = strlen(texts[i]) > item_bytes ? strlen(texts[i]) : item_bytes;
    if (item_bytes > TDMI_HDF5_LIST_BYTES_MAX) {
        writer->status =
            TDM_FAIL(&writer->err, TDM_E_USAGE,
                     "a text in the list '%s' has %zu bytes; at most %d fit in a header", key,
                     item_bytes, TDMI_HDF5_LIST_BYTES_MAX);
        return;
    }
    size_t per_part = TDMI_HDF5_LIST_BYTES_MAX / item_bytes;
    if (n_texts <= per_part) {
        note_part(writer, path, key, texts, n_texts, item_bytes);
        return;
    }
    for (size_t first = 0, part = 0; first < n_texts && is_ready(writer); first += per_part) {
        size_t n = n_texts - first < per_part ? n_texts - first : per_part;
        const char *own = tdmi_arena_printf(&writer->arena, "%s%zu", key, part++);
        if (own == NULL)
            fail_memory(writer);
        else
            note_part(writer, path, own, texts + first, n, item_bytes);
    }
}

/* ---- the file ---------------------------------------------------------------------------- */

enum { ALIGNMENT = 8 };

static uint64_t aligned(uint64_t at)
{
    return (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Gives every array its place; returns the end. */
static uint64_t place_values(const struct tdmi_hdf5_node *node, char *structure, uint64_t at)
{
    for (size_t i = 0; i < node->n_members; i++)
        at = place_values(node->members[i], structure, at);
    if (!node->is_array || node->n_bytes == 0)
        return at;
    at = aligned(at);
    tdmi_hdf5_put(structure + node->address_at, at, 8);
    return at + node->n_bytes;
}

/* Where bytes go: into a file, or into memory. */
struct sink {
    tdmi_atomic_file *file;
    char *memory;
    uint64_t at;
};

static tdm_status pour(struct sink *sink, const void *bytes, size_t n_bytes, tdm_error *err)
{
    tdm_status status = TDM_OK;
    if (sink->file != NULL)
        status = tdmi_atomic_write(sink->file, bytes, n_bytes, err);
    else
        memcpy(sink->memory + sink->at, bytes, n_bytes);
    sink->at += n_bytes;
    return status;
}

static tdm_status pour_values(struct sink *sink, const struct tdmi_hdf5_node *node, tdm_error *err)
{
    static const char zeros[ALIGNMENT];
    tdm_status status = TDM_OK;
    for (size_t i = 0; i < node->n_members && status == TDM_OK; i++)
        status = pour_values(sink, node->members[i], err);
    if (status != TDM_OK || !node->is_array || node->n_bytes == 0)
        return status;
    status = pour(sink, zeros, (size_t)(aligned(sink->at) - sink->at), err);
    return status == TDM_OK ? pour(sink, node->data, node->n_bytes, err) : status;
}

/* The structure, with all places filled in, and the size of the whole. */
static tdm_status make_structure(tdmi_hdf5_writer *writer, tdmi_text *structure, uint64_t *end,
                                 tdm_error *err)
{
    TDMI_NEED_MEMORY(writer, err);
    if (writer->status != TDM_OK) {
        if (err != NULL)
            *err = writer->err;
        return writer->status;
    }
    tdmi_hdf5_write_structure(writer->root, structure);
    if (structure->is_broken)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for an HDF5 file's structure");
    *end = place_values(writer->root, structure->bytes, structure->length_bytes);
    tdmi_hdf5_put(structure->bytes + TDMI_HDF5_END_AT, *end, 8);
    return TDM_OK;
}

tdm_status tdmi_hdf5_writer_finish(tdmi_hdf5_writer *writer, const char *path, tdm_error *err)
{
    tdmi_text structure = {0};
    struct sink sink = {0};
    uint64_t end = 0;
    tdm_status status = make_structure(writer, &structure, &end, err);
    if (status == TDM_OK)
        status = tdmi_atomic_open(path, &sink.file, err);
    if (status == TDM_OK)
        status = pour(&sink, structure.bytes, structure.length_bytes, err);
    if (status == TDM_OK)
        status = pour_values(&sink, writer->root, err);
    if (status == TDM_OK)
        status = tdmi_atomic_commit(sink.file, err);
    else
        tdmi_atomic_abort(sink.file);
    tdmi_text_release(&structure);
    return TDM_WRAP(err, status, "writing %s", path);
}

tdm_status tdmi_hdf5_writer_finish_bytes(tdmi_hdf5_writer *writer, void **bytes,
                                         size_t *length_bytes, tdm_error *err)
{
    tdmi_text structure = {0};
    struct sink sink = {0};
    uint64_t end = 0;
    tdm_status status = make_structure(writer, &structure, &end, err);
    if (status == TDM_OK) {
        sink.memory = end > SIZE_MAX ? NULL : tdmi_alloc((size_t)end, 1);
        if (sink.memory == NULL)
            status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for %llu bytes of an HDF5 file",
                              (unsigned long long)end);
    }
    if (status == TDM_OK)
        status = pour(&sink, structure.bytes, structure.length_bytes, err);
    if (status == TDM_OK)
        status = pour_values(&sink, writer->root, err);
    tdmi_text_release(&structure);
    if (status != TDM_OK)
        return status;
    *bytes = sink.memory;
    *length_bytes = (size_t)end;
    return TDM_OK;
}
