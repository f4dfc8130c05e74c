/* Object stores as a table of storage.h, through Arrow's file systems. */
#include "io/arrow/storage.h"
#include "io/storage/storage.h"

#include "base/memory.h"

extern const struct tdmi_storage_table tdmi_storage_arrow; /* registry.c hands it out */

static enum tdmi_file_kind kind_of(enum tdmi_arrow_uri_kind kind)
{
    return kind == TDMI_ARROW_URI_FILE     ? TDMI_FILE_REGULAR
           : kind == TDMI_ARROW_URI_FOLDER ? TDMI_FILE_FOLDER
                                           : TDMI_FILE_MISSING;
}

static tdm_status arrow_look(const char *path, struct tdmi_place *place, tdm_error *err)
{
    enum tdmi_arrow_uri_kind kind;
    int64_t size_bytes;
    *place = (struct tdmi_place){.kind = TDMI_FILE_MISSING};
    tdm_status status = tdmi_arrow_uri_stat(path, &kind, &size_bytes, err);
    if (status != TDM_OK)
        return status;
    *place =
        (struct tdmi_place){.kind = kind_of(kind), .size_bytes = size_bytes < 0 ? 0 : size_bytes};
    return TDM_OK;
}

struct entries {
    tdmi_arena *arena;
    struct tdmi_place_entry *list; /* of tdmi_alloc while it grows */
    size_t n;
    int64_t capacity;
};

static tdm_status add_entry(void *self, const char *name, enum tdmi_arrow_uri_kind kind,
                            int64_t size_bytes, tdm_error *err)
{
    struct entries *entries = self;
    if (!TDMI_GROW(entries->list, entries->capacity, entries->n))
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list more than %zu files", entries->n);
    const char *copy = tdmi_arena_copy(entries->arena, name);
    if (copy == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list more than %zu files", entries->n);
    entries->list[entries->n++] = (struct tdmi_place_entry){copy, kind_of(kind), size_bytes, false};
    return TDM_OK;
}

static tdm_status arrow_list(const char *path, bool has_sizes, tdmi_arena *arena,
                             struct tdmi_place_entry **entries, size_t *n_entries, tdm_error *err)
{
    struct entries found = {.arena = arena};
    (void)has_sizes; /* a store's listing has them anyway */
    tdm_status status = tdmi_arrow_uri_list(path, add_entry, &found, err);
    *entries = tdmi_arena_alloc(arena, found.n, sizeof **entries);
    if (status == TDM_OK && *entries == NULL)
        status = TDM_FAIL(err, TDM_E_MEMORY, "no memory to list '%s'", path);
    for (size_t i = 0; i < found.n && status == TDM_OK; i++)
        (*entries)[i] = found.list[i];
    *n_entries = status == TDM_OK ? found.n : 0;
    tdmi_free(found.list);
    return status;
}

static tdm_status arrow_open(const char *path, void **self, int64_t *size_bytes, tdm_error *err)
{
    tdmi_arrow_remote *file = NULL;
    TDM_TRY(tdmi_arrow_remote_open(path, *size_bytes, &file, err), err, "cannot open '%s'", path);
    *self = file;
    *size_bytes = tdmi_arrow_remote_size(file);
    return TDM_OK;
}

static void arrow_close(void *self)
{
    tdmi_arrow_remote_close(self);
}

static tdm_status arrow_read(const void *self, const char *path, int64_t offset, void *bytes,
                             size_t length_bytes, size_t *done, tdm_error *err)
{
    return TDM_WRAP(err, tdmi_arrow_remote_read(self, offset, bytes, length_bytes, done, err),
                    "cannot read %zu bytes at byte %lld of '%s'", length_bytes, (long long)offset,
                    path);
}

const struct tdmi_storage_table tdmi_storage_arrow = {
    .name = "object store",
    .look = arrow_look,
    .list = arrow_list,
    .open = arrow_open,
    .close = arrow_close,
    .read = arrow_read,
};
