/*
 * Datasets in chunks: a grid of equal boxes, each packed for itself; those at the edges hold more
 * than the dataset. Memory is allocated once the bytes that are there can be that many values.
 */
#include "weights/hdf5/internal.h"
#include "io/compress/inflate.h"

#include <string.h>
#include "base/banned.h"

enum { SINGLE_IS_FILTERED = 2 };

/* Version 3: rank + 1, address, extents of 4 bytes. Version 4: flags, rank + 1, bytes of an extent,
 * extents, kind of index, what that index says, address. The last extent is the bytes of an item.
 */
static tdm_status read_chunking(const tdmi_hdf5 *file, struct tdmi_hdf5_cursor layout, int version,
                                const struct tdmi_hdf5_values *values,
                                struct tdmi_hdf5_chunking *chunking, tdm_error *err)
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
        if (!layout.is_short && (index < 1 || index > TDMI_HDF5_INDEX_FIXED_ARRAY))
            return TDMI_HDF5_BAD(err, file,
                                 "a dataset's chunks have an index of kind %u (for datasets that "
                                 "grow), which is not read",
                                 index);
        chunking->index = (enum tdmi_hdf5_index)index;
        if (index == TDMI_HDF5_INDEX_SINGLE && flags & SINGLE_IS_FILTERED) {
            chunking->single_bytes = tdmi_hdf5_next(&layout, 8);
            chunking->single_skips = (uint32_t)tdmi_hdf5_next(&layout, 4);
        } else if (index == TDMI_HDF5_INDEX_FIXED_ARRAY) {
            tdmi_hdf5_skip(&layout, 1); /* bits of a page, which the array says again */
        }
        chunking->address = tdmi_hdf5_next(&layout, 8);
    }
    if (layout.is_short)
        return TDMI_HDF5_BAD(err, file, "a dataset's layout is cut short");
    return TDM_OK;
}

/* Every chunk is there, and its bytes are enough for what it is to become. */
static tdm_status check_chunks(tdmi_hdf5 *file, const struct tdmi_hdf5_chunking *chunking,
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
static void place(const struct tdmi_hdf5_chunking *chunking, const struct tdmi_hdf5_values *values,
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

static tdm_status unpack_all(tdmi_hdf5 *file, const struct tdmi_hdf5_chunking *chunking,
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
    struct tdmi_hdf5_chunking chunking = {0};
    struct tdmi_hdf5_pipeline pipeline = {0};
    const struct tdmi_hdf5_message *filters = tdmi_hdf5_message(object, TDMI_HDF5_FILTERS);
    TDMI_TRY(read_chunking(file, layout, version, values, &chunking, err));
    if (filters != NULL)
        TDMI_TRY(tdmi_hdf5_read_pipeline(file, filters, &pipeline, err));
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
    TDMI_TRY(tdmi_hdf5_read_index(file, values, &chunking, filters != NULL, chunks, err));
    TDMI_TRY(check_chunks(file, &chunking, &pipeline, chunks, err));
    return unpack_all(file, &chunking, &pipeline, chunks, values, n_bytes, err);
}
