/* Selects the table of a path's store, and repeats partial reads. */
#include "io/storage/storage.h"

#include "base/memory.h"
#include <string.h>

struct tdmi_storage_file {
    const struct tdmi_storage_table *table;
    void *self;
    int64_t size_bytes;
    char *path;
};

/* ---- whose place it is ---------------------------------------------------------------------- */

/* Length of "scheme" before "://", or 0. */
static size_t scheme_bytes(const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (path[0] == '\0' || strchr(letters, path[0]) == NULL)
        return 0;
    size_t n = 0;
    while (path[n] != '\0' && (strchr(letters, path[n]) || strchr("0123456789+-.", path[n])))
        n++;
    return strncmp(path + n, "://", 3) == 0 ? n : 0;
}

static bool is_file_uri(const char *path)
{
    return strncmp(path, "file://", 7) == 0;
}

bool tdmi_storage_is_uri(const char *path)
{
    return scheme_bytes(path) > 0 && !is_file_uri(path);
}

const char *tdmi_storage_plain(const char *path, tdmi_arena *arena)
{
    size_t length = tdmi_storage_is_uri(path) ? strcspn(path, "?") : strlen(path);
    return tdmi_arena_printf(arena, "%.*s", (int)length, path);
}

/* The store's table, and the path in the form that it takes. */
static tdm_status find(const char *path, const struct tdmi_storage_table **table,
                       const char **taken, tdm_error *err)
{
    *taken = is_file_uri(path) ? path + 7 : path;
    *table = tdmi_storage_is_uri(path) ? tdmi_storage_of_uris() : &tdmi_storage_local;
    if (*table == NULL)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' lies in an object store, and this build has no object storage: copy "
                        "it here, or build with Arrow (tools/deps && make)",
                        path);
    return TDM_OK;
}

/* ---- looking and listing -------------------------------------------------------------------- */

tdm_status tdmi_storage_look(const char *path, struct tdmi_place *place, tdm_error *err)
{
    const struct tdmi_storage_table *table = NULL;
    *place = (struct tdmi_place){.kind = TDMI_FILE_MISSING};
    TDM_TRY(find(path, &table, &path, err), err, "cannot look at '%s'", path);
    return table->look(path, place, err);
}

enum tdmi_file_kind tdmi_storage_kind(const char *path)
{
    struct tdmi_place place;
    return tdmi_storage_look(path, &place, NULL) == TDM_OK ? place.kind : TDMI_FILE_MISSING;
}

tdm_status tdmi_storage_refuse(const char *path, enum tdmi_file_kind kind, const char *expected,
                               tdm_error *err)
{
    switch (kind) {
    case TDMI_FILE_MISSING:
        return TDM_FAIL(err, TDM_E_INPUT, "%s is wanted; no such file or folder: '%s'", expected,
                        path);
    case TDMI_FILE_FORBIDDEN:
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' may not be looked at: it, or a folder above it, is closed to this "
                        "user; %s is wanted",
                        path, expected);
    case TDMI_FILE_REGULAR:
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is a file; %s is wanted", path, expected);
    case TDMI_FILE_FOLDER:
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is a folder; %s is wanted", path, expected);
    case TDMI_FILE_OTHER:
        break;
    }
    return TDM_FAIL(err, TDM_E_INPUT, "'%s' is neither a file nor a folder; %s is wanted", path,
                    expected);
}

tdm_status tdmi_storage_list(const char *path, bool has_sizes, tdmi_arena *arena,
                             struct tdmi_place_entry **entries, size_t *n_entries, tdm_error *err)
{
    const struct tdmi_storage_table *table = NULL;
    *entries = NULL;
    *n_entries = 0;
    TDM_TRY(find(path, &table, &path, err), err, "cannot list '%s'", path);
    return table->list(path, has_sizes, arena, entries, n_entries, err);
}

/* ---- reading -------------------------------------------------------------------------------- */

static tdm_status open_listed(const char *path, int64_t listed_bytes, tdmi_storage_file **file,
                              tdm_error *err)
{
    const struct tdmi_storage_table *table = NULL;
    *file = NULL;
    TDM_TRY(find(path, &table, &path, err), err, "cannot open '%s'", path);
    tdmi_storage_file *opened = tdmi_alloc(1, sizeof *opened);
    size_t path_bytes = strlen(path) + 1;
    if (opened != NULL)
        opened->path = tdmi_alloc(path_bytes, 1);
    if (opened == NULL || opened->path == NULL) {
        tdmi_storage_close(opened);
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open '%s'", path);
    }
    memcpy(opened->path, path, path_bytes);
    opened->table = table;
    opened->size_bytes = listed_bytes;
    tdm_status status = table->open(opened->path, &opened->self, &opened->size_bytes, err);
    if (status == TDM_OK)
        *file = opened;
    else
        tdmi_storage_close(opened);
    return status;
}

tdm_status tdmi_storage_open(const char *path, tdmi_storage_file **file, tdm_error *err)
{
    return open_listed(path, -1, file, err);
}

void tdmi_storage_close(tdmi_storage_file *file)
{
    if (file == NULL)
        return;
    if (file->self != NULL)
        file->table->close(file->self);
    tdmi_free(file->path);
    tdmi_free(file);
}

const char *tdmi_storage_path(const tdmi_storage_file *file)
{
    return file->path;
}

int64_t tdmi_storage_size(const tdmi_storage_file *file)
{
    return file->size_bytes;
}

tdm_status tdmi_storage_read(const tdmi_storage_file *file, int64_t offset, void *bytes,
                             size_t length_bytes, tdm_error *err)
{
    for (size_t done = 0; done < length_bytes;) {
        size_t step = 0;
        tdm_status status =
            file->table->read(file->self, file->path, offset + (int64_t)done, (char *)bytes + done,
                              length_bytes - done, &step, err);
        if (status != TDM_OK)
            return status;
        if (step == 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' ends at byte %lld, before the %zu bytes that stand at byte %lld",
                            file->path, (long long)offset + (long long)done, length_bytes,
                            (long long)offset);
        done += step;
    }
    return TDM_OK;
}

tdm_status tdmi_storage_read_file(const char *path, int64_t limit_bytes, tdmi_text *bytes,
                                  tdm_error *err)
{
    return tdmi_storage_read_listed(path, -1, limit_bytes, bytes, err);
}

tdm_status tdmi_storage_read_listed(const char *path, int64_t listed_bytes, int64_t limit_bytes,
                                    tdmi_text *bytes, tdm_error *err)
{
    const struct tdmi_storage_table *table = NULL;
    tdmi_storage_file *file = NULL;
    tdmi_text_clear(bytes);
    TDM_TRY(find(path, &table, &path, err), err, "cannot read '%s'", path);
    if (table->read_file != NULL)
        return table->read_file(path, limit_bytes, bytes, err);
    tdm_status status = open_listed(path, listed_bytes, &file, err);
    if (status != TDM_OK)
        return status;
    char *room = NULL;
    if (file->size_bytes > limit_bytes) {
        status = TDM_FAIL(err, TDM_E_INPUT, "'%s' is larger than the %lld bytes accepted here",
                          path, (long long)limit_bytes);
        goto out;
    }
    room = tdmi_text_room(bytes, (size_t)file->size_bytes);
    if (room == NULL) {
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %lld bytes of '%s'",
                          (long long)file->size_bytes, path);
        goto out;
    }
    status = tdmi_storage_read(file, 0, room, (size_t)file->size_bytes, err);
    if (status != TDM_OK)
        tdmi_text_clear(bytes);
out:
    tdmi_storage_close(file);
    return status;
}
