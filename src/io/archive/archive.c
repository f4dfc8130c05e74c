/* The form of a file, the list of its entries, and finding one by name. */
#include "io/archive/archive.h"

#include "io/archive/form.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 512, PROBE_BYTES = 256 * 1024 };

/* ---- the list -------------------------------------------------------------------------------- */

tdm_status tdmi_archive_add(struct tdmi_archive *archive, const char *name,
                            const struct tdmi_archive_entry *entry, tdm_error *err)
{
    TDMI_TRY(TDMI_MAKE_ROOM(archive->entries, archive->capacity, archive->n_entries, err));
    char *copy = tdmi_arena_copy(&archive->arena, name);
    TDMI_CHECK_MEMORY(copy, err);
    struct tdmi_archive_entry *added = &archive->entries[archive->n_entries++];
    *added = *entry;
    size_t length = strlen(copy);
    if (length > 0 && copy[length - 1] == '/')
        added->is_folder = true;
    while (length > 1 && copy[length - 1] == '/')
        copy[--length] = '\0';
    added->name = copy;
    return TDM_OK;
}

static int compare_entries(const void *left, const void *right, void *self)
{
    const struct tdmi_archive *archive = self;
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    int order = strcmp(archive->entries[a].name, archive->entries[b].name);
    return order != 0 ? order : a < b ? -1 : a > b;
}

static tdm_status sort_names(struct tdmi_archive *archive, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(archive->by_name, archive->n_entries, err));
    for (int64_t i = 0; i < archive->n_entries; i++)
        if (!archive->entries[i].is_folder)
            archive->by_name[archive->n_files++] = i;
    qsort_r(archive->by_name, (size_t)archive->n_files, sizeof *archive->by_name, compare_entries,
            archive);
    return TDM_OK;
}

/* The first of the sorted files whose name is greater, or whose name is equal and whose place is
 * not before index. */
static int64_t files_before(const struct tdmi_archive *archive, const char *name, int64_t index)
{
    int64_t low = 0, high = archive->n_files;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, i = archive->by_name[middle];
        int order = strcmp(archive->entries[i].name, name);
        if (order < 0 || (order == 0 && i < index))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last file of that name before index, or -1. */
static int64_t find_before(const struct tdmi_archive *archive, const char *name, int64_t index)
{
    int64_t place = files_before(archive, name, index);
    if (place == 0 || strcmp(archive->entries[archive->by_name[place - 1]].name, name) != 0)
        return -1;
    return archive->by_name[place - 1];
}

static tdm_status resolve_links(struct tdmi_archive *archive, tdm_error *err)
{
    for (int64_t i = 0; i < archive->n_entries; i++) {
        struct tdmi_archive_entry *entry = &archive->entries[i];
        if (entry->link == NULL)
            continue;
        int64_t target = find_before(archive, entry->link, i);
        if (target < 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' in '%s' is a link to '%s', which does not stand before it: the "
                            "archive is damaged",
                            entry->name, archive->path, entry->link);
        entry->offset = archive->entries[target].offset;
        entry->size_bytes = archive->entries[target].size_bytes;
        entry->stored_bytes = entry->size_bytes;
        entry->link = NULL;
    }
    return TDM_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Kind that a name promises, so that a damaged archive is reported with its place. A zip with bytes
 * in front (a self-extracting program) is recognised by its name alone. */
static enum tdmi_archive_form form_of_name(const char *path)
{
    static const char *const tars[] = {".tar", ".tar.gz", ".tgz", NULL};
    static const char *const zips[] = {".zip", NULL};
    return tdmi_has_ending(path, tars)   ? TDMI_ARCHIVE_TAR
           : tdmi_has_ending(path, zips) ? TDMI_ARCHIVE_ZIP
                                         : TDMI_ARCHIVE_NONE;
}

/* A zip ends with its directory; a file that begins with an entry or an empty directory is
 * taken for one. */
static enum tdmi_archive_form form_of(const struct tdmi_records *records)
{
    uint8_t block[BLOCK_BYTES];
    size_t length =
        records->size_bytes < BLOCK_BYTES ? (size_t)records->size_bytes : (size_t)BLOCK_BYTES;
    if (tdmi_records_read(records, 0, block, length, NULL) != TDM_OK)
        return TDMI_ARCHIVE_NONE;
    if (length >= 4 && block[0] == 'P' && block[1] == 'K' &&
        ((block[2] == 3 && block[3] == 4) || (block[2] == 5 && block[3] == 6)) &&
        (records->lent || !records->is_in_memory))
        return TDMI_ARCHIVE_ZIP;
    if (length == BLOCK_BYTES && tdmi_tar_is_head(block))
        return TDMI_ARCHIVE_TAR;
    return form_of_name(records->path);
}

enum tdmi_archive_form tdmi_archive_form_of(const char *path)
{
    TDMI_AT_END(tdmi_records_close) struct tdmi_records records = {0};
    if (tdmi_storage_kind(path) != TDMI_FILE_REGULAR)
        return TDMI_ARCHIVE_NONE;
    if (tdmi_records_open_beginning(&records, path, BLOCK_BYTES, NULL) != TDM_OK)
        return form_of_name(path);
    return form_of(&records);
}

static tdm_status list_entries(struct tdmi_archive *archive, int64_t n_most, tdm_error *err)
{
    archive->form = form_of(&archive->records);
    if (archive->form == TDMI_ARCHIVE_NONE)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is no archive: it begins like neither zip nor tar",
                        archive->path);
    TDMI_TRY(archive->form == TDMI_ARCHIVE_ZIP ? tdmi_zip_list(archive, err)
                                               : tdmi_tar_list(archive, n_most, err));
    TDMI_TRY(sort_names(archive, err));
    return resolve_links(archive, err);
}

/* bytes: NULL, or the content in place of the file. */
static tdm_status open_archive(const char *path, const void *bytes, size_t length_bytes,
                               int64_t n_most, tdmi_archive **archive, tdm_error *err)
{
    TDMI_AT_END(tdmi_archive_close_at) tdmi_archive *opened = NULL;
    *archive = NULL;
    TDMI_TRY(TDMI_NEW(opened, 1, err));
    opened->path = tdmi_arena_copy(&opened->arena, path);
    TDMI_CHECK_MEMORY(opened->path, err);
    if (bytes != NULL)
        tdmi_records_lend(&opened->records, bytes, length_bytes, opened->path);
    else if (n_most == INT64_MAX)
        TDMI_TRY(tdmi_records_open(&opened->records, opened->path, err));
    else
        TDMI_TRY(tdmi_records_open_beginning(&opened->records, opened->path, PROBE_BYTES, err));
    TDMI_TRY(list_entries(opened, n_most, err));
    *archive = tdmi_take(&opened);
    return TDM_OK;
}

tdm_status tdmi_archive_open(const char *path, tdmi_archive **archive, tdm_error *err)
{
    return open_archive(path, NULL, 0, INT64_MAX, archive, err);
}

tdm_status tdmi_archive_open_bytes(const void *bytes, size_t length_bytes, const char *name,
                                   tdmi_archive **archive, tdm_error *err)
{
    return open_archive(name, bytes ? bytes : "", length_bytes, INT64_MAX, archive, err);
}

tdm_status tdmi_archive_open_beginning(const char *path, int64_t n_most, tdmi_archive **archive,
                                       tdm_error *err)
{
    return open_archive(path, NULL, 0, n_most, archive, err);
}

void tdmi_archive_close(tdmi_archive *archive)
{
    if (archive == NULL)
        return;
    tdmi_records_close(&archive->records);
    tdmi_free(archive->by_name);
    tdmi_free(archive->entries);
    tdmi_arena_release(&archive->arena);
    tdmi_free(archive);
}

/* ---- reading ---------------------------------------------------------------------- */

int64_t tdmi_archive_entries(const tdmi_archive *archive)
{
    return archive->n_entries;
}

const struct tdmi_archive_entry *tdmi_archive_entry(const tdmi_archive *archive, int64_t index)
{
    assert(index >= 0 && index < archive->n_entries);
    return &archive->entries[index];
}

int64_t tdmi_archive_find(const tdmi_archive *archive, const char *name)
{
    return find_before(archive, name, INT64_MAX);
}

/* Is it a file that is not too large? */
static tdm_status check_request(const tdmi_archive *archive, const struct tdmi_archive_entry *entry,
                                int64_t limit_bytes, tdm_error *err)
{
    if (entry->is_folder)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' in '%s' is a folder; expected a file", entry->name,
                        archive->path);
    if (entry->size_bytes > limit_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' in '%s' has %lld bytes; at most %lld are accepted here", entry->name,
                        archive->path, (long long)entry->size_bytes, (long long)limit_bytes);
    return TDM_OK;
}

tdm_status tdmi_archive_read(const tdmi_archive *archive, int64_t index, int64_t limit_bytes,
                             tdmi_text *bytes, tdm_error *err)
{
    const struct tdmi_archive_entry *entry = tdmi_archive_entry(archive, index);
    tdmi_text_clear(bytes);
    TDMI_TRY(check_request(archive, entry, limit_bytes, err));
    if (archive->form == TDMI_ARCHIVE_ZIP)
        return tdmi_zip_read(archive, entry, bytes, err);
    char *room = tdmi_text_room(bytes, (size_t)entry->size_bytes);
    TDMI_CHECK_MEMORY(room, err);
    tdm_status status =
        tdmi_records_read(&archive->records, entry->offset, room, (size_t)entry->size_bytes, err);
    if (status != TDM_OK)
        tdmi_text_clear(bytes);
    return TDM_WRAP(err, status, "cannot read '%s' in '%s'", entry->name, archive->path);
}

tdm_status tdmi_archive_view(const tdmi_archive *archive, int64_t index, int64_t limit_bytes,
                             tdmi_text *text, const void **at, tdm_error *err)
{
    const struct tdmi_archive_entry *entry = tdmi_archive_entry(archive, index);
    tdmi_text_clear(text);
    bool is_there = archive->records.lent != NULL && !entry->is_folder &&
                    (archive->form == TDMI_ARCHIVE_TAR || entry->method == TDMI_ZIP_STORED);
    if (!is_there) {
        TDMI_TRY(tdmi_archive_read(archive, index, limit_bytes, text, err));
        *at = tdmi_text_string(text);
        return TDM_OK;
    }
    TDMI_TRY(check_request(archive, entry, limit_bytes, err));
    if (archive->form == TDMI_ARCHIVE_ZIP)
        return tdmi_zip_view(archive, entry, at, err);
    *at = archive->records.lent + entry->offset;
    return TDM_OK;
}
