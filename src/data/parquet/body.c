/*
 * Eight bytes for every 64 KiB say where their packed bytes begin, so an image costs the blocks it
 * lies in and no page is ever whole in memory. Blocks that are read whole are unpacked straight to
 * their target.
 */
#include "data/parquet/places.h"

#include "io/compress/snappy.h"
#include <string.h>

enum { BLOCK = TDMI_SNAPPY_BLOCK_BYTES, PIECE = 2 * TDMI_SNAPPY_MOST_BYTES };

void tdmi_body_release(struct tdmi_body *body)
{
    tdmi_free(body->blocks);
    *body = (struct tdmi_body){0};
}

static size_t block_bytes(const struct tdmi_body *body, int64_t block)
{
    const int64_t left = body->n_bytes - block * BLOCK;
    return left < BLOCK ? (size_t)left : BLOCK;
}

/* ---- where blocks begin ------------------------------------------------------------------ */

/* A stretch of the file that moves on. */
struct window {
    const tdmi_storage_file *file;
    int64_t at, end;    /* in the file: what is read next, and where the body ends */
    uint8_t *bytes;     /* (PIECE) */
    size_t first, last; /* of them, not yet used */
};

/* At least a block, or all that is left. */
static tdm_status fill(struct window *window, tdm_error *err)
{
    const size_t n_here = window->last - window->first;
    if (n_here >= TDMI_SNAPPY_MOST_BYTES || window->at == window->end)
        return TDM_OK;
    memmove(window->bytes, window->bytes + window->first, n_here);
    size_t n = PIECE - n_here;
    if (window->end - window->at < (int64_t)n)
        n = (size_t)(window->end - window->at);
    TDMI_TRY(tdmi_storage_read(window->file, window->at, window->bytes + n_here, n, err));
    window->at += (int64_t)n;
    window->first = 0;
    window->last = n_here + n;
    return TDM_OK;
}

static int64_t place_of(const struct window *window)
{
    return window->at - (int64_t)(window->last - window->first);
}

static tdm_status find_blocks(struct window *window, uint8_t *unpacked, struct tdmi_body *body,
                              bool *can_read, tdm_error *err)
{
    int64_t n_bytes, n_packed;
    TDMI_TRY(fill(window, err));
    const size_t n_head = tdmi_snappy_length(window->bytes, window->last - window->first, &n_bytes);
    *can_read = n_head > 0 && n_bytes == body->n_bytes;
    window->first = n_head;
    for (int64_t b = 0; *can_read && b < body->n_blocks; b++) {
        const size_t n = block_bytes(body, b);
        TDMI_TRY(fill(window, err));
        body->blocks[b] = place_of(window);
        n_packed = tdmi_snappy_block(window->bytes + window->first, window->last - window->first, n,
                                     unpacked, n);
        *can_read = n_packed >= 0;
        if (*can_read)
            window->first += (size_t)n_packed;
        if (n_packed > body->most_packed_bytes)
            body->most_packed_bytes = n_packed;
    }
    body->blocks[body->n_blocks] = place_of(window);
    *can_read = *can_read && place_of(window) == window->end;
    return TDM_OK;
}

tdm_status tdmi_body_index(const tdmi_storage_file *file, int64_t at, int64_t n_packed,
                           int64_t n_bytes, struct tdmi_body *body, bool *can_read, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint8_t *bytes = NULL;
    TDMI_AT_END(tdmi_free_at) uint8_t *unpacked = NULL;
    *body = (struct tdmi_body){.n_bytes = n_bytes, .n_blocks = (n_bytes + BLOCK - 1) / BLOCK};
    TDMI_TRY(TDMI_NEW(bytes, PIECE, err));
    TDMI_TRY(TDMI_NEW(unpacked, BLOCK, err));
    TDMI_TRY(TDMI_NEW(body->blocks, body->n_blocks + 1, err));
    struct window window = {.file = file, .at = at, .end = at + n_packed, .bytes = bytes};
    tdm_status status = find_blocks(&window, unpacked, body, can_read, err);
    if (status != TDM_OK || !*can_read)
        tdmi_body_release(body);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------- */

void tdmi_body_reader_release(struct tdmi_body_reader *reader)
{
    tdmi_free(reader->packed);
    tdmi_free(reader->block);
    *reader = (struct tdmi_body_reader){0};
}

/* Memory that is written before it is read needs no clearing. */
static tdm_status make_room(struct tdmi_body_reader *reader, tdm_error *err)
{
    if (reader->packed == NULL)
        reader->packed = tdmi_realloc(NULL, (size_t)reader->body->most_packed_bytes, 1);
    if (reader->block == NULL)
        reader->block = tdmi_realloc(NULL, BLOCK, 1);
    TDMI_CHECK_MEMORY(reader->packed != NULL && reader->block != NULL, err);
    return TDM_OK;
}

/* The first n_needed bytes of a block. */
static tdm_status unpack(struct tdmi_body_reader *reader, int64_t block, uint8_t *to,
                         size_t n_needed, tdm_error *err)
{
    const struct tdmi_body *body = reader->body;
    const int64_t at = body->blocks[block];
    const size_t n_packed = (size_t)(body->blocks[block + 1] - at);
    TDMI_TRY(tdmi_storage_read(reader->file, at, reader->packed, n_packed, err));
    if (tdmi_snappy_block(reader->packed, n_packed, block_bytes(body, block), to, n_needed) < 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "what is packed at byte %lld of '%s' changed since it was opened",
                        (long long)at, tdmi_storage_path(reader->file));
    return TDM_OK;
}

static tdm_status hold(struct tdmi_body_reader *reader, int64_t block, size_t n_needed,
                       tdm_error *err)
{
    if (reader->held == block && reader->n_held >= n_needed)
        return TDM_OK;
    reader->n_held = 0;
    TDMI_TRY(unpack(reader, block, reader->block, n_needed, err));
    reader->held = block;
    reader->n_held = n_needed;
    return TDM_OK;
}

tdm_status tdmi_body_read(struct tdmi_body_reader *reader, int64_t from, void *to, size_t n_bytes,
                          tdm_error *err)
{
    const struct tdmi_body *body = reader->body;
    uint8_t *out = to;
    if (body->blocks == NULL)
        return tdmi_storage_read(reader->file, body->at + from, to, n_bytes, err);
    TDMI_TRY(make_room(reader, err));
    while (n_bytes > 0) {
        const int64_t block = from / BLOCK;
        const size_t first = (size_t)(from % BLOCK), n_all = block_bytes(body, block);
        const size_t n = n_bytes < n_all - first ? n_bytes : n_all - first;
        if (first == 0 && n == n_all) {
            TDMI_TRY(unpack(reader, block, out, n, err));
        } else {
            TDMI_TRY(hold(reader, block, reader->goes_onward ? n_all : first + n, err));
            memcpy(out, reader->block + first, n);
        }
        out += n;
        from += (int64_t)n;
        n_bytes -= n;
    }
    return TDM_OK;
}
