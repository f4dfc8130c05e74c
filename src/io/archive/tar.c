/*
 * Tar: heads of 512 bytes, each before its entry's bytes, filled up to 512. Read are the forms that
 * are written today: ustar (with its prefix), GNU (long names, sizes in base 256) and pax (path,
 * linkpath and size in records before the head they are for). The end is a block of zeros; without
 * one the archive was cut short, and half a data set would train a wrong model without a word.
 */
#include "io/archive/form.h"

#include <string.h>

enum { BLOCK_BYTES = 512, MOST_ADVANCE_BYTES = 1 << 20 };

/* Extended fields that precede a head and belong to it. */
struct advance {
    tdmi_text path, link;
    int64_t size_bytes; /* -1: not said */
    bool is_sparse;
};

struct tar {
    struct tdmi_archive *archive;
    int64_t at; /* of the head at hand */
    struct advance advance;
    tdmi_text name;
};

/* ---- heads ----------------------------------------------------------------------------------- */

/* Octal digits, or GNU's big-endian base 256; -1: neither, or more than a file can hold. */
static int64_t number(const uint8_t *at, size_t length)
{
    int64_t value = 0;
    if (at[0] & 0x80) {
        if (at[0] != 0x80)
            return -1;
        for (size_t i = 1; i < length; i++) {
            if (value > INT64_MAX >> 9)
                return -1;
            value = value << 8 | at[i];
        }
        return value;
    }
    size_t i = 0;
    while (i < length && at[i] == ' ')
        i++;
    for (; i < length && at[i] >= '0' && at[i] <= '7'; i++)
        value = value << 3 | (at[i] - '0');
    return i < length && at[i] != ' ' && at[i] != '\0' ? -1 : value;
}

bool tdmi_tar_is_head(const uint8_t block[512])
{
    int64_t written = number(block + 148, 8), sum = 0, signed_sum = 0;
    for (int i = 0; i < BLOCK_BYTES; i++) {
        uint8_t byte = i >= 148 && i < 156 ? ' ' : block[i];
        sum += byte;
        signed_sum += (int8_t)byte; /* as some old writers added */
    }
    return block[0] != '\0' && (written == sum || written == signed_sum);
}

static bool is_zero(const uint8_t *block)
{
    static const uint8_t zeros[BLOCK_BYTES];
    return memcmp(block, zeros, BLOCK_BYTES) == 0;
}

/* A field that ends at a zero byte or is full. */
static void add_field(tdmi_text *text, const uint8_t *at, size_t room_bytes)
{
    tdmi_text_add(text, at, strnlen((const char *)at, room_bytes));
}

/* ---- fields that precede a head -------------------------------------------------------------- */

static void forget(struct advance *advance)
{
    tdmi_text_clear(&advance->path);
    tdmi_text_clear(&advance->link);
    advance->size_bytes = -1;
    advance->is_sparse = false;
}

static tdm_status read_text(const struct tar *tar, int64_t offset, int64_t size_bytes,
                            tdmi_text *text, tdm_error *err)
{
    if (size_bytes > MOST_ADVANCE_BYTES)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' holds a name of %lld bytes at byte %lld: it is damaged",
                        tar->archive->path, (long long)size_bytes, (long long)offset);
    tdmi_text_clear(text);
    char *room = tdmi_text_room(text, (size_t)size_bytes);
    TDMI_CHECK_MEMORY(room, err);
    return tdmi_records_read(&tar->archive->records, offset, room, (size_t)size_bytes, err);
}

/* A GNU long name: its zero byte, and what follows it, does not count. */
static tdm_status read_long(const struct tar *tar, int64_t size_bytes, tdmi_text *text,
                            tdm_error *err)
{
    TDMI_TRY(read_text(tar, tar->at + BLOCK_BYTES, size_bytes, text, err));
    text->length_bytes = strlen(tdmi_text_string(text));
    return TDM_OK;
}

static tdm_status fail_pax(const struct tar *tar, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT,
                    "'%s' is damaged: the extended head (pax) at byte %lld is no list of "
                    "\"length key=value\"",
                    tar->archive->path, (long long)tar->at);
}

/* One "key=value" of a pax head; value ends before the line feed. */
static tdm_status take_pax(struct tar *tar, const char *key, size_t key_bytes, const char *value,
                           size_t value_bytes, tdm_error *err)
{
    struct advance *advance = &tar->advance;
    tdmi_text *text = NULL;
    if (tdmi_text_is(key, key_bytes, "path"))
        text = &advance->path;
    else if (tdmi_text_is(key, key_bytes, "linkpath"))
        text = &advance->link;
    if (text != NULL) {
        if (memchr(value, '\0', value_bytes) != NULL)
            return fail_pax(tar, err);
        tdmi_text_clear(text);
        tdmi_text_add(text, value, value_bytes);
        return tdmi_text_status(text, err);
    }
    if (tdmi_text_is(key, key_bytes, "size")) {
        int64_t size = 0;
        for (size_t i = 0; i < value_bytes; i++) {
            if (value[i] < '0' || value[i] > '9' || size > INT64_MAX / 16)
                return fail_pax(tar, err);
            size = 10 * size + (value[i] - '0');
        }
        advance->size_bytes = size;
    }
    if (key_bytes >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
        advance->is_sparse = true;
    return TDM_OK;
}

static tdm_status parse_pax(struct tar *tar, const tdmi_text *text, tdm_error *err)
{
    for (size_t at = 0; at < text->length_bytes;) {
        const char *record = text->bytes + at;
        size_t left = text->length_bytes - at, length = 0, digits = 0;
        while (digits < left && record[digits] >= '0' && record[digits] <= '9' && length <= left)
            length = 10 * length + (size_t)(record[digits++] - '0');
        if (digits == 0 || digits == left || record[digits] != ' ' || length > left ||
            length < digits + 3 || record[length - 1] != '\n')
            return fail_pax(tar, err);
        const char *key = record + digits + 1;
        const char *equals = memchr(key, '=', length - digits - 2);
        if (equals == NULL)
            return fail_pax(tar, err);
        TDMI_TRY(take_pax(tar, key, (size_t)(equals - key), equals + 1,
                          (size_t)(record + length - 1 - (equals + 1)), err));
        at += length;
    }
    return TDM_OK;
}

static tdm_status read_pax(struct tar *tar, int64_t size_bytes, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    TDMI_TRY(read_text(tar, tar->at + BLOCK_BYTES, size_bytes, &text, err));
    return parse_pax(tar, &text, err);
}

/* ---- entries --------------------------------------------------------------------------------- */

static tdm_status name_entry(struct tar *tar, const uint8_t *block, tdm_error *err)
{
    tdmi_text_clear(&tar->name);
    if (tar->advance.path.length_bytes > 0) {
        tdmi_text_add(&tar->name, tar->advance.path.bytes, tar->advance.path.length_bytes);
    } else {
        /* GNU keeps times where ustar has the prefix. */
        bool is_ustar = memcmp(block + 257, "ustar\0", 6) == 0;
        if (is_ustar && block[345] != '\0') {
            add_field(&tar->name, block + 345, 155);
            tdmi_text_add(&tar->name, "/", 1);
        }
        add_field(&tar->name, block, 100);
    }
    return tdmi_text_status(&tar->name, err);
}

/* A hard link stands for the bytes of an entry before it; archive.c finds it when all are known. */
static tdm_status add_link(struct tar *tar, const uint8_t *block, struct tdmi_archive_entry *entry,
                           tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text target = {0};
    if (tar->advance.link.length_bytes > 0)
        tdmi_text_add(&target, tar->advance.link.bytes, tar->advance.link.length_bytes);
    else
        add_field(&target, block + 157, 100);
    TDMI_TRY(tdmi_text_status(&target, err));
    entry->link = tdmi_arena_copy(&tar->archive->arena, tdmi_text_string(&target));
    TDMI_CHECK_MEMORY(entry->link, err);
    return tdmi_archive_add(tar->archive, tdmi_text_string(&tar->name), entry, err);
}

static tdm_status add_entry(struct tar *tar, const uint8_t *block, int64_t size_bytes,
                            tdm_error *err)
{
    struct tdmi_archive_entry entry = {.offset = tar->at + BLOCK_BYTES,
                                       .size_bytes = size_bytes,
                                       .stored_bytes = size_bytes,
                                       .is_folder = block[156] == '5'};
    TDMI_TRY(name_entry(tar, block, err));
    if (block[156] == 'S' || tar->advance.is_sparse)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' in '%s' is stored sparse, which is not read: pack it without "
                        "--sparse",
                        tdmi_text_string(&tar->name), tar->archive->path);
    if (block[156] == '1')
        return add_link(tar, block, &entry, err);
    if (block[156] != '\0' && strchr("057", block[156]) == NULL)
        return TDM_OK; /* symbolic links, devices, pipes, a tool's own records */
    if (tar->name.length_bytes == 0)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is damaged: the entry at byte %lld has no name",
                        tar->archive->path, (long long)tar->at);
    if (!entry.is_folder && size_bytes > TDMI_ARCHIVE_LARGEST_ENTRY)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' in '%s' has %lld bytes; at most %lld are accepted",
                        tar->name.bytes, tar->archive->path, (long long)size_bytes,
                        (long long)TDMI_ARCHIVE_LARGEST_ENTRY);
    return tdmi_archive_add(tar->archive, tar->name.bytes, &entry, err);
}

/* The head at tar->at: what it is for, and how many bytes follow it. */
static tdm_status take_head(struct tar *tar, const uint8_t *block, int64_t *size_bytes,
                            tdm_error *err)
{
    int64_t left = tar->archive->records.size_bytes - tar->at - BLOCK_BYTES;
    char type = (char)block[156];
    if (!tdmi_tar_is_head(block))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is damaged: there is no tar head at byte %lld (its checksum does not "
                        "fit)",
                        tar->archive->path, (long long)tar->at);
    *size_bytes = number(block + 124, 12);
    bool is_advance = type == 'L' || type == 'K' || type == 'x' || type == 'g' || type == 'X';
    if (!is_advance && tar->advance.size_bytes >= 0)
        *size_bytes = tar->advance.size_bytes;
    if (type == '1' || type == '2' || type == '5')
        *size_bytes = 0; /* some writers note the size of what the link leads to */
    if (*size_bytes < 0 || *size_bytes > left)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is cut short or damaged: the entry at byte %lld has %lld bytes, and "
                        "%lld are left",
                        tar->archive->path, (long long)tar->at, (long long)*size_bytes,
                        (long long)left);
    switch (type) {
    case 'L':
        return read_long(tar, *size_bytes, &tar->advance.path, err);
    case 'K':
        return read_long(tar, *size_bytes, &tar->advance.link, err);
    case 'x':
    case 'X':
        return read_pax(tar, *size_bytes, err);
    case 'g': /* for all entries that follow: comments and times, in practice */
        return TDM_OK;
    }
    tdm_status status = add_entry(tar, block, *size_bytes, err);
    forget(&tar->advance);
    return status;
}

/* Does the rest hold less than the next head and its bytes? Only where just a beginning was read.
 */
static bool is_cut_here(const struct tar *tar)
{
    uint8_t block[BLOCK_BYTES];
    const struct tdmi_records *records = &tar->archive->records;
    if (!records->is_cut)
        return false;
    if (records->size_bytes - tar->at < BLOCK_BYTES ||
        tdmi_records_read(records, tar->at, block, sizeof block, NULL) != TDM_OK)
        return true;
    return number(block + 124, 12) > records->size_bytes - tar->at - BLOCK_BYTES;
}

static tdm_status list_all(struct tar *tar, int64_t n_most, tdm_error *err)
{
    struct tdmi_archive *archive = tar->archive;
    uint8_t block[BLOCK_BYTES];
    forget(&tar->advance);
    while (archive->n_entries < n_most && !is_cut_here(tar)) {
        int64_t size_bytes = 0;
        if (archive->records.size_bytes - tar->at < BLOCK_BYTES)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' is cut short: it ends at byte %lld without the block of zeros "
                            "that ends a tar",
                            archive->path, (long long)archive->records.size_bytes);
        TDMI_TRY(tdmi_records_read(&archive->records, tar->at, block, sizeof block, err));
        if (is_zero(block))
            return TDM_OK;
        TDMI_TRY(take_head(tar, block, &size_bytes, err));
        tar->at += BLOCK_BYTES + (size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
    }
    return TDM_OK;
}

static void release(struct tar *tar)
{
    tdmi_text_release(&tar->advance.path);
    tdmi_text_release(&tar->advance.link);
    tdmi_text_release(&tar->name);
}

tdm_status tdmi_tar_list(struct tdmi_archive *archive, int64_t n_most, tdm_error *err)
{
    TDMI_AT_END(release) struct tar tar = {.archive = archive};
    return list_all(&tar, n_most, err);
}
