/*
 * An HDF5 file's beginning, and its objects as lists of messages: what a group or a dataset says of
 * itself. Headers of version 1 (what h5py writes by default) and 2.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"

#include <string.h>

/* Weights hardly shrink: what unpacks to far more than its file is refused. */
#define FREE_BYTES ((uint64_t)64 << 20)
enum { MOST_TIMES = 16 };

static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

/* ---- the file ---------------------------------------------------------------------------- */

/* n_bytes when there is none. */
static size_t signature_at(const uint8_t *bytes, size_t n_bytes)
{
    for (size_t at = 0; at < n_bytes && n_bytes - at >= sizeof signature; at = at ? 2 * at : 512)
        if (memcmp(bytes + at, signature, sizeof signature) == 0)
            return at;
    return n_bytes;
}

bool tdmi_hdf5_is(const uint8_t *bytes, size_t n_bytes)
{
    return signature_at(bytes, n_bytes) < n_bytes;
}

/* Addresses count from the signature, wherever a user block has moved it. */
static tdm_status read_superblock(tdmi_hdf5 *file, uint64_t *root, tdm_error *err)
{
    struct tdmi_hdf5_cursor cursor = {.at = file->bytes + 8, .left = file->n_bytes - 8};
    unsigned version = (unsigned)tdmi_hdf5_next(&cursor, 1);
    if (!cursor.is_short && version > 3)
        return TDMI_HDF5_BAD(err, file, "its superblock is of version %u; 0 to 3 are read",
                             version);
    if (version < 2)
        tdmi_hdf5_skip(&cursor, 4); /* versions of other parts */
    unsigned offset_bytes = (unsigned)tdmi_hdf5_next(&cursor, 1);
    unsigned length_bytes = (unsigned)tdmi_hdf5_next(&cursor, 1);
    if (!cursor.is_short && (offset_bytes != 8 || length_bytes != 8))
        return TDMI_HDF5_BAD(err, file,
                             "its offsets and lengths take %u and %u bytes; 8 and 8 are read",
                             offset_bytes, length_bytes);
    /* The sizes of tree nodes, which each node says again, and flags. */
    tdmi_hdf5_skip(&cursor, version == 0 ? 9 : version == 1 ? 13 : 1);
    uint64_t base = tdmi_hdf5_next(&cursor, 8);
    tdmi_hdf5_skip(&cursor, 8); /* free space, or an extension that only says how to write */
    uint64_t end = tdmi_hdf5_next(&cursor, 8);
    if (version < 2)
        tdmi_hdf5_skip(&cursor, 16); /* a driver, and the offset of a name that the root has not */
    *root = tdmi_hdf5_next(&cursor, 8);
    if (version >= 2)
        tdmi_hdf5_skip(&cursor, 4);
    if (cursor.is_short)
        return TDMI_HDF5_BAD(err, file, "it ends within its superblock");
    if (version >= 2)
        TDMI_TRY(tdmi_hdf5_check(file, file->bytes, 48, "the superblock", err));
    if (end < base || end - base > file->n_bytes)
        return TDMI_HDF5_BAD(err, file,
                             "it says that it has %zu bytes, and there are %zu: it is cut short",
                             (size_t)(end < base ? end : end - base), file->n_bytes);
    return TDM_OK;
}

tdm_status tdmi_hdf5_open(const uint8_t *bytes, size_t n_bytes, const char *name, bool has_checks,
                          tdmi_hdf5 **opened, tdm_error *err)
{
    size_t begin = signature_at(bytes, n_bytes);
    if (begin == n_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "%s: it is no HDF5 file", name);
    uint64_t root = 0;
    TDMI_AT_END(tdmi_hdf5_close_at) tdmi_hdf5 *file = NULL;
    TDMI_TRY(TDMI_NEW(file, 1, err));
    TDMI_ARENA_COPY(&file->arena, file->name, name, err);
    file->bytes = bytes + begin;
    file->n_bytes = n_bytes - begin;
    file->has_checks = has_checks;
    file->budget_bytes = 4 * (uint64_t)file->n_bytes + 65536;
    file->stored_bytes = file->n_bytes;
    file->unpacked_bytes = FREE_BYTES + MOST_TIMES * (uint64_t)file->n_bytes;
    TDMI_TRY(read_superblock(file, &root, err));
    TDMI_TRY(tdmi_hdf5_object_at(file, root, &file->root, err));
    if (!tdmi_hdf5_is_group(file->root))
        return TDMI_HDF5_BAD(err, file, "its root is no group");
    *opened = tdmi_take(&file);
    return TDM_OK;
}

void tdmi_hdf5_close(tdmi_hdf5 *file)
{
    if (file == NULL)
        return;
    tdmi_arena_release(&file->arena);
    tdmi_free(file);
}

tdmi_hdf5_object *tdmi_hdf5_root(const tdmi_hdf5 *file)
{
    return file->root;
}

/* ---- messages ---------------------------------------------------------------------------- */

struct header {
    int version;
    int prefix_bytes; /* of a message */
    size_t most;      /* messages; what a header of version 1 says */
};

/* A run of messages; up to three bytes at the end of version 2's may be left over. */
static tdm_status read_messages(tdmi_hdf5 *file, tdmi_hdf5_object *object,
                                const struct header *header, struct tdmi_hdf5_cursor cursor,
                                tdm_error *err)
{
    while (cursor.left >= (size_t)header->prefix_bytes && object->n_messages < header->most) {
        const uint8_t *prefix = tdmi_hdf5_skip(&cursor, (uint64_t)header->prefix_bytes);
        int type_bytes = header->version == 1 ? 2 : 1;
        struct tdmi_hdf5_message message = {
            .type = (uint16_t)tdmi_read_little(prefix, (size_t)type_bytes),
            .n_bytes = (uint32_t)tdmi_read_little(prefix + type_bytes, 2),
            .is_shared = prefix[type_bytes + 2] & 2,
        };
        message.body = tdmi_hdf5_skip(&cursor, message.n_bytes);
        if (message.body == NULL)
            return TDMI_HDF5_BAD(err, file,
                                 "a message of the object at byte %zu reaches past its header",
                                 (size_t)object->address);
        TDMI_ARENA_ROOM(&file->arena, object->messages, object->message_capacity,
                        object->n_messages, err);
        object->messages[object->n_messages++] = message;
    }
    return TDM_OK;
}

static tdm_status read_continuation(tdmi_hdf5 *file, tdmi_hdf5_object *object,
                                    const struct header *header,
                                    const struct tdmi_hdf5_message *message, tdm_error *err)
{
    const uint8_t *block;
    if (message->n_bytes < 16)
        return TDMI_HDF5_BAD(err, file, "the continuation of the object at byte %zu is cut short",
                             (size_t)object->address);
    uint64_t address = tdmi_read_little(message->body, 8);
    uint64_t n_bytes = tdmi_read_little(message->body + 8, 8);
    TDMI_TRY(tdmi_hdf5_take(file, address, n_bytes, "an object's continuation", &block, err));
    struct tdmi_hdf5_cursor cursor = {.at = block, .left = (size_t)n_bytes};
    if (header->version == 2) {
        if (n_bytes < 8 || memcmp(block, "OCHK", 4) != 0)
            return TDMI_HDF5_BAD(err, file, "byte %zu does not begin with 'OCHK'", (size_t)address);
        TDMI_TRY(tdmi_hdf5_check(file, block, cursor.left, "an object's continuation", err));
        cursor = (struct tdmi_hdf5_cursor){.at = block + 4, .left = cursor.left - 8};
    }
    return read_messages(file, object, header, cursor, err);
}

/* ---- headers ----------------------------------------------------------------------------- */

static tdm_status read_header_1(tdmi_hdf5 *file, tdmi_hdf5_object *object, struct header *header,
                                tdm_error *err)
{
    const uint8_t *prefix, *block;
    TDMI_TRY(tdmi_hdf5_take(file, object->address, 16, "an object's header", &prefix, err));
    if (prefix[0] != 1)
        return TDMI_HDF5_BAD(err, file, "no object begins at byte %zu", (size_t)object->address);
    size_t n_bytes = (size_t)tdmi_read_little(prefix + 8, 4);
    *header = (struct header){
        .version = 1, .prefix_bytes = 8, .most = (size_t)tdmi_read_little(prefix + 2, 2)};
    TDMI_TRY(
        tdmi_hdf5_take(file, object->address + 16, n_bytes, "an object's header", &block, err));
    struct tdmi_hdf5_cursor cursor = {.at = block, .left = n_bytes};
    return read_messages(file, object, header, cursor, err);
}

static tdm_status read_header_2(tdmi_hdf5 *file, tdmi_hdf5_object *object, struct header *header,
                                tdm_error *err)
{
    const uint8_t *block;
    TDMI_TRY(tdmi_hdf5_take_signed(file, object->address, 6, "OHDR", 2, &block, err));
    unsigned flags = block[5];
    int size_bytes = 1 << (flags & 3u);
    size_t prefix = 6 + (flags & 0x20u ? 16u : 0) + (flags & 0x10u ? 4u : 0) + (size_t)size_bytes;
    TDMI_TRY(tdmi_hdf5_take(file, object->address, prefix, "an object's header", &block, err));
    uint64_t n_bytes = tdmi_read_little(block + prefix - size_bytes, (size_t)size_bytes);
    if (n_bytes > file->n_bytes)
        n_bytes = file->n_bytes; /* no overflow; then it is too much all the same */
    TDMI_TRY(tdmi_hdf5_take(file, object->address, prefix + n_bytes + 4, "an object's header",
                            &block, err));
    TDMI_TRY(tdmi_hdf5_check(file, block, prefix + (size_t)n_bytes + 4, "the header", err));
    *header = (struct header){.version = 2, .prefix_bytes = flags & 4u ? 6 : 4, .most = SIZE_MAX};
    struct tdmi_hdf5_cursor cursor = {.at = block + prefix, .left = (size_t)n_bytes};
    return read_messages(file, object, header, cursor, err);
}

tdm_status tdmi_hdf5_object_at(tdmi_hdf5 *file, uint64_t address, tdmi_hdf5_object **found,
                               tdm_error *err)
{
    tdmi_hdf5_object *object = tdmi_hdf5_map_find(&file->objects, address);
    *found = object;
    if (object != NULL)
        return TDM_OK;
    TDMI_ARENA_NEW(&file->arena, object, 1, err);
    object->address = address;
    struct header header = {0};
    bool is_new = address < file->n_bytes && file->bytes[address] == 'O';
    TDMI_TRY(is_new ? read_header_2(file, object, &header, err)
                    : read_header_1(file, object, &header, err));
    /* The list grows while it is walked: a continuation may be continued. */
    for (size_t i = 0; i < object->n_messages; i++) {
        struct tdmi_hdf5_message message = object->messages[i];
        if (message.type == TDMI_HDF5_CONTINUATION)
            TDMI_TRY(read_continuation(file, object, &header, &message, err));
    }
    *found = object;
    return tdmi_hdf5_map_add(file, &file->objects, address, object, err);
}

const struct tdmi_hdf5_message *tdmi_hdf5_message(const tdmi_hdf5_object *object,
                                                  enum tdmi_hdf5_message_type type)
{
    for (size_t i = 0; i < object->n_messages; i++)
        if (object->messages[i].type == type)
            return &object->messages[i];
    return NULL;
}

bool tdmi_hdf5_is_group(const tdmi_hdf5_object *object)
{
    return tdmi_hdf5_message(object, TDMI_HDF5_SYMBOL_TABLE) != NULL ||
           tdmi_hdf5_message(object, TDMI_HDF5_LINK_INFO) != NULL ||
           tdmi_hdf5_message(object, TDMI_HDF5_GROUP_INFO) != NULL;
}

bool tdmi_hdf5_is_dataset(const tdmi_hdf5_object *object)
{
    return tdmi_hdf5_message(object, TDMI_HDF5_LAYOUT) != NULL;
}

bool tdmi_hdf5_mark(tdmi_hdf5_object *object)
{
    bool was = object->is_marked;
    object->is_marked = true;
    return was;
}
