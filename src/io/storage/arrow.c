/* Object stores as a table of storage.h, through Arrow's file systems. */
#include "io/arrow/storage.h"
#include "io/storage/storage.h"

extern const struct tdmi_storage_table tdmi_storage_arrow; /* registry.c hands it out */

static tdm_status arrow_look(const char *path, struct tdmi_place *place, tdm_error *err)
{
    int64_t size_bytes;
    *place = (struct tdmi_place){.kind = TDMI_FILE_MISSING};
    TDMI_TRY(tdmi_arrow_uri_stat(path, &place->kind, &size_bytes, err));
    place->size_bytes = size_bytes < 0 ? 0 : size_bytes;
    return TDM_OK;
}

struct entries {
    tdmi_arena *arena;
    struct tdmi_place_entry *list; /* of tdmi_alloc while it grows */
    size_t n;
    int64_t capacity;
};

static tdm_status add_entry(void *self, const char *name, enum tdmi_file_kind kind,
                            int64_t size_bytes, tdm_error *err)
{
    struct entries *entries = self;
    TDMI_TRY(TDMI_MAKE_ROOM(entries->list, entries->capacity, entries->n, err));
    const char *copy = tdmi_arena_copy(entries->arena, name);
    TDMI_CHECK_MEMORY(copy, err);
    entries->list[entries->n++] = (struct tdmi_place_entry){copy, kind, size_bytes, false};
    return TDM_OK;
}

static void release_list(struct entries *entries)
{
    tdmi_free(entries->list);
}

static tdm_status arrow_list(const char *path, bool has_sizes, tdmi_arena *arena,
                             struct tdmi_place_entry **entries, size_t *n_entries, tdm_error *err)
{
    TDMI_AT_END(release_list) struct entries found = {.arena = arena};
    (void)has_sizes; /* a store's listing has them anyway */
    TDMI_TRY(tdmi_arrow_uri_list(path, add_entry, &found, err));
    *entries = tdmi_arena_alloc(arena, found.n, sizeof **entries);
    TDMI_CHECK_MEMORY(*entries, err);
    for (size_t i = 0; i < found.n; i++)
        (*entries)[i] = found.list[i];
    *n_entries = found.n;
    return TDM_OK;
}

static tdm_status arrow_open(const char *path, void **self, int64_t *size_bytes, tdm_error *err)
{
    tdmi_arrow_remote *file = NULL;
    TDMI_TRY(tdmi_arrow_remote_open(path, *size_bytes, &file, err));
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
    (void)path; /* the file's own errors name it */
    return tdmi_arrow_remote_read(self, offset, bytes, length_bytes, done, err);
}

static tdm_status arrow_put(const char *path, const struct tdmi_byte_source *source,
                            int64_t size_bytes, tdm_error *err)
{
    return tdmi_arrow_remote_put(path, source->self, source->read, size_bytes, err);
}

static tdm_status arrow_remove(const char *path, tdm_error *err)
{
    return tdmi_arrow_remote_remove(path, err);
}

const struct tdmi_storage_table tdmi_storage_arrow = {
    .name = "object store",
    .look = arrow_look,
    .list = arrow_list,
    .open = arrow_open,
    .close = arrow_close,
    .read = arrow_read,
    .put = arrow_put,
    .remove = arrow_remove,
};
