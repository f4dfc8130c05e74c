/* zlib, with memory from tdmi_alloc. Each call has a stream of its own, so threads share nothing.
 */
#include "io/compress/inflate.h"

#include <zlib.h>

enum { CHUNK_BYTES = 64 * 1024, GROWTH_BYTES = 256 * 1024, RAW = -15, GZIP = 15 + 16 };

static void *take(void *self, uInt count, uInt item_bytes)
{
    (void)self;
    return tdmi_alloc(count, item_bytes);
}

static void give(void *self, void *block)
{
    (void)self;
    tdmi_free(block);
}

static tdm_status start(z_stream *stream, int form, const char *name, tdm_error *err)
{
    *stream = (z_stream){.zalloc = take, .zfree = give};
    if (inflateInit2(stream, form) != Z_OK)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to decompress '%s'", name);
    return TDM_OK;
}

static void end(z_stream *stream)
{
    (void)inflateEnd(stream); /* refuses one that was not started */
}

static const char *reason(const z_stream *stream)
{
    return stream->msg == NULL ? "it does not fit its sizes" : stream->msg;
}

static uInt at_most(size_t length_bytes)
{
    return length_bytes > UINT_MAX ? UINT_MAX : (uInt)length_bytes;
}

/* ---- raw ------------------------------------------------------------------------------------ */

static tdm_status zlib_raw(const void *bytes, size_t length_bytes, void *out, size_t out_bytes,
                           const char *name, tdm_error *err)
{
    TDMI_AT_END(end) z_stream stream = {0};
    uint8_t beyond[1]; /* room to notice one byte too many */
    size_t out_done = 0, in_done = 0;
    int result = Z_OK;
    TDMI_TRY(start(&stream, RAW, name, err));
    while (result == Z_OK) {
        bool is_full = out_done == out_bytes;
        uInt in_step = at_most(length_bytes - in_done);
        uInt out_step = is_full ? 1 : at_most(out_bytes - out_done);
        stream.next_in = (z_const Bytef *)bytes + in_done;
        stream.avail_in = in_step;
        stream.next_out = is_full ? beyond : (Bytef *)out + out_done;
        stream.avail_out = out_step;
        result = inflate(&stream, Z_NO_FLUSH);
        in_done += in_step - stream.avail_in;
        if (is_full && stream.avail_out == 0)
            result = Z_DATA_ERROR;
        else if (!is_full)
            out_done += out_step - stream.avail_out;
    }
    if (result == Z_MEM_ERROR)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to decompress '%s'", name);
    if (result != Z_STREAM_END || out_done != out_bytes || in_done != length_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is damaged: %s after %zu of %zu compressed and %zu of %zu bytes",
                        name, reason(&stream), in_done, length_bytes, out_done, out_bytes);
    return TDM_OK;
}

/* ---- gzip ----------------------------------------------------------------------------------- */

/* A gzip file that is being unpacked into text. */
struct gunzip {
    const tdmi_storage_file *file;
    z_stream stream;
    int64_t offset; /* of the next chunk */
    uint8_t chunk[CHUNK_BYTES];
};

/* Read the next chunk where the last one is used up; none is left at the end of the file. */
static tdm_status refill(struct gunzip *gz, tdm_error *err)
{
    int64_t left = tdmi_storage_size(gz->file) - gz->offset;
    if (gz->stream.avail_in > 0 || left <= 0)
        return TDM_OK;
    size_t length = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
    TDMI_TRY(tdmi_storage_read(gz->file, gz->offset, gz->chunk, length, err));
    gz->offset += (int64_t)length;
    gz->stream.next_in = gz->chunk;
    gz->stream.avail_in = (uInt)length;
    return TDM_OK;
}

/* Position in the compressed file. */
static long long position(const struct gunzip *gz)
{
    return (long long)gz->offset - (long long)gz->stream.avail_in;
}

/* One step of output into text. */
static tdm_status step(struct gunzip *gz, size_t room_bytes, tdmi_text *text, int *result,
                       tdm_error *err)
{
    size_t before = text->length_bytes;
    char *room = tdmi_text_room(text, room_bytes);
    TDMI_CHECK_MEMORY(room, err);
    gz->stream.next_out = (Bytef *)room;
    gz->stream.avail_out = (uInt)room_bytes;
    *result = inflate(&gz->stream, Z_NO_FLUSH);
    text->length_bytes = before + room_bytes - gz->stream.avail_out;
    text->bytes[text->length_bytes] = '\0';
    if (*result == Z_MEM_ERROR)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to decompress '%s'",
                        tdmi_storage_path(gz->file));
    if (*result != Z_OK && *result != Z_STREAM_END && *result != Z_BUF_ERROR)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is damaged at byte %lld: %s",
                        tdmi_storage_path(gz->file), position(gz), reason(&gz->stream));
    return TDM_OK;
}

/* After a member: another one, zeros that fill a block of tape, or the end. */
static tdm_status next_member(struct gunzip *gz, bool *is_end, tdm_error *err)
{
    for (;;) {
        TDMI_TRY(refill(gz, err));
        *is_end = gz->stream.avail_in == 0;
        if (*is_end)
            return TDM_OK;
        if (*gz->stream.next_in == 0x1f) {
            inflateReset(&gz->stream);
            return TDM_OK;
        }
        if (*gz->stream.next_in != 0)
            return TDM_FAIL(
                err, TDM_E_INPUT,
                "'%s' continues after its end, at byte %lld, with bytes that are no gzip",
                tdmi_storage_path(gz->file), position(gz));
        gz->stream.next_in++;
        gz->stream.avail_in--;
    }
}

static tdm_status gunzip_all(struct gunzip *gz, int64_t limit_bytes, bool is_beginning,
                             tdmi_text *text, tdm_error *err)
{
    for (bool is_end = false; !is_end;) {
        int64_t room_bytes = limit_bytes - (int64_t)text->length_bytes;
        int result = Z_OK;
        if (room_bytes <= 0 && is_beginning)
            return TDM_OK;
        TDMI_TRY(refill(gz, err));
        bool is_dry = gz->stream.avail_in == 0;
        /* At the limit, read one more byte to see whether there is more. */
        size_t step_bytes = room_bytes <= 0             ? 1
                            : room_bytes < GROWTH_BYTES ? (size_t)room_bytes
                                                        : GROWTH_BYTES;
        TDMI_TRY(step(gz, step_bytes, text, &result, err));
        if ((int64_t)text->length_bytes > limit_bytes)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' holds more than %lld bytes, the most that is decompressed in "
                            "memory: run gunzip on it, and it is read in place",
                            tdmi_storage_path(gz->file), (long long)limit_bytes);
        if (result == Z_STREAM_END)
            TDMI_TRY(next_member(gz, &is_end, err));
        else if (is_dry && gz->stream.avail_out > 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' ends at byte %lld in the middle of its compressed bytes: it is "
                            "cut short",
                            tdmi_storage_path(gz->file), position(gz));
    }
    return TDM_OK;
}

static void free_gunzip(struct gunzip **gz)
{
    if (*gz != NULL)
        end(&(*gz)->stream);
    tdmi_free(*gz);
}

static tdm_status zlib_gunzip(const tdmi_storage_file *file, int64_t limit_bytes, bool is_beginning,
                              tdmi_text *text, tdm_error *err)
{
    TDMI_AT_END(free_gunzip) struct gunzip *gz = NULL;
    TDMI_TRY(TDMI_NEW(gz, 1, err));
    gz->file = file;
    TDMI_TRY(start(&gz->stream, GZIP, tdmi_storage_path(file), err));
    return TDM_WRAP(err, gunzip_all(gz, limit_bytes, is_beginning, text, err),
                    "cannot decompress '%s'", tdmi_storage_path(file));
}

const struct tdmi_inflate_table tdmi_inflate_zlib = {.raw = zlib_raw, .gunzip = zlib_gunzip};
