/*
 * The filters of a chunk, undone from last to first: deflate, shuffle, fletcher32.
 */
#include "weights/hdf5/internal.h"
#include "base/bytes.h"
#include "io/compress/inflate.h"

#include <string.h>

enum filter_id { FILTER_DEFLATE = 1, FILTER_SHUFFLE = 2, FILTER_FLETCHER = 3 };

static const char *filter_name(unsigned id)
{
    static const struct {
        unsigned id;
        const char *name;
    } known[] = {{4, "szip"},    {5, "n-bit"},        {6, "scale-offset"}, {307, "bzip2"},
                 {32000, "LZF"}, {32001, "Blosc"},    {32004, "LZ4"},      {32008, "bitshuffle"},
                 {32013, "ZFP"}, {32015, "Zstandard"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].id == id)
            return known[i].name;
    return "unknown";
}

/* Version 1: version, count, 6 bytes; filters: id, length of a name, flags, count of values, name
 * padded to 8, values, 4 bytes when their count is odd. Version 2: version, count; filters without
 * padding, and without a name below id 256. */
tdm_status tdmi_hdf5_read_pipeline(const tdmi_hdf5 *file, const struct tdmi_hdf5_message *message,
                                   struct tdmi_hdf5_pipeline *pipeline, tdm_error *err)
{
    struct tdmi_hdf5_cursor cursor = {.at = message->body, .left = message->n_bytes};
    unsigned version = (unsigned)tdmi_hdf5_next(&cursor, 1);
    pipeline->n = (int)tdmi_hdf5_next(&cursor, 1);
    tdmi_hdf5_skip(&cursor, version == 1 ? 6 : 0);
    if (cursor.is_short || message->is_shared || version < 1 || version > 2 ||
        pipeline->n > TDMI_HDF5_FILTERS_MAX)
        return TDMI_HDF5_BAD(err, file, "a dataset's list of filters is damaged or not read");
    int n_deflate = 0;
    for (int i = 0; i < pipeline->n; i++) {
        struct tdmi_hdf5_filter *filter = &pipeline->filters[i];
        filter->id = (unsigned)tdmi_hdf5_next(&cursor, 2);
        bool has_name = version == 1 || filter->id >= 256;
        uint64_t name_bytes = has_name ? tdmi_hdf5_next(&cursor, 2) : 0;
        tdmi_hdf5_skip(&cursor, 2);
        uint64_t n_values = tdmi_hdf5_next(&cursor, 2);
        tdmi_hdf5_skip(&cursor, version == 1 ? (name_bytes + 7) / 8 * 8 : name_bytes);
        filter->item_bytes = n_values > 0 ? (uint32_t)tdmi_hdf5_next(&cursor, 4) : 1;
        tdmi_hdf5_skip(&cursor, n_values > 0 ? 4 * (n_values - 1) : 0);
        tdmi_hdf5_skip(&cursor, version == 1 && n_values % 2 ? 4 : 0);
        if (cursor.is_short)
            return TDMI_HDF5_BAD(err, file, "a dataset's list of filters is cut short");
        if (filter->id < FILTER_DEFLATE || filter->id > FILTER_FLETCHER)
            return TDMI_HDF5_BAD(
                err, file,
                "a dataset is packed with filter %u (%s); deflate, shuffle and fletcher32 are read",
                filter->id, filter_name(filter->id));
        n_deflate += filter->id == FILTER_DEFLATE;
    }
    if (n_deflate > 1)
        return TDMI_HDF5_BAD(err, file, "a dataset is deflated twice, which is not read");
    pipeline->has_deflate = n_deflate > 0;
    return TDM_OK;
}

static uint32_t adler32(const uint8_t *bytes, size_t n_bytes)
{
    uint32_t a = 1, b = 0;
    while (n_bytes > 0) {
        size_t n = n_bytes < 5552 ? n_bytes : 5552; /* sums of so many fit in 32 bits */
        n_bytes -= n;
        for (; n > 0; n--) {
            a += *bytes++;
            b += a;
        }
        a %= 65521;
        b %= 65521;
    }
    return b << 16 | a;
}

/* zlib's form: two bytes, a deflate stream, a checksum. */
static tdm_status inflate(const tdmi_hdf5 *file, const uint8_t *bytes, size_t n_bytes, uint8_t *out,
                          size_t out_bytes, tdm_error *err)
{
    if (n_bytes < 6 || (bytes[0] & 15) != 8 || (bytes[0] << 8 | bytes[1]) % 31 != 0 ||
        (bytes[1] & 32) != 0)
        return TDMI_HDF5_BAD(err, file, "a chunk at byte %zu is no zlib stream",
                             (size_t)(bytes - file->bytes));
    TDM_TRY(tdmi_inflate_raw(bytes + 2, n_bytes - 6, out, out_bytes, file->name, err), err,
            "unpacking the chunk at byte %zu", (size_t)(bytes - file->bytes));
    const uint8_t *end = bytes + n_bytes - 4;
    if (file->has_checks && adler32(out, out_bytes) != tdmi_read_big(end, 4))
        return TDMI_HDF5_BAD(err, file, "the checksum of the chunk at byte %zu is wrong",
                             (size_t)(bytes - file->bytes));
    return TDM_OK;
}

/* Byte i of every item, for each i; what is no whole item stands at the end. */
static void unshuffle(const uint8_t *bytes, size_t n_bytes, size_t item_bytes, uint8_t *out)
{
    size_t n = n_bytes / item_bytes;
    for (size_t byte = 0; n > 0 && byte < item_bytes; byte++)
        for (size_t i = 0; i < n; i++)
            out[i * item_bytes + byte] = bytes[byte * n + i];
    memcpy(out + n * item_bytes, bytes + n * item_bytes, n_bytes - n * item_bytes);
}

/* Two sums over 16-bit words, the high byte first, modulo 65535 with 65535 for 0 kept as it is. */
static uint32_t fletcher32(const uint8_t *bytes, size_t n_bytes)
{
    uint32_t a = 0, b = 0;
    size_t words = n_bytes / 2;
    while (words > 0) {
        size_t n = words < 360 ? words : 360; /* sums of so many fit in 32 bits */
        words -= n;
        for (; n > 0; n--, bytes += 2) {
            a += (uint32_t)bytes[0] << 8 | bytes[1];
            b += a;
        }
        a = (a & 0xffffU) + (a >> 16);
        b = (b & 0xffffU) + (b >> 16);
    }
    if (n_bytes % 2) {
        a += (uint32_t)*bytes << 8;
        b += a;
    }
    for (int i = 0; i < 2; i++) {
        a = (a & 0xffffU) + (a >> 16);
        b = (b & 0xffffU) + (b >> 16);
    }
    return b << 16 | a;
}

static tdm_status undo(const tdmi_hdf5 *file, const struct tdmi_hdf5_filter *filter,
                       const uint8_t **bytes, size_t *n_bytes, size_t unpacked_bytes, uint8_t *room,
                       tdm_error *err)
{
    if (filter->id == FILTER_FLETCHER) {
        if (*n_bytes < 4 || (file->has_checks && fletcher32(*bytes, *n_bytes - 4) !=
                                                     tdmi_read_little(*bytes + *n_bytes - 4, 4)))
            return TDMI_HDF5_BAD(err, file, "the fletcher32 checksum of a chunk is wrong");
        *n_bytes -= 4;
        return TDM_OK;
    }
    if (filter->id == FILTER_SHUFFLE && filter->item_bytes < 2)
        return TDM_OK;
    if (filter->id == FILTER_SHUFFLE) {
        unshuffle(*bytes, *n_bytes, filter->item_bytes, room);
    } else {
        TDMI_TRY(inflate(file, *bytes, *n_bytes, room, unpacked_bytes, err));
        *n_bytes = unpacked_bytes;
    }
    *bytes = room;
    return TDM_OK;
}

tdm_status tdmi_hdf5_unpack(const tdmi_hdf5 *file, const struct tdmi_hdf5_pipeline *pipeline,
                            const struct tdmi_hdf5_chunk *chunk, size_t chunk_bytes,
                            uint8_t *rooms[2], const uint8_t **unpacked, tdm_error *err)
{
    const uint8_t *bytes = chunk->bytes;
    size_t n_bytes = chunk->n_bytes;
    /* Bytes after filter i is undone: the values, and a checksum for each fletcher32 before it. */
    size_t expected = chunk_bytes;
    for (int i = 0; i < pipeline->n; i++)
        if (pipeline->filters[i].id == FILTER_FLETCHER && !(chunk->skips >> i & 1u))
            expected += 4;
    for (int i = pipeline->n - 1, room = 0; i >= 0; i--) {
        const struct tdmi_hdf5_filter *filter = &pipeline->filters[i];
        if (chunk->skips >> i & 1u)
            continue;
        if (filter->id == FILTER_FLETCHER)
            expected -= 4;
        if (filter->id == FILTER_SHUFFLE && n_bytes > chunk_bytes + TDMI_HDF5_ROOM)
            break;
        TDMI_TRY(undo(file, filter, &bytes, &n_bytes, expected, rooms[room], err));
        if (bytes == rooms[room]) /* fletcher32 only looks, and what it looked at must stay */
            room = !room;
    }
    if (n_bytes != chunk_bytes)
        return TDMI_HDF5_BAD(err, file, "a chunk unpacks to %zu bytes; its shape needs %zu",
                             n_bytes, chunk_bytes);
    *unpacked = bytes;
    return TDM_OK;
}
