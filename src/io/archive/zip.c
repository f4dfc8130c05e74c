/*
 * Zip. The directory at the end is read once and trusted for names, sizes and checksums, so entries
 * with a data descriptor need nothing of their own; of the head before an entry only its length is
 * taken. Zip64 sizes and offsets, and bytes before the archive, are understood. No two entries may
 * share bytes: a few kilobytes that many entries share are how small files unpack to terabytes.
 *
 *     … | local head | name | extra | bytes | …       one for each entry
 *     directory: head | name | extra | comment | …
 *     [zip64 end | its locator] | end: counts, size and offset of the directory | comment
 *
 * Names are taken as bytes: UTF-8 where the archive was made by anything recent.
 */
#include "io/archive/form.h"

#include "base/bytes.h"
#include "base/hash/crc32.h"
#include "io/compress/inflate.h"
#include <stdlib.h>
#include <string.h>

enum {
    END_BYTES = 22,
    LONGEST_COMMENT = 65535,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    HEAD_BYTES = 46,
    LOCAL_BYTES = 30,
    FLAG_ENCRYPTED = 1,
    MADE_BY_DOS = 0,
    MADE_BY_UNIX = 3
};

struct end {
    int64_t at; /* of the end record, or the zip64 one: the directory ends before it */
    int64_t offset, bytes, n; /* of the directory, as written */
};

static uint16_t two(const uint8_t *at)
{
    return (uint16_t)tdmi_read_little(at, 2);
}

static uint32_t four(const uint8_t *at)
{
    return (uint32_t)tdmi_read_little(at, 4);
}

/* Numbers above INT64_MAX are no place in any file. */
static int64_t eight(const uint8_t *at)
{
    const uint64_t value = tdmi_read_little(at, 8);
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* ---- the end --------------------------------------------------------------------------------- */

static tdm_status read_end64(const struct tdmi_archive *archive, int64_t at, struct end *end,
                             tdm_error *err)
{
    uint8_t locator[LOCATOR_BYTES], record[END64_BYTES];
    if (at < LOCATOR_BYTES)
        return TDM_OK;
    TDMI_TRY(
        tdmi_records_read(&archive->records, at - LOCATOR_BYTES, locator, sizeof locator, err));
    if (four(locator) != 0x07064b50)
        return TDM_OK;
    /* The record stands right before its locator; the offset written is off by what is in front. */
    int64_t place = at - LOCATOR_BYTES - END64_BYTES;
    if (eight(locator + 8) < place)
        place = eight(locator + 8);
    if (place < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is damaged: its zip64 end has no place in it",
                        archive->path);
    TDMI_TRY(tdmi_records_read(&archive->records, place, record, sizeof record, err));
    if (four(record) != 0x06064b50) {
        place = at - LOCATOR_BYTES - END64_BYTES;
        TDMI_TRY(tdmi_records_read(&archive->records, place, record, sizeof record, err));
    }
    if (four(record) != 0x06064b50)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is damaged: there is no zip64 end at byte %lld",
                        archive->path, (long long)place);
    *end = (struct end){place, eight(record + 48), eight(record + 40), eight(record + 32)};
    return TDM_OK;
}

static tdm_status find_end(const struct tdmi_archive *archive, struct end *end, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint8_t *tail = NULL;
    const int64_t size = archive->records.size_bytes;
    const size_t length =
        size < END_BYTES + LONGEST_COMMENT ? (size_t)size : (size_t)(END_BYTES + LONGEST_COMMENT);
    TDMI_TRY(TDMI_NEW(tail, length, err));
    TDMI_TRY(tdmi_records_read(&archive->records, size - (int64_t)length, tail, length, err));
    const uint8_t *at = NULL;
    for (size_t i = END_BYTES; at == NULL && i <= length; i++)
        if (four(tail + length - i) == 0x06054b50 && two(tail + length - i + 20) <= i - END_BYTES)
            at = tail + length - i;
    if (at == NULL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' has no zip directory at its end (%lld bytes): it is cut short or "
                        "damaged",
                        archive->path, (long long)size);
    if ((two(at + 4) != 0 || two(at + 6) != 0) && (two(at + 4) != 0xffff || two(at + 6) != 0xffff))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is one of several files of a zip that was split; join them first "
                        "(zip -s 0)",
                        archive->path);
    const int64_t place = size - (int64_t)length + (at - tail);
    *end = (struct end){place, four(at + 16), four(at + 12), two(at + 10)};
    return read_end64(archive, place, end, err);
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Sizes that do not fit in four bytes stand in a field of the extras, only those, in this order. */
static bool take_zip64(const uint8_t *extra, size_t extra_bytes, struct tdmi_archive_entry *entry)
{
    int64_t *const values[] = {&entry->size_bytes, &entry->stored_bytes, &entry->offset};
    for (size_t at = 0; at + 4 <= extra_bytes;) {
        size_t field_bytes = two(extra + at + 2), used = 0;
        if (field_bytes > extra_bytes - at - 4)
            return true; /* extras are full of tools' own things; this one is not ours */
        for (int i = 0; two(extra + at) == 1 && i < 3; i++) {
            if (*values[i] != 0xffffffff)
                continue;
            if (used + 8 > field_bytes)
                return false;
            *values[i] = eight(extra + at + 4 + used);
            used += 8;
        }
        at += 4 + field_bytes;
    }
    return true;
}

static tdm_status check_entry(const struct tdmi_archive *archive, const char *name, int flags,
                              const struct tdmi_archive_entry *entry, tdm_error *err)
{
    if (flags & FLAG_ENCRYPTED)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' in '%s' is encrypted, which is not read: unpack it with its password",
                        name, archive->path);
    if (entry->method != TDMI_ZIP_STORED && entry->method != TDMI_ZIP_DEFLATED)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' in '%s' is compressed by method %d; stored (0) and deflated (8) are "
                        "read: pack it again with zip",
                        name, archive->path, entry->method);
    if (entry->offset < 0 || entry->offset > archive->records.size_bytes - LOCAL_BYTES ||
        entry->stored_bytes > archive->records.size_bytes - LOCAL_BYTES - entry->offset)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' in '%s' should stand at byte %lld with %lld bytes, past the %lld of "
                        "the file: it is cut short or damaged",
                        name, archive->path, (long long)entry->offset,
                        (long long)entry->stored_bytes, (long long)archive->records.size_bytes);
    bool is_possible = entry->method == TDMI_ZIP_STORED
                           ? entry->size_bytes == entry->stored_bytes
                           : entry->size_bytes / TDMI_DEFLATE_MOST_RATIO <= entry->stored_bytes;
    if (!is_possible || entry->size_bytes > TDMI_ARCHIVE_LARGEST_ENTRY)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' in '%s' promises %lld bytes out of %lld: it is damaged, or larger "
                        "than the %lld bytes accepted",
                        name, archive->path, (long long)entry->size_bytes,
                        (long long)entry->stored_bytes, (long long)TDMI_ARCHIVE_LARGEST_ENTRY);
    return TDM_OK;
}

/* One head of the directory, whole in room_bytes; used_bytes becomes its length. */
static tdm_status list_one(struct tdmi_archive *archive, const uint8_t *head, size_t room_bytes,
                           tdmi_text *name, size_t *used_bytes, tdm_error *err)
{
    size_t n = two(head + 28), m = two(head + 30), k = two(head + 32);
    if (HEAD_BYTES + n + m + k > room_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the directory of '%s' ends within entry %lld: it is damaged",
                        archive->path, (long long)archive->n_entries);
    *used_bytes = HEAD_BYTES + n + m + k;
    tdmi_text_clear(name);
    tdmi_text_add(name, head + HEAD_BYTES, n);
    TDMI_TRY(tdmi_text_status(name, err));
    if (n == 0 || strlen(name->bytes) != n)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "entry %lld of '%s' has no name, or one with a zero byte: it is damaged",
                        (long long)archive->n_entries, archive->path);
    if (head[5] == MADE_BY_DOS && strchr(name->bytes, '/') == NULL)
        for (char *at = name->bytes; (at = strchr(at, '\\')) != NULL;)
            *at = '/';
    struct tdmi_archive_entry entry = {.size_bytes = four(head + 24),
                                       .stored_bytes = four(head + 20),
                                       .offset = four(head + 42),
                                       .crc32 = four(head + 16),
                                       .method = two(head + 10)};
    uint32_t mode = four(head + 38) >> 16 & 0170000;
    if (head[5] == MADE_BY_UNIX && mode != 0 && mode != 0100000 && mode != 0040000)
        return TDM_OK; /* a link or a device */
    if (!take_zip64(head + HEAD_BYTES + n, m, &entry))
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' in '%s' lacks its zip64 sizes: it is damaged",
                        name->bytes, archive->path);
    entry.offset =
        entry.offset > INT64_MAX - archive->shift ? INT64_MAX : entry.offset + archive->shift;
    if (name->bytes[n - 1] != '/')
        TDMI_TRY(check_entry(archive, name->bytes, two(head + 8), &entry, err));
    return tdmi_archive_add(archive, name->bytes, &entry, err);
}

static tdm_status list_directory(struct tdmi_archive *archive, const struct end *end,
                                 const uint8_t *directory, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text name = {0};
    size_t at = 0, bytes = (size_t)end->bytes, used = 0;
    int64_t n = 0;
    for (; bytes - at >= HEAD_BYTES && four(directory + at) == 0x02014b50; at += used, n++)
        TDMI_TRY(list_one(archive, directory + at, bytes - at, &name, &used, err));
    /* Writers without zip64 count modulo 65536. */
    if (n != end->n && (n & 0xffff) != end->n)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the directory of '%s' promises %lld entries and holds %lld (it goes "
                        "wrong at byte %lld): it is damaged",
                        archive->path, (long long)end->n, (long long)n,
                        (long long)(end->at - end->bytes) + (long long)at);
    return TDM_OK;
}

/* ---- entries that share bytes ---------------------------------------------------------------- */

static int compare_offsets(const void *left, const void *right, void *self)
{
    const struct tdmi_archive *archive = self;
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    int64_t i = archive->entries[a].offset, j = archive->entries[b].offset;
    return i != j ? (i < j ? -1 : 1) : a < b ? -1 : a > b;
}

/* Sets room_bytes of every file and refuses those that their head and bytes do not fit into. How
 * long a head is shows when the entry is read, and is then compared again (measure_head). Folders
 * have no bytes and are never read. */
static tdm_status refuse_overlaps(struct tdmi_archive *archive, int64_t directory_at,
                                  tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) int64_t *order = NULL;
    int64_t n = 0, end = directory_at;
    TDMI_TRY(TDMI_NEW(order, archive->n_entries, err));
    for (int64_t i = 0; i < archive->n_entries; i++)
        if (!archive->entries[i].is_folder)
            order[n++] = i;
    qsort_r(order, (size_t)n, sizeof *order, compare_offsets, archive);
    while (n-- > 0) {
        struct tdmi_archive_entry *entry = &archive->entries[order[n]];
        entry->room_bytes = end - entry->offset;
        if (entry->room_bytes < LOCAL_BYTES + entry->stored_bytes)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' is refused: its members overlap, as those of zip bombs do: "
                            "'%.200s' has %lld bytes from byte %lld on, and another member or "
                            "the directory begins at byte %lld",
                            archive->path, entry->name, (long long)entry->stored_bytes,
                            (long long)entry->offset, (long long)end);
        end = entry->offset;
    }
    return TDM_OK;
}

tdm_status tdmi_zip_list(struct tdmi_archive *archive, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) uint8_t *directory = NULL;
    struct end end = {0};
    TDM_TRY(find_end(archive, &end, err), err, "cannot open the zip '%s'", archive->path);
    if (end.bytes > end.at || end.offset > end.at - end.bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is damaged: its directory of %lld bytes at byte %lld does not end "
                        "before byte %lld",
                        archive->path, (long long)end.bytes, (long long)end.offset,
                        (long long)end.at);
    archive->shift = end.at - end.bytes - end.offset;
    TDMI_TRY(TDMI_NEW(directory, end.bytes, err));
    TDMI_TRY(tdmi_records_read(&archive->records, end.at - end.bytes, directory, (size_t)end.bytes,
                               err));
    TDMI_TRY(list_directory(archive, &end, directory, err));
    return refuse_overlaps(archive, end.at - end.bytes, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Length of the local head, whose beginning is given. */
static tdm_status measure_head(const struct tdmi_archive_entry *entry, const uint8_t *head,
                               int64_t *before, tdm_error *err)
{
    if (four(head) != 0x04034b50)
        return TDM_FAIL(err, TDM_E_INPUT, "no entry begins at byte %lld: it is damaged",
                        (long long)entry->offset);
    *before = LOCAL_BYTES + two(head + 26) + two(head + 28);
    if (*before + entry->stored_bytes > entry->room_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the %lld bytes of the entry at byte %lld reach into what begins at byte "
                        "%lld: it is damaged",
                        (long long)entry->stored_bytes, (long long)entry->offset,
                        (long long)(entry->offset + entry->room_bytes));
    return TDM_OK;
}

/* Append the local head and the bytes after it to text, in one request: at most to the next entry,
 * and no further than the longest head allows. *at becomes the place in text where the entry's
 * bytes begin. */
static tdm_status fetch(const struct tdmi_archive *archive, const struct tdmi_archive_entry *entry,
                        tdmi_text *text, size_t *at, tdm_error *err)
{
    const int64_t most = LOCAL_BYTES + 2 * UINT16_MAX + entry->stored_bytes;
    const size_t length = (size_t)(most < entry->room_bytes ? most : entry->room_bytes);
    const size_t first = text->length_bytes;
    char *room = tdmi_text_room(text, length);
    int64_t before = 0;
    TDMI_CHECK_MEMORY(room, err);
    TDMI_TRY(tdmi_records_read(&archive->records, entry->offset, room, length, err));
    TDMI_TRY(measure_head(entry, (const uint8_t *)room, &before, err));
    *at = first + (size_t)before;
    return TDM_OK;
}

static tdm_status compare_checksum(const struct tdmi_archive_entry *entry, const void *bytes,
                                   tdm_error *err)
{
    uint32_t crc = tdmi_crc32(0, bytes, (size_t)entry->size_bytes);
    if (crc != entry->crc32)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the checksum of the entry at byte %lld is %08x and should be %08x: it is "
                        "damaged",
                        (long long)entry->offset, crc, entry->crc32);
    return TDM_OK;
}

/* text: first the unpacked entry, then its compressed bytes, so that a caller that keeps the text
 * allocates nothing after the largest entry. */
static tdm_status unpack(const struct tdmi_archive *archive, const struct tdmi_archive_entry *entry,
                         tdmi_text *text, tdm_error *err)
{
    size_t at = 0, length = (size_t)entry->size_bytes;
    TDMI_CHECK_MEMORY(tdmi_text_room(text, length), err);
    TDMI_TRY(fetch(archive, entry, text, &at, err));
    const char *stored = text->bytes + at;
    if (entry->method == TDMI_ZIP_STORED)
        memmove(text->bytes, stored, length);
    else
        TDM_TRY(tdmi_inflate_raw(stored, (size_t)entry->stored_bytes, text->bytes, length,
                                 entry->name, err),
                err, "at byte %lld", (long long)entry->offset);
    text->length_bytes = length;
    text->bytes[length] = '\0';
    return compare_checksum(entry, text->bytes, err);
}

tdm_status tdmi_zip_read(const struct tdmi_archive *archive, const struct tdmi_archive_entry *entry,
                         tdmi_text *bytes, tdm_error *err)
{
    tdm_status status = unpack(archive, entry, bytes, err);
    if (status != TDM_OK)
        tdmi_text_clear(bytes);
    return TDM_WRAP(err, status, "cannot read '%s' in '%s'", entry->name, archive->path);
}

tdm_status tdmi_zip_view(const struct tdmi_archive *archive, const struct tdmi_archive_entry *entry,
                         const void **at, tdm_error *err)
{
    const uint8_t *head = archive->records.lent + entry->offset; /* whole: check_entry */
    int64_t before = 0;
    tdm_status status = measure_head(entry, head, &before, err);
    if (status == TDM_OK)
        status = compare_checksum(entry, head + before, err);
    if (status == TDM_OK)
        *at = head + before;
    return TDM_WRAP(err, status, "cannot read '%s' in '%s'", entry->name, archive->path);
}
