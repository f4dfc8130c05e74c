/*
 * Layout of the bitmap, all little endian:
 *
 *     magic | number of buckets (64 bits) | for each: high half of its rows (32) | Roaring bitmap
 *
 * and of a Roaring bitmap of the low halves:
 *
 *     cookie | which containers are runs | (key, cardinality - 1) of each | offsets | containers
 *
 * A container holds 16 bits of rows: sorted numbers, 65,536 bits, or runs (first, length - 1). In a
 * file of vectors each has its length before it and a CRC-32 after it, both big endian.
 */
#include "data/delta/vector.h"

#include "base/bytes.h"
#include "base/hash/crc32.h"
#include "data/delta/path.h"
#include "io/storage/storage.h"
#include <string.h>

enum {
    COOKIE_PLAIN = 12346,
    COOKIE_WITH_RUNS = 12347,
    CONTAINERS_WITHOUT_OFFSETS = 4, /* fewer than so many, when there are runs */
    LARGEST_ARRAY = 4096,           /* above it a container is a bitmap */
    CONTAINER_ROWS = 65536,
    FILE_VERSION = 1
};
static const uint32_t magic = 1681511377;

/* ---- bytes --------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *bytes;
    size_t n_bytes, at;
    bool is_short; /* a read went past the end; it gave zeros */
    const char *name;
    int64_t *rows, n_found, n_expected, n_rows;
};

static void skip(struct reader *in, uint64_t n)
{
    if (in->n_bytes - in->at < n) {
        in->is_short = true;
        n = in->n_bytes - in->at;
    }
    in->at += (size_t)n;
}

static uint64_t take(struct reader *in, size_t n)
{
    const uint8_t *at = in->bytes + in->at;
    skip(in, n);
    return in->is_short ? 0 : tdmi_read_little(at, n);
}

static tdm_status wrong(const struct reader *in, const char *what, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT, "the deletion vector %s is damaged: at byte %zu %s", in->name,
                    in->at, in->is_short ? "it ends early" : what);
}

/* ---- containers ---------------------------------------------------------------------------- */

static tdm_status found(struct reader *in, uint64_t row, tdm_error *err)
{
    if (row >= (uint64_t)in->n_rows)
        return wrong(in, "it names a row that the file does not have", err);
    if (in->n_found > 0 && (int64_t)row <= in->rows[in->n_found - 1])
        return wrong(in, "its rows are not in ascending order", err);
    if (in->n_found == in->n_expected)
        return wrong(in, "it names more rows than the log says", err);
    in->rows[in->n_found++] = (int64_t)row;
    return TDM_OK;
}

static tdm_status read_array(struct reader *in, uint64_t base, uint32_t n, tdm_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t low = take(in, 2);
        TDMI_TRY(in->is_short ? wrong(in, "", err) : found(in, base | low, err));
    }
    return TDM_OK;
}

static tdm_status read_bits(struct reader *in, uint64_t base, tdm_error *err)
{
    for (uint64_t word = 0; word < CONTAINER_ROWS / 64; word++) {
        uint64_t bits = take(in, 8);
        if (in->is_short)
            return wrong(in, "", err);
        for (uint64_t i = 0; bits != 0; i++, bits >>= 1)
            if (bits & 1)
                TDMI_TRY(found(in, base | (64 * word + i), err));
    }
    return TDM_OK;
}

static tdm_status read_runs(struct reader *in, uint64_t base, tdm_error *err)
{
    uint64_t n_runs = take(in, 2);
    for (uint64_t run = 0; run < n_runs; run++) {
        uint64_t first = take(in, 2), last = first + take(in, 2);
        if (in->is_short || last >= CONTAINER_ROWS)
            return wrong(in, "a run leaves its container", err);
        for (uint64_t low = first; low <= last; low++)
            TDMI_TRY(found(in, base | low, err));
    }
    return TDM_OK;
}

struct head {
    uint32_t n_containers;
    const uint8_t *is_run; /* bits; NULL: none is */
    const uint8_t *keys;   /* of each: key and cardinality - 1, 16 bits each */
};

static tdm_status read_head(struct reader *in, struct head *head, tdm_error *err)
{
    uint32_t cookie = (uint32_t)take(in, 4);
    *head = (struct head){0};
    if (cookie == COOKIE_PLAIN)
        head->n_containers = (uint32_t)take(in, 4);
    else if ((cookie & 0xffff) == COOKIE_WITH_RUNS)
        head->n_containers = (cookie >> 16) + 1;
    else
        return wrong(in, "no Roaring bitmap begins", err);
    if (head->n_containers > CONTAINER_ROWS)
        return wrong(in, "it claims more containers than there can be", err);
    if (cookie != COOKIE_PLAIN) {
        head->is_run = in->bytes + in->at;
        skip(in, (head->n_containers + 7) / 8);
    }
    head->keys = in->bytes + in->at;
    skip(in, 4 * (uint64_t)head->n_containers);
    if (cookie == COOKIE_PLAIN || head->n_containers >= CONTAINERS_WITHOUT_OFFSETS)
        skip(in, 4 * (uint64_t)head->n_containers);
    return in->is_short ? wrong(in, "", err) : TDM_OK;
}

static tdm_status read_bitmap(struct reader *in, uint64_t high, tdm_error *err)
{
    struct head head;
    TDMI_TRY(read_head(in, &head, err));
    for (uint32_t i = 0; i < head.n_containers; i++) {
        const uint8_t *entry = head.keys + 4 * (size_t)i;
        uint64_t base = high << 32 | tdmi_read_little(entry, 2) << 16;
        uint32_t n = (uint32_t)tdmi_read_little(entry + 2, 2) + 1;
        int64_t before = in->n_found;
        if (head.is_run != NULL && (head.is_run[i / 8] >> i % 8 & 1) != 0)
            TDMI_TRY(read_runs(in, base, err));
        else
            TDMI_TRY(n > LARGEST_ARRAY ? read_bits(in, base, err) : read_array(in, base, n, err));
        if (in->n_found - before != n)
            return wrong(in, "a container holds other rows than its head says", err);
    }
    return TDM_OK;
}

tdm_status tdmi_delta_vector_decode(const void *bytes, size_t n_bytes, const char *name,
                                    int64_t n_expected, int64_t n_rows, int64_t **rows,
                                    tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) int64_t *found_rows = NULL;
    struct reader in = {.bytes = bytes,
                        .n_bytes = n_bytes,
                        .name = name,
                        .n_expected = n_expected,
                        .n_rows = n_rows};
    *rows = NULL;
    if (n_expected < 0 || n_expected > n_rows || (uint64_t)n_expected / CONTAINER_ROWS > n_bytes)
        return wrong(&in, "it cannot hold as many rows as the log says", err);
    if (take(&in, 4) != magic)
        return wrong(&in, "the number that marks its format is another one", err);
    TDMI_TRY(TDMI_NEW(found_rows, n_expected, err));
    in.rows = found_rows;
    uint64_t n_buckets = take(&in, 8);
    for (uint64_t bucket = 0; bucket < n_buckets; bucket++) {
        uint64_t high = take(&in, 4);
        if (in.is_short || high >> 31 != 0)
            return wrong(&in, "a bucket of rows is negative", err);
        TDMI_TRY(read_bitmap(&in, high, err));
    }
    if (in.is_short || in.n_found != n_expected)
        return wrong(&in, "it names fewer rows than the log says", err);
    *rows = tdmi_take(&found_rows);
    return TDM_OK;
}

/* ---- where it stands ----------------------------------------------------------------------- */

bool tdmi_delta_z85(const char *text, tdmi_text *bytes)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 ".-:+=^!/*?&<>()[]{}@%$#";
    size_t n = strlen(text);
    tdmi_text_clear(bytes);
    if (n % 5 != 0)
        return false;
    for (size_t i = 0; i < n; i += 5) {
        uint64_t value = 0;
        for (size_t k = 0; k < 5; k++) {
            const char *digit = strchr(digits, text[i + k]);
            if (digit == NULL)
                return false;
            value = 85 * value + (uint64_t)(digit - digits);
        }
        if (value > UINT32_MAX)
            return false;
        uint8_t four[4] = {(uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                           (uint8_t)value};
        tdmi_text_add(bytes, four, 4);
    }
    return !bytes->is_broken;
}

/* The vector at the offset, with its length and checksum, which are then known to be right. */
static tdm_status read_file(const struct tdmi_delta_vector_place *vector, const char *path,
                            tdmi_text *bytes, tdm_error *err)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *file = NULL;
    uint8_t version = 0;
    int64_t offset = vector->offset_bytes < 0 ? 1 : vector->offset_bytes;
    TDM_TRY(tdmi_storage_open(path, &file, err), err, "cannot open the deletion vectors '%s'",
            path);
    int64_t size = tdmi_storage_size(file), n = vector->size_bytes;
    if (n > size || offset > size - n || size - n - offset < 8)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the deletion vectors '%s' end at byte %lld, before the vector of %lld "
                        "bytes that the log places at byte %lld",
                        path, (long long)size, (long long)n, (long long)offset);
    TDMI_TRY(tdmi_storage_read(file, 0, &version, 1, err));
    if (version != FILE_VERSION)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the deletion vectors '%s' are of format %d; format %d is read here", path,
                        version, FILE_VERSION);
    char *room = tdmi_text_room(bytes, (size_t)n + 8);
    TDMI_CHECK_MEMORY(room, err);
    TDMI_TRY(tdmi_storage_read(file, offset, room, (size_t)n + 8, err));
    const uint8_t *at = (const uint8_t *)room;
    if (tdmi_read_big(at, 4) != (uint64_t)n ||
        tdmi_read_big(at + 4 + n, 4) != tdmi_crc32(0, at + 4, (size_t)n))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the deletion vector at byte %lld of '%s' is damaged: its length or its "
                        "checksum is another one",
                        (long long)offset, path);
    return TDM_OK;
}

/* "u" and 20 characters for a number: a file in the table's folder, or in one below it whose name
 * stands before them. As tdmi_delta_path_read. */
static const char *path_of_number(tdmi_arena *arena, const char *text, const char **why)
{
    size_t n = strlen(text);
    TDMI_AT_END(tdmi_text_release) tdmi_text number = {0};
    if (n < 20 || !tdmi_delta_z85(text + n - 20, &number)) {
        *why = number.is_broken ? NULL : "it does not end in the 20 characters of a number";
        return NULL;
    }
    const uint8_t *u = (const uint8_t *)number.bytes;
    return tdmi_arena_printf(arena,
                             "%.*s%sdeletion_vector_%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
                             "%02x%02x%02x%02x%02x%02x.bin",
                             (int)(n - 20), text, n == 20 ? "" : "/", u[0], u[1], u[2], u[3], u[4],
                             u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
                             u[15]);
}

static tdm_status find_file(const struct tdmi_delta_table *table,
                            const struct tdmi_delta_vector_place *vector, tdmi_arena *arena,
                            const char **path, tdm_error *err)
{
    const char *why = NULL;
    const char *name = vector->kind == 'u' ? path_of_number(arena, vector->text, &why)
                                           : tdmi_delta_path_read(arena, vector->text, &why);
    if (name == NULL && why != NULL)
        return TDM_FAIL(err, TDM_E_INPUT, "'%.120s' names no file of deletion vectors: %s",
                        vector->text, why);
    TDMI_CHECK_MEMORY(name, err);
    return tdmi_delta_path_place(arena, table->path, name, table->follows, path, err);
}

static tdm_status read_rows(const struct tdmi_delta_table *table,
                            const struct tdmi_delta_file *file, int64_t **rows, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
    const struct tdmi_delta_vector_place *vector = &file->deleted;
    size_t n = (size_t)vector->size_bytes;
    const char *path = NULL;
    if (file->n_rows < 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "a file with a deletion vector must give its numRecords, and does not");
    if (vector->kind == 'i') {
        /* Padded to four bytes, so a few zeros may follow. */
        bool is_text = tdmi_delta_z85(vector->text, &bytes);
        TDMI_TRY(tdmi_text_status(&bytes, err));
        if (!is_text || n > bytes.length_bytes)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the deletion vector in the log is no Z85 text of %zu bytes", n);
        return tdmi_delta_vector_decode(bytes.bytes, n, "in the log", vector->n_rows, file->n_rows,
                                        rows, err);
    }
    TDMI_TRY(find_file(table, vector, &arena, &path, err));
    TDMI_TRY(read_file(vector, path, &bytes, err));
    return tdmi_delta_vector_decode(bytes.bytes + 4, n, path, vector->n_rows, file->n_rows, rows,
                                    err);
}

tdm_status tdmi_delta_vector_read(const struct tdmi_delta_table *table,
                                  const struct tdmi_delta_file *file, int64_t **rows,
                                  tdm_error *err)
{
    *rows = NULL;
    return TDM_WRAP(err, read_rows(table, file, rows, err),
                    TDMI_DELTA_AT ": cannot find the deleted rows of '%.120s'",
                    TDMI_DELTA_POSITION(file), file->path);
}
