/*
 * Attributes of HDF5 objects, and text wherever it stands.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"

#include <string.h>

/* The parts of an attribute's message. */
struct parts {
    const uint8_t *name, *type, *shape;
    size_t name_bytes, type_bytes, shape_bytes;
    struct tdmi_hdf5_cursor data;
    bool is_shared;
};

/* Version, flags, three sizes, [character set], then the parts; those of version 1 are padded to 8
 * bytes each. */
static tdm_status split(const tdmi_hdf5 *file, const struct tdmi_hdf5_message *message,
                        struct parts *parts, tdm_error *err)
{
    struct tdmi_hdf5_cursor cursor = {.at = message->body, .left = message->n_bytes};
    unsigned version = (unsigned)tdmi_hdf5_next(&cursor, 1);
    unsigned flags = (unsigned)tdmi_hdf5_next(&cursor, 1);
    if (!cursor.is_short && (version < 1 || version > 3))
        return TDMI_HDF5_BAD(err, file, "an attribute is of version %u; 1 to 3 are read", version);
    size_t step = version == 1 ? 8 : 1;
    parts->name_bytes = (size_t)tdmi_hdf5_next(&cursor, 2);
    parts->type_bytes = (size_t)tdmi_hdf5_next(&cursor, 2);
    parts->shape_bytes = (size_t)tdmi_hdf5_next(&cursor, 2);
    tdmi_hdf5_skip(&cursor, version == 3 ? 1 : 0);
    parts->name = tdmi_hdf5_skip(&cursor, (parts->name_bytes + step - 1) / step * step);
    parts->type = tdmi_hdf5_skip(&cursor, (parts->type_bytes + step - 1) / step * step);
    parts->shape = tdmi_hdf5_skip(&cursor, (parts->shape_bytes + step - 1) / step * step);
    parts->data = cursor;
    parts->is_shared = version > 1 && (flags & 3u) != 0;
    if (message->is_shared)
        return TDMI_HDF5_BAD(err, file, "an attribute is shared, which is not read");
    if (cursor.is_short)
        return TDMI_HDF5_BAD(err, file, "an attribute is cut short");
    return TDM_OK;
}

static bool is_named(const struct parts *parts, const char *name)
{
    size_t n = strlen(name);
    return parts->name_bytes >= n && memcmp(parts->name, name, n) == 0 &&
           (parts->name_bytes == n || parts->name[n] == 0);
}

static tdm_status read_parts(tdmi_hdf5 *file, struct parts *parts, const char *name,
                             struct tdmi_hdf5_values *values, tdm_error *err)
{
    size_t n_bytes = 0;
    *values = (struct tdmi_hdf5_values){0};
    if (parts->is_shared)
        return TDMI_HDF5_BAD(err, file, "attribute '%s' is of a named type, which is not read",
                             name);
    TDM_TRY(tdmi_hdf5_read_type(file, parts->type, parts->type_bytes, values, err), err,
            "reading attribute '%s'", name);
    TDM_TRY(tdmi_hdf5_read_shape(file, parts->shape, parts->shape_bytes, values, err), err,
            "reading attribute '%s'", name);
    if (!tdmi_hdf5_size(values, &n_bytes) || n_bytes > parts->data.left)
        return TDMI_HDF5_BAD(err, file, "attribute '%s' is cut short", name);
    values->data = parts->data.at;
    TDMI_TRY(tdmi_hdf5_pay(file, n_bytes, err));
    return values->kind == TDMI_HDF5_NUMBERS ? tdmi_hdf5_swap_bytes(file, values, err) : TDM_OK;
}

/* Many or large attributes of new files lie outside of the header. */
static tdm_status refuse_dense(const tdmi_hdf5 *file, const tdmi_hdf5_object *object,
                               tdm_error *err)
{
    const struct tdmi_hdf5_message *info = tdmi_hdf5_message(object, TDMI_HDF5_ATTRIBUTE_INFO);
    if (info == NULL)
        return TDM_OK;
    struct tdmi_hdf5_cursor cursor = {.at = info->body, .left = info->n_bytes};
    unsigned flags = (unsigned)(tdmi_hdf5_next(&cursor, 2) >> 8);
    tdmi_hdf5_skip(&cursor, flags & 1u ? 2 : 0);
    uint64_t heap = tdmi_hdf5_next(&cursor, 8);
    if (cursor.is_short || info->is_shared)
        return TDMI_HDF5_BAD(err, file,
                             "the object at byte %zu has damaged facts on its attributes",
                             (size_t)object->address);
    if (heap != TDMI_HDF5_NOWHERE)
        return TDMI_HDF5_BAD(err, file,
                             "the object at byte %zu keeps its attributes in a fractal heap, which "
                             "is not read: write the file with h5py's libver='earliest'",
                             (size_t)object->address);
    return TDM_OK;
}

tdm_status tdmi_hdf5_attribute(tdmi_hdf5 *file, const tdmi_hdf5_object *object, const char *name,
                               struct tdmi_hdf5_values *values, bool *is_there, tdm_error *err)
{
    *is_there = false;
    *values = (struct tdmi_hdf5_values){0};
    for (size_t i = 0; i < object->n_messages; i++) {
        struct parts parts = {0};
        if (object->messages[i].type != TDMI_HDF5_ATTRIBUTE)
            continue;
        TDMI_TRY(split(file, &object->messages[i], &parts, err));
        if (is_named(&parts, name)) {
            *is_there = true;
            return read_parts(file, &parts, name, values, err);
        }
    }
    return refuse_dense(file, object, err);
}

/* ---- text -------------------------------------------------------------------------------- */

/* Global heaps hold text of variable length. A collection is walked once, and the places of its
 * objects are kept. */
struct collection {
    const uint8_t **objects; /* each at its head, by index; NULL: none */
    uint32_t n;              /* indices below this */
};

enum { HEAD_BYTES = 16 };

/* Objects: index, references, 4 bytes, size; the bytes, padded to 8. Index 0 is what is free, which
 * is the rest. fill: note where they are, else only find how many there are. */
static bool walk(struct tdmi_hdf5_cursor cursor, struct collection *collection, bool fill)
{
    while (cursor.left >= HEAD_BYTES) {
        const uint8_t *head = tdmi_hdf5_skip(&cursor, HEAD_BYTES);
        uint32_t index = (uint32_t)tdmi_read_little(head, 2);
        uint64_t n_bytes = tdmi_read_little(head + 8, 8);
        if (index == 0)
            break;
        if (n_bytes > cursor.left)
            return false;
        size_t step =
            tdmi_hdf5_padded(n_bytes) < cursor.left ? tdmi_hdf5_padded(n_bytes) : cursor.left;
        tdmi_hdf5_skip(&cursor, step);
        if (fill)
            collection->objects[index] = head;
        else if (index >= collection->n)
            collection->n = index + 1;
    }
    return true;
}

/* "GCOL", version, 3 bytes, size; objects. */
static tdm_status read_collection(tdmi_hdf5 *file, uint64_t address, struct collection **read,
                                  tdm_error *err)
{
    const uint8_t *bytes;
    TDMI_TRY(tdmi_hdf5_take_signed(file, address, HEAD_BYTES, "GCOL", 1, &bytes, err));
    uint64_t n_bytes = tdmi_read_little(bytes + 8, 8);
    TDMI_TRY(tdmi_hdf5_take(file, address, n_bytes, "a global heap", &bytes, err));
    struct tdmi_hdf5_cursor cursor = {.at = bytes, .left = (size_t)n_bytes};
    tdmi_hdf5_skip(&cursor, HEAD_BYTES);
    struct collection *collection;
    TDMI_ARENA_NEW(&file->arena, collection, 1, err);
    if (!walk(cursor, collection, false))
        return TDMI_HDF5_BAD(err, file,
                             "an object of the global heap at byte %zu reaches past its end",
                             (size_t)address);
    /* Indices are not dense in a damaged file: what they take is paid for. */
    TDMI_TRY(tdmi_hdf5_pay(file, collection->n, err));
    TDMI_ARENA_NEW(&file->arena, collection->objects, collection->n + 1, err);
    TDMI_TRY(tdmi_hdf5_map_add(file, &file->heaps, address, collection, err));
    (void)walk(cursor, collection, true);
    *read = collection;
    return TDM_OK;
}

/* An object of a global heap, paid for. */
static tdm_status heap_object(tdmi_hdf5 *file, uint64_t address, uint32_t index,
                              struct tdmi_hdf5_text *object, tdm_error *err)
{
    struct collection *collection = tdmi_hdf5_map_find(&file->heaps, address);
    if (collection == NULL)
        TDMI_TRY(read_collection(file, address, &collection, err));
    const uint8_t *head = index < collection->n ? collection->objects[index] : NULL;
    if (head == NULL)
        return TDMI_HDF5_BAD(err, file, "the global heap at byte %zu has no object %u",
                             (size_t)address, index);
    object->bytes = (const char *)head + HEAD_BYTES;
    object->length_bytes = (size_t)tdmi_read_little(head + 8, 8);
    return tdmi_hdf5_pay(file, object->length_bytes, err);
}

tdm_status tdmi_hdf5_text_at(tdmi_hdf5 *file, const struct tdmi_hdf5_values *values, uint64_t index,
                             struct tdmi_hdf5_text *text, tdm_error *err)
{
    const uint8_t *at = values->data + index * values->item_bytes;
    *text = (struct tdmi_hdf5_text){.bytes = (const char *)at};
    if (values->kind == TDMI_HDF5_FIXED_TEXT) {
        text->length_bytes = values->item_bytes;
        const char *zero = memchr(text->bytes, 0, text->length_bytes);
        if (zero != NULL && values->padding == 0)
            text->length_bytes = (size_t)(zero - text->bytes);
        while (text->length_bytes > 0 && text->bytes[text->length_bytes - 1] == values->padding)
            text->length_bytes--;
        return TDM_OK;
    }
    if (values->kind != TDMI_HDF5_VARIABLE_TEXT)
        return TDMI_HDF5_BAD(err, file, "%s stand where text is expected", values->type_name);
    /* Length, address of a collection, index in it. An empty text may have no place. */
    uint64_t length = tdmi_read_little(at, 4);
    if (length == 0)
        return TDM_OK;
    TDMI_TRY(heap_object(file, tdmi_read_little(at + 4, 8), (uint32_t)tdmi_read_little(at + 12, 4),
                         text, err));
    if (length > text->length_bytes)
        return TDMI_HDF5_BAD(err, file, "a text of %zu bytes has only %zu in its heap",
                             (size_t)length, text->length_bytes);
    text->length_bytes = (size_t)length;
    while (text->length_bytes > 0 && text->bytes[text->length_bytes - 1] == 0)
        text->length_bytes--;
    return TDM_OK;
}
