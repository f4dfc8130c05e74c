/*
 * Global heaps of HDF5: where text of variable length lies. A collection is walked once, and the
 * places of its objects are kept.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"

#include "base/banned.h"

struct collection {
    const uint8_t **objects; /* each at its head, by index; NULL: none */
    uint32_t n;              /* indices below this */
};

enum { HEAD_BYTES = 16 };

static size_t padded(uint64_t n_bytes)
{
    return (size_t)((n_bytes + 7) / 8 * 8);
}

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
        size_t step = padded(n_bytes) < cursor.left ? padded(n_bytes) : cursor.left;
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

tdm_status tdmi_hdf5_heap_object(tdmi_hdf5 *file, uint64_t address, uint32_t index,
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
