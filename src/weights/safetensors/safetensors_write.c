/*
 * Writing .safetensors files. The header is made first and complete (the checksum needs one pass
 * over the tensors, which stay where the caller has them), then header and tensors are streamed
 * into a temporary file that is renamed at the end, or into memory.
 *
 * What was made is read back with our JSON reader before anything is written: names that are
 * double or no UTF-8 are found there, and no file is produced that we would refuse.
 */
#include "weights/safetensors/safetensors.h"
#include "weights/safetensors/safetensors_form.h"
#include "base/bytes.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/text/json.h"
#include "weights/errors.h"
#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are stored little-endian");

struct item {
    const char *name;
    enum tdmi_dtype dtype;
    int rank;
    int64_t *shape;
    uint64_t bytes;
    const void *data;
};

struct note {
    const char *key, *value;
};

struct tdmi_safetensors_writer {
    tdmi_arena arena; /* names, shapes, metadata */
    struct item *items;
    size_t n_items;
    int64_t item_capacity;
    struct note *notes;
    size_t n_notes;
    int64_t note_capacity;
    tdm_error failure; /* the first one; code TDM_OK while all is well */
};

tdmi_safetensors_writer *tdmi_safetensors_writer_new(void)
{
    return tdmi_alloc(1, sizeof(tdmi_safetensors_writer));
}

void tdmi_safetensors_writer_free(tdmi_safetensors_writer *writer)
{
    if (writer == NULL)
        return;
    tdmi_arena_release(&writer->arena);
    tdmi_free(writer->items);
    tdmi_free(writer->notes);
    tdmi_free(writer);
}

static tdm_status fill_item(tdmi_safetensors_writer *writer, struct item *item,
                            const int64_t *shape)
{
    tdm_error *err = &writer->failure;
    const char *name = item->name;
    uint64_t bytes = tdmi_dtype_bytes(item->dtype);
    if (bytes == 0 || item->rank < 0 || item->rank > TDMI_SAFETENSORS_RANK)
        return TDM_FAIL(err, TDM_E_BUG, "tensor '%s': type %d or rank %d is none of ours", name,
                        (int)item->dtype, item->rank);
    for (int i = 0; i < item->rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(bytes, (uint64_t)shape[i], &bytes))
            return TDM_FAIL(err, TDM_E_BUG, "tensor '%s': size %" PRId64 " in its shape", name,
                            shape[i]);
    if (bytes > INT64_MAX || (bytes > 0 && item->data == NULL))
        return TDM_FAIL(err, TDM_E_BUG, "tensor '%s': %" PRIu64 " bytes, %s data", name, bytes,
                        item->data == NULL ? "without" : "too much");
    item->bytes = bytes;
    TDMI_ARENA_COPY(&writer->arena, item->name, name, err);
    TDMI_ARENA_NEW(&writer->arena, item->shape, item->rank + 1, err);
    for (int i = 0; i < item->rank; i++)
        item->shape[i] = shape[i];
    return TDM_OK;
}

void tdmi_safetensors_add(tdmi_safetensors_writer *writer, const char *name, enum tdmi_dtype dtype,
                          int rank, const int64_t *shape, const void *data)
{
    if (writer == NULL || writer->failure.code != TDM_OK)
        return;
    struct item item = {.name = name, .dtype = dtype, .rank = rank, .data = data};
    if (fill_item(writer, &item, shape) == TDM_OK &&
        TDMI_MAKE_ROOM(writer->items, writer->item_capacity, writer->n_items, &writer->failure) ==
            TDM_OK)
        writer->items[writer->n_items++] = item;
}

void tdmi_safetensors_note(tdmi_safetensors_writer *writer, const char *key, const char *value)
{
    if (writer == NULL || writer->failure.code != TDM_OK)
        return;
    struct note note = {tdmi_arena_copy(&writer->arena, key),
                        tdmi_arena_copy(&writer->arena, value)};
    if (note.key && note.value && TDMI_GROW(writer->notes, writer->note_capacity, writer->n_notes))
        writer->notes[writer->n_notes++] = note;
    else
        (void)TDM_FAIL(&writer->failure, TDM_E_MEMORY, "no memory to write '%s'", key);
}

/* ---- the checksum ------------------------------------------------------------------------ */

/* Another program may have written the file again with other white space, so the digits are looked
 * for rather than expected at a fixed byte. A quoted key cannot appear inside a string: its quotes
 * would be escaped there. */
char *tdmi_safetensors_digits(char *header, size_t length_bytes)
{
    static const char key[] = "\"" TDMI_SAFETENSORS_CHECKSUM_KEY "\"";
    static const char space[] = " \t\n\r";
    char *found = memmem(header, length_bytes, key, sizeof key - 1);
    if (found == NULL)
        return NULL;
    found += sizeof key - 1; /* a zero ends the header */
    found += strspn(found, space);
    if (*found++ != ':')
        return NULL;
    found += strspn(found, space);
    return *found == '"' && strspn(found + 1, "0123456789abcdef") == TDMI_SAFETENSORS_DIGITS &&
                   found[1 + TDMI_SAFETENSORS_DIGITS] == '"'
               ? found + 1
               : NULL;
}

void tdmi_safetensors_put_digits(char *digits, uint64_t checksum)
{
    for (int i = TDMI_SAFETENSORS_DIGITS - 1; i >= 0; i--, checksum >>= 4)
        digits[i] = "0123456789abcdef"[checksum & 15];
}

/* ---- header ----------------------------------------------------------------------------- */

/* Torch and others refuse a tensor that is not aligned to its own element, and the form allows no
 * gap: sorted by width none can be misaligned. Stable, so that equals keep the caller's order. */
static void sort_by_width(const tdmi_safetensors_writer *writer, struct item **order)
{
    size_t n = 0;
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t i = 0; i < writer->n_items; i++)
            if (tdmi_dtype_bytes(writer->items[i].dtype) == width)
                order[n++] = &writer->items[i];
}

static tdm_status add_tensors(tdm_json_writer *json, struct item *const *order, size_t n,
                              tdm_error *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (order[i]->bytes > INT64_MAX - at)
            return TDM_FAIL(err, TDM_E_BUG, "tensor '%s': the file would end past 2^63 bytes",
                            order[i]->name);
        tdm_json_object_begin(json, order[i]->name);
        tdm_json_string(json, "dtype", tdmi_dtype_name(order[i]->dtype));
        tdm_json_array_begin(json, "shape");
        for (int axis = 0; axis < order[i]->rank; axis++)
            tdm_json_integer(json, NULL, order[i]->shape[axis]);
        tdm_json_array_end(json);
        tdm_json_array_begin(json, "data_offsets");
        tdm_json_integer(json, NULL, (int64_t)at);
        at += order[i]->bytes;
        tdm_json_integer(json, NULL, (int64_t)at);
        tdm_json_array_end(json);
        tdm_json_object_end(json);
    }
    return TDM_OK;
}

/* Does the header say what was asked? Not when a name was no UTF-8, double, or a reserved one. */
static tdm_status check_header(const tdmi_safetensors_writer *writer, struct item *const *order,
                               const char *text, size_t length_bytes, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const tdm_status status = tdm_json_read(text, length_bytes, "the header", &document, err);
    TDM_TRY(status, err, "%s",
            status == TDM_E_MEMORY ? "reading back what was made"
                                   : "the tensors and metadata to write have a name twice");
    const tdm_json_value *root = tdm_json_root(document);
    const tdm_json_value *metadata = tdm_json_at(root, 0);
    for (size_t i = 0; i < writer->n_notes; i++) {
        const struct note *note = &writer->notes[i];
        if (strcmp(tdm_json_key_at(metadata, i + 1), note->key) != 0 ||
            strcmp(tdm_json_as_string(tdm_json_at(metadata, i + 1), ""), note->value) != 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "metadata '%s' is not UTF-8, as all text of a safetensors file is",
                            note->key);
    }
    for (size_t i = 0; i < writer->n_items; i++)
        if (strcmp(tdm_json_key_at(root, i + 1), order[i]->name) != 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "tensor name '%s' is not UTF-8, as all text of a safetensors file is",
                            order[i]->name);
    return TDM_OK;
}

static uint64_t checksum_of(const char *head, size_t head_bytes, struct item *const *order,
                            size_t n)
{
    tdmi_xxh64 hash;
    tdmi_xxh64_init(&hash, 0);
    tdmi_xxh64_add(&hash, head, head_bytes);
    for (size_t i = 0; i < n; i++)
        if (order[i]->bytes > 0)
            tdmi_xxh64_add(&hash, order[i]->data, (size_t)order[i]->bytes);
    return tdmi_xxh64_result(&hash);
}

/* Length prefix, JSON and padding in one block. */
static tdm_status make_head(const tdmi_safetensors_writer *writer, struct item *const *order,
                            char **head, size_t *head_bytes, tdm_error *err)
{
    const char *text = NULL;
    size_t text_bytes = 0;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
    tdm_json_object_begin(json, NULL);
    tdm_json_object_begin(json, "__metadata__");
    tdm_json_string(json, TDMI_SAFETENSORS_CHECKSUM_KEY, "0000000000000000");
    for (size_t i = 0; i < writer->n_notes; i++)
        tdm_json_string(json, writer->notes[i].key, writer->notes[i].value);
    tdm_json_object_end(json);
    TDMI_TRY(add_tensors(json, order, writer->n_items, err));
    tdm_json_object_end(json);
    TDMI_TRY(tdm_json_finish(json, &text, &text_bytes, err));
    TDMI_TRY(check_header(writer, order, text, text_bytes, err));
    const size_t all = tdmi_safetensors_padded(TDMI_SAFETENSORS_PREFIX + text_bytes);
    uint64_t json_bytes = all - TDMI_SAFETENSORS_PREFIX;
    if (json_bytes > TDMI_SAFETENSORS_HEADER_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "names and metadata need %" PRIu64 " bytes, %u are read",
                        json_bytes, TDMI_SAFETENSORS_HEADER_MAX);
    TDMI_TRY(TDMI_NEW(*head, all + 1, err));
    tdmi_write_little(*head, json_bytes, TDMI_SAFETENSORS_PREFIX);
    memset(*head + TDMI_SAFETENSORS_PREFIX, ' ', (size_t)json_bytes);
    memcpy(*head + TDMI_SAFETENSORS_PREFIX, text, text_bytes);
    *head_bytes = all;
    tdmi_safetensors_put_digits(
        tdmi_safetensors_digits(*head + TDMI_SAFETENSORS_PREFIX, (size_t)json_bytes),
        checksum_of(*head, all, order, writer->n_items));
    return TDM_OK;
}

/* ---- finish ----------------------------------------------------------------------------- */

typedef tdm_status opener(const char *path, tdmi_atomic_file **file, tdm_error *err);

static tdm_status stream_to_file(const char *path, opener *open, const char *head,
                                 size_t head_bytes, struct item *const *order, size_t n,
                                 tdm_error *err)
{
    TDMI_AT_END(tdmi_atomic_abort_at) tdmi_atomic_file *file = NULL;
    TDMI_TRY(open(path, &file, err));
    TDMI_TRY(tdmi_atomic_write(file, head, head_bytes, err));
    for (size_t i = 0; i < n; i++)
        if (order[i]->bytes > 0)
            TDMI_TRY(tdmi_atomic_write(file, order[i]->data, (size_t)order[i]->bytes, err));
    return tdmi_atomic_commit(tdmi_take(&file), err);
}

static tdm_status copy_to_memory(void **bytes, size_t *length_bytes, const char *head,
                                 size_t head_bytes, struct item *const *order, size_t n,
                                 tdm_error *err)
{
    size_t all = head_bytes;
    char *block, *at;
    for (size_t i = 0; i < n; i++)
        all += (size_t)order[i]->bytes;
    TDMI_TRY(TDMI_NEW(block, all, err));
    memcpy(block, head, head_bytes);
    at = block + head_bytes;
    for (size_t i = 0; i < n; at += order[i]->bytes, i++)
        if (order[i]->bytes > 0)
            memcpy(at, order[i]->data, (size_t)order[i]->bytes);
    *bytes = block;
    *length_bytes = all;
    return TDM_OK;
}

/* path NULL: into memory. */
static tdm_status finish(tdmi_safetensors_writer *writer, const char *path, opener *open,
                         void **bytes, size_t *length_bytes, tdm_error *err)
{
    const char *what = path ? path : "a file in memory";
    if (writer == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to write %s", what);
    if (writer->failure.code != TDM_OK && err != NULL)
        *err = writer->failure;
    TDMI_TRY(writer->failure.code);
    TDMI_AT_END(tdmi_free_at) char *head = NULL;
    TDMI_AT_END(tdmi_free_at) struct item **order = NULL;
    const size_t n = writer->n_items;
    size_t head_bytes = 0;
    TDMI_TRY(TDMI_NEW(order, n + 1, err));
    sort_by_width(writer, order);
    TDM_TRY(make_head(writer, order, &head, &head_bytes, err), err, "cannot make the header of %s",
            what);
    return path ? stream_to_file(path, open, head, head_bytes, order, n, err)
                : copy_to_memory(bytes, length_bytes, head, head_bytes, order, n, err);
}

tdm_status tdmi_safetensors_finish(tdmi_safetensors_writer *writer, const char *path,
                                   tdm_error *err)
{
    return finish(writer, path, tdmi_atomic_open, NULL, NULL, err);
}

tdm_status tdmi_safetensors_finish_in_folder(tdmi_safetensors_writer *writer, const char *path,
                                             tdm_error *err)
{
    return finish(writer, path, tdmi_atomic_open_in_folder, NULL, NULL, err);
}

tdm_status tdmi_safetensors_finish_bytes(tdmi_safetensors_writer *writer, void **bytes,
                                         size_t *length_bytes, tdm_error *err)
{
    return finish(writer, NULL, NULL, bytes, length_bytes, err);
}
