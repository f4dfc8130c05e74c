/*
 * Where the chunks of a dataset lie: a tree (what h5py writes by default), one chunk,
 * one run of chunks, or an array of fixed length.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"

#include "base/banned.h"

struct reading {
    tdmi_hdf5 *file;
    const struct tdmi_hdf5_values *values;
    const struct tdmi_hdf5_chunking *chunking;
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
    const struct tdmi_hdf5_chunking *chunking = reading->chunking;
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

tdm_status tdmi_hdf5_read_index(tdmi_hdf5 *file, const struct tdmi_hdf5_values *values,
                                const struct tdmi_hdf5_chunking *chunking, bool is_filtered,
                                struct tdmi_hdf5_chunk *chunks, tdm_error *err)
{
    struct reading reading = {file, values, chunking, is_filtered, chunks};
    uint64_t n_bytes = chunking->chunk_bytes;
    switch (chunking->index) {
    case TDMI_HDF5_INDEX_TREE:
        return read_tree(&reading, chunking->address, -1, err);
    case TDMI_HDF5_INDEX_SINGLE:
        if (chunking->n_chunks != 1)
            return TDMI_HDF5_BAD(err, file, "a dataset of one chunk needs %zu by its shape",
                                 (size_t)chunking->n_chunks);
        return note(&reading, 0, chunking->address,
                    chunking->single_bytes ? chunking->single_bytes : n_bytes,
                    chunking->single_skips, err);
    case TDMI_HDF5_INDEX_IMPLICIT:
        for (uint64_t i = 0; i < chunking->n_chunks; i++)
            TDMI_TRY(note(&reading, i, chunking->address + i * n_bytes, n_bytes, 0, err));
        return TDM_OK;
    case TDMI_HDF5_INDEX_FIXED_ARRAY:
        return read_array(&reading, err);
    }
    return TDMI_HDF5_BAD(err, file, "a dataset's chunks have an index that is not read");
}
