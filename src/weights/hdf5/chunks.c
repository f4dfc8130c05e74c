/*
 * Datasets in chunks: a grid of equal boxes, each packed for itself; those at the edges hold more
 * than the dataset. Memory is allocated once the bytes that are there can be that many values.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"
#include "io/compress/inflate.h"

#include <string.h>

enum chunk_index { INDEX_TREE = 0, INDEX_SINGLE = 1, INDEX_IMPLICIT = 2, INDEX_FIXED_ARRAY = 3 };

/* Positions of a dataset's chunks. */
struct chunking {
    enum chunk_index index;
    uint64_t address;
    uint64_t single_bytes; /* of the single chunk, filtered */
    uint32_t single_skips;
    int64_t extent[TDMI_HDF5_RANK], grid[TDMI_HDF5_RANK]; /* of a chunk, and chunks along an axis */
    uint64_t n_chunks;
    size_t chunk_bytes;   /* unpacked, full at the edges too */
    bool has_plain_edges; /* chunks that reach past the dataset are not filtered */
};

struct reading {
    tdmi_hdf5 *file;
    const struct tdmi_hdf5_values *values;
    const struct chunking *chunking;
    bool is_filtered;
    struct tdmi_hdf5_chunk *chunks;
};

/* Notes chunk number index. */
static tdm_status note(const struct reading *reading, uint64_t index, uint64_t address,
                       uint64_t n_bytes, uint32_t skips, tdm_error *err)
{
    const tdmi_hdf5 *file = reading->file;
    struct tdmi_hdf5_chunk *chunk = &reading->chunks[index];
    if (address > file->n_bytes || n_bytes > file->n_bytes - address)
        return TDMI_HDF5_BAD(err, file,
                             "chunk %zu of a dataset, %zu bytes at byte %zu, reaches past the end "
                             "of the file (%zu bytes)",
                             (size_t)index, (size_t)n_bytes, (size_t)address, file->n_bytes);
    if (chunk->bytes != NULL)
        return TDMI_HDF5_BAD(err, file, "chunk %zu of a dataset is there twice", (size_t)index);
    *chunk = (struct tdmi_hdf5_chunk){
        .bytes = file->bytes + address, .n_bytes = (size_t)n_bytes, .skips = skips};
    return TDM_OK;
}

/* ---- a tree ------------------------------------------------------------------------------ */

/* The number of the chunk at these coordinates, each 8 bytes. */
static tdm_status number_of(const struct reading *reading, const uint8_t *coordinates,
                            uint64_t *number, tdm_error *err)
{
    const struct chunking *chunking = reading->chunking;
    *number = 0;
    for (int i = 0; i < reading->values->rank; i++) {
        uint64_t at = tdmi_read_little(coordinates + (ptrdiff_t)8 * i, 8);
        uint64_t extent = (uint64_t)chunking->extent[i];
        if (at % extent != 0 || at / extent >= (uint64_t)chunking->grid[i])
            return TDMI_HDF5_BAD(err, reading->file,
                                 "a chunk lies outside of its dataset's grid: %zu on axis %d",
                                 (size_t)at, i);
        *number = *number * (uint64_t)chunking->grid[i] + at / extent;
    }
    return TDM_OK;
}

/* "TREE", kind 1, level, count, two neighbours; key, child, …, key. A key: bytes of the chunk,
 * filters that were skipped, coordinates and one more. */
static tdm_status read_tree(const struct reading *reading, uint64_t address, int level,
                            tdm_error *err)
{
    tdmi_hdf5 *file = reading->file;
    const uint8_t *node;
    TDMI_TRY(tdmi_hdf5_take_signed(file, address, 24, "TREE", 1, &node, err));
    if (level >= 0 && node[5] != level)
        return TDMI_HDF5_BAD(err, file, "the node at byte %zu is at level %d of its tree, not %d",
                             (size_t)address, node[5], level);
    level = node[5];
    size_t n = (size_t)tdmi_read_little(node + 6, 2);
    size_t key_bytes = 8 + 8 * (size_t)(reading->values->rank + 1), step = key_bytes + 8;
    TDMI_TRY(
        tdmi_hdf5_take(file, address + 24, n * step + key_bytes, "a node of a tree", &node, err));
    for (size_t i = 0; i < n; i++, node += step) {
        uint64_t child = tdmi_read_little(node + key_bytes, 8), number = 0;
        if (level > 0) {
            TDMI_TRY(read_tree(reading, child, level - 1, err));
            continue;
        }
        TDMI_TRY(number_of(reading, node + 8, &number, err));
        TDMI_TRY(note(reading, number, child, tdmi_read_little(node, 4),
                      (uint32_t)tdmi_read_little(node + 4, 4), err));
    }
    return TDM_OK;
}

/* ---- an array of fixed length ------------------------------------------------------------ */

enum { ARRAY_HEAD_BYTES = 28, BLOCK_HEAD_BYTES = 14 };

/* "FADB", version, kind, address of the head; elements: address, [bytes, skips]; checksum. */
static tdm_status read_block(const struct reading *reading, uint64_t address, size_t item_bytes,
                             tdm_error *err)
{
    tdmi_hdf5 *file = reading->file;
    const uint8_t *block;
    uint64_t n = reading->chunking->n_chunks, n_bytes = BLOCK_HEAD_BYTES + n * item_bytes + 4;
    TDMI_TRY(tdmi_hdf5_take_signed(file, address, n_bytes, "FADB", 0, &block, err));
    TDMI_TRY(tdmi_hdf5_check(file, block, (size_t)n_bytes, "a fixed array", err));
    int size_bytes = (int)item_bytes - 12;
    block += BLOCK_HEAD_BYTES;
    for (uint64_t i = 0; i < n; i++, block += item_bytes) {
        uint64_t at = tdmi_read_little(block, 8), chunk_bytes = reading->chunking->chunk_bytes;
        uint32_t skips = 0;
        if (at == TDMI_HDF5_NOWHERE)
            continue;
        if (reading->is_filtered) {
            chunk_bytes = tdmi_read_little(block + 8, (size_t)size_bytes);
            skips = (uint32_t)tdmi_read_little(block + 8 + size_bytes, 4);
        }
        TDMI_TRY(note(reading, i, at, chunk_bytes, skips, err));
    }
    return TDM_OK;
}

/* "FAHD", version, kind, bytes of an element, bits of a page, elements, address of the block,
 * checksum. */
static tdm_status read_array(const struct reading *reading, tdm_error *err)
{
    tdmi_hdf5 *file = reading->file;
    const uint8_t *head;
    TDMI_TRY(tdmi_hdf5_take_signed(file, reading->chunking->address, ARRAY_HEAD_BYTES, "FAHD", 0,
                                   &head, err));
    TDMI_TRY(tdmi_hdf5_check(file, head, ARRAY_HEAD_BYTES, "a fixed array", err));
    size_t item_bytes = head[6];
    uint64_t n = tdmi_read_little(head + 8, 8);
    if (head[5] != reading->is_filtered || n != reading->chunking->n_chunks ||
        (reading->is_filtered ? item_bytes < 13 || item_bytes > 20 : item_bytes != 8))
        return TDMI_HDF5_BAD(err, file, "the fixed array at byte %zu is not of its dataset",
                             (size_t)reading->chunking->address);
    if (head[7] > 63 || n > UINT64_C(1) << head[7])
        return TDMI_HDF5_BAD(err, file,
                             "a dataset of %zu chunks has an index in pages, which is not read",
                             (size_t)n);
    return read_block(reading, tdmi_read_little(head + 16, 8), item_bytes, err);
}

/* ---- all --------------------------------------------------------------------------------- */

/* Fill in chunking->n_chunks chunks, in the order of the grid. */
static tdm_status read_index(tdmi_hdf5 *file, const struct tdmi_hdf5_values *values,
                             const struct chunking *chunking, bool is_filtered,
                             struct tdmi_hdf5_chunk *chunks, tdm_error *err)
{
    struct reading reading = {file, values, chunking, is_filtered, chunks};
    uint64_t n_bytes = chunking->chunk_bytes;
    switch (chunking->index) {
    case INDEX_TREE:
        return read_tree(&reading, chunking->address, -1, err);
    case INDEX_SINGLE:
        if (chunking->n_chunks != 1)
            return TDMI_HDF5_BAD(err, file, "a dataset of one chunk needs %zu by its shape",
                                 (size_t)chunking->n_chunks);
        return note(&reading, 0, chunking->address,
                    chunking->single_bytes ? chunking->single_bytes : n_bytes,
                    chunking->single_skips, err);
    case INDEX_IMPLICIT:
        for (uint64_t i = 0; i < chunking->n_chunks; i++)
            TDMI_TRY(note(&reading, i, chunking->address + i * n_bytes, n_bytes, 0, err));
        return TDM_OK;
    case INDEX_FIXED_ARRAY:
        return read_array(&reading, err);
    }
    return TDMI_HDF5_BAD(err, file, "a dataset's chunks have an index that is not read");
}

/* ---- the dataset ------------------------------------------------------------------------- */

enum { EDGES_ARE_NOT_FILTERED = 1, SINGLE_IS_FILTERED = 2 };

/* Version 3: rank + 1, address, extents of 4 bytes. Version 4: flags, rank + 1, bytes of an extent,
 * extents, kind of index, what that index says, address. The last extent is the bytes of an item.
 */
static tdm_status read_chunking(const tdmi_hdf5 *file, struct tdmi_hdf5_cursor layout, int version,
                                const struct tdmi_hdf5_values *values, struct chunking *chunking,
                                tdm_error *err)
{
    unsigned flags = version == 4 ? (unsigned)tdmi_hdf5_next(&layout, 1) : 0;
    int rank = (int)tdmi_hdf5_next(&layout, 1) - 1;
    if (version == 3)
        chunking->address = tdmi_hdf5_next(&layout, 8);
    int extent_bytes = version == 4 ? (int)tdmi_hdf5_next(&layout, 1) : 4;
    if (layout.is_short || rank != values->rank || rank < 1 || extent_bytes < 1 || extent_bytes > 8)
        return TDMI_HDF5_BAD(err, file, "the chunks of a dataset of %d axes have %d axes",
                             values->rank, rank);
    uint64_t n_bytes = values->item_bytes;
    bool is_bad = false;
    chunking->n_chunks = 1;
    for (int i = 0; i < rank; i++) {
        uint64_t extent = tdmi_hdf5_next(&layout, extent_bytes), total = (uint64_t)values->shape[i];
        is_bad |= extent == 0 || extent > UINT32_MAX ||
                  __builtin_mul_overflow(n_bytes, extent, &n_bytes) || n_bytes > UINT32_MAX;
        if (is_bad)
            break;
        chunking->extent[i] = (int64_t)extent;
        chunking->grid[i] = (int64_t)(total / extent + (total % extent != 0));
        is_bad = __builtin_mul_overflow(chunking->n_chunks, (uint64_t)chunking->grid[i],
                                        &chunking->n_chunks);
    }
    if (is_bad || (!layout.is_short && tdmi_hdf5_next(&layout, extent_bytes) != values->item_bytes))
        return TDMI_HDF5_BAD(err, file, "the chunks of a dataset have an impossible shape");
    chunking->chunk_bytes = (size_t)n_bytes;
    if (version == 4) {
        unsigned index = (unsigned)tdmi_hdf5_next(&layout, 1);
        if (!layout.is_short && (index < 1 || index > INDEX_FIXED_ARRAY))
            return TDMI_HDF5_BAD(err, file,
                                 "a dataset's chunks have an index of kind %u (for datasets that "
                                 "grow), which is not read",
                                 index);
        chunking->index = (enum chunk_index)index;
        chunking->has_plain_edges = (flags & EDGES_ARE_NOT_FILTERED) != 0;
        if (index == INDEX_SINGLE && flags & SINGLE_IS_FILTERED) {
            chunking->single_bytes = tdmi_hdf5_next(&layout, 8);
            chunking->single_skips = (uint32_t)tdmi_hdf5_next(&layout, 4);
        } else if (index == INDEX_FIXED_ARRAY) {
            tdmi_hdf5_skip(&layout, 1); /* bits of a page, which the array says again */
        }
        chunking->address = tdmi_hdf5_next(&layout, 8);
    }
    if (layout.is_short)
        return TDMI_HDF5_BAD(err, file, "a dataset's layout is cut short");
    return TDM_OK;
}

/* Every chunk is there, and its bytes are enough for what it is to become. */
static tdm_status check_chunks(tdmi_hdf5 *file, const struct chunking *chunking,
                               const struct tdmi_hdf5_pipeline *pipeline,
                               const struct tdmi_hdf5_chunk *chunks, tdm_error *err)
{
    uint64_t ratio = pipeline->has_deflate ? TDMI_DEFLATE_MOST_RATIO : 1;
    for (uint64_t i = 0; i < chunking->n_chunks; i++) {
        uint64_t n = chunks[i].n_bytes;
        if (chunks[i].bytes == NULL)
            return TDMI_HDF5_BAD(err, file, "chunk %zu of a dataset was never written", (size_t)i);
        if (n > file->stored_bytes)
            return TDMI_HDF5_BAD(err, file, "chunks share their bytes with each other");
        file->stored_bytes -= n;
        if (chunking->chunk_bytes / ratio > n)
            return TDMI_HDF5_BAD(err, file,
                                 "chunk %zu of a dataset would grow from %zu to %zu bytes; nothing "
                                 "unpacks to more than %zu times its size",
                                 (size_t)i, (size_t)n, chunking->chunk_bytes, (size_t)ratio);
    }
    return TDM_OK;
}

/* Copies what of a chunk lies in the dataset, row by row of the last axis. at: its place in the
 * grid. */
static void place(const struct chunking *chunking, const struct tdmi_hdf5_values *values,
                  const int64_t *at, const uint8_t *chunk, uint8_t *data)
{
    int last = values->rank - 1;
    int64_t inside[TDMI_HDF5_RANK] = {0}, n[TDMI_HDF5_RANK];
    for (int i = 0; i <= last; i++) {
        int64_t left = values->shape[i] - at[i] * chunking->extent[i];
        n[i] = left < chunking->extent[i] ? left : chunking->extent[i];
    }
    size_t row_bytes = (size_t)n[last] * values->item_bytes;
    for (;;) {
        int64_t from = 0, to = 0;
        for (int i = 0; i <= last; i++) {
            from = from * chunking->extent[i] + inside[i];
            to = to * values->shape[i] + at[i] * chunking->extent[i] + inside[i];
        }
        memcpy(data + (size_t)to * values->item_bytes, chunk + (size_t)from * values->item_bytes,
               row_bytes);
        int axis = last - 1;
        while (axis >= 0 && ++inside[axis] == n[axis])
            inside[axis--] = 0;
        if (axis < 0)
            return;
    }
}

static tdm_status unpack_all(tdmi_hdf5 *file, const struct chunking *chunking,
                             const struct tdmi_hdf5_pipeline *pipeline,
                             const struct tdmi_hdf5_chunk *chunks, struct tdmi_hdf5_values *values,
                             size_t n_bytes, tdm_error *err)
{
    int64_t at[TDMI_HDF5_RANK] = {0};
    const size_t room_bytes = chunking->chunk_bytes + TDMI_HDF5_ROOM;
    uint8_t *data;
    TDMI_AT_END(tdmi_free_at) uint8_t *room = NULL;
    TDMI_ARENA_NEW(&file->arena, data, n_bytes, err);
    TDMI_TRY(TDMI_NEW(room, 2 * room_bytes, err));
    uint8_t *rooms[2] = {room, room + room_bytes};
    for (uint64_t i = 0; i < chunking->n_chunks; i++) {
        const uint8_t *unpacked = NULL;
        TDMI_TRY(tdmi_hdf5_unpack(file, pipeline, &chunks[i], chunking->chunk_bytes, rooms,
                                  &unpacked, err));
        place(chunking, values, at, unpacked, data);
        for (int axis = values->rank - 1; axis >= 0 && ++at[axis] == chunking->grid[axis]; axis--)
            at[axis] = 0;
    }
    values->data = data;
    return TDM_OK;
}

tdm_status tdmi_hdf5_read_chunked(tdmi_hdf5 *file, const tdmi_hdf5_object *object,
                                  struct tdmi_hdf5_cursor layout, int version,
                                  struct tdmi_hdf5_values *values, tdm_error *err)
{
    size_t n_bytes = 0;
    struct chunking chunking = {0};
    struct tdmi_hdf5_pipeline pipeline = {0};
    const struct tdmi_hdf5_message *filters = tdmi_hdf5_message(object, TDMI_HDF5_FILTERS);
    TDMI_TRY(read_chunking(file, layout, version, values, &chunking, err));
    if (filters != NULL)
        TDMI_TRY(tdmi_hdf5_read_pipeline(file, filters, &pipeline, err));
    if (pipeline.n > 0 && chunking.has_plain_edges)
        return TDMI_HDF5_BAD(err, file,
                             "a dataset's filters leave out the chunks at its edges, which is not "
                             "read");
    /* Each chunk has its place in an index of 8 bytes or more, or its own bytes behind another. */
    if (chunking.n_chunks > file->n_bytes)
        return TDMI_HDF5_BAD(err, file, "a dataset has %zu chunks, and the file %zu bytes",
                             (size_t)chunking.n_chunks, file->n_bytes);
    if (chunking.address == TDMI_HDF5_NOWHERE || !tdmi_hdf5_size(values, &n_bytes))
        return TDMI_HDF5_BAD(err, file, "the values of a dataset were never written");
    if (n_bytes > file->unpacked_bytes || chunking.chunk_bytes > file->unpacked_bytes)
        return TDMI_HDF5_BAD(
            err, file,
            "a dataset unpacks to %zu bytes in chunks of %zu: too many for a file of %zu", n_bytes,
            chunking.chunk_bytes, file->n_bytes);
    file->unpacked_bytes -= n_bytes;
    TDMI_TRY(tdmi_hdf5_pay(file, chunking.n_chunks, err));
    TDMI_AT_END(tdmi_free_at) struct tdmi_hdf5_chunk *chunks = NULL;
    TDMI_TRY(TDMI_NEW(chunks, chunking.n_chunks, err));
    TDMI_TRY(read_index(file, values, &chunking, filters != NULL, chunks, err));
    TDMI_TRY(check_chunks(file, &chunking, &pipeline, chunks, err));
    return unpack_all(file, &chunking, &pipeline, chunks, values, n_bytes, err);
}
