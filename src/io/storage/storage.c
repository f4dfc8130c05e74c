/* Selects the table of a path's store, and repeats partial reads. Local files are stat, readdir and
 * pread. */
#include "io/storage/storage.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- local files ------------------------------------------------------------------------------
 */

static tdm_status local_look(const char *path, struct tdmi_place *place, tdm_error *err)
{
    struct stat found;
    (void)err;
    *place = (struct tdmi_place){.kind = tdmi_file_kind_of(path)};
    if (place->kind == TDMI_FILE_MISSING || place->kind == TDMI_FILE_FORBIDDEN)
        return TDM_OK;
    if (stat(path, &found) != 0) { /* gone in between */
        place->kind = TDMI_FILE_MISSING;
        return TDM_OK;
    }
    if (S_ISREG(found.st_mode)) {
        place->size_bytes = found.st_size;
        place->modified_ns = (int64_t)found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec;
    }
    place->identity[0] = (uint64_t)found.st_dev;
    place->identity[1] = (uint64_t)found.st_ino;
    return TDM_OK;
}

static int64_t size_of(int folder_fd, const struct tdmi_folder_entry *entry)
{
    struct stat found;
    return fstatat(folder_fd, entry->name, &found, 0) == 0 ? found.st_size : -1;
}

static tdm_status local_list(const char *path, bool has_sizes, tdmi_arena *arena,
                             struct tdmi_place_entry **entries, size_t *n_entries, tdm_error *err)
{
    struct tdmi_folder_entry *names = NULL;
    TDM_TRY(tdmi_folder_list(path, arena, &names, n_entries, err), err,
            "cannot list the folder '%s'", path);
    *entries = tdmi_arena_alloc(arena, *n_entries, sizeof **entries);
    TDMI_CHECK_MEMORY(*entries, err);
    int fd = has_sizes ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    for (size_t i = 0; i < *n_entries; i++) {
        bool is_asked = fd >= 0 && names[i].kind == TDMI_FILE_REGULAR;
        (*entries)[i] = (struct tdmi_place_entry){names[i].name, names[i].kind,
                                                  is_asked ? size_of(fd, &names[i]) : (int64_t)-1,
                                                  names[i].is_loop};
    }
    if (fd >= 0)
        close(fd);
    return TDM_OK;
}

/* The file's own state is its descriptor, so that opening one allocates nothing. */
static tdm_status local_open(const char *path, void **self, int64_t *size_bytes, tdm_error *err)
{
    struct stat found;
    /* Opening a pipe must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        bool is_lack = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return TDM_FAIL(err, is_lack ? TDM_E_SYSTEM : TDM_E_INPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    }
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) {
        close(fd);
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is not a regular file", path);
    }
    *size_bytes = found.st_size;
    *self = (void *)(intptr_t)fd;
    return TDM_OK;
}

static void local_close(void *self)
{
    close((int)(intptr_t)self);
}

static tdm_status local_read(const void *self, const char *path, int64_t offset, void *bytes,
                             size_t length_bytes, size_t *done, tdm_error *err)
{
    ssize_t got;
    do
        got = pread((int)(intptr_t)self, bytes, length_bytes, (off_t)offset);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read %zu bytes at byte %lld of '%s': %s",
                        length_bytes, (long long)offset, path, strerror(errno));
    *done = (size_t)got;
    return TDM_OK;
}

static tdm_status local_put(const char *path, const struct tdmi_byte_source *source,
                            int64_t size_bytes, tdm_error *err)
{
    enum { PIECE_BYTES = 1 << 20 };
    TDMI_AT_END(tdmi_atomic_abort_at) tdmi_atomic_file *file = NULL;
    TDMI_AT_END(tdmi_free_at) char *piece = NULL;
    TDMI_TRY(TDMI_NEW(piece, PIECE_BYTES, err));
    TDMI_TRY(tdmi_atomic_open(path, &file, err));
    for (int64_t at = 0; at < size_bytes;) {
        const int64_t left = size_bytes - at;
        const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        TDMI_TRY(source->read(source->self, at, piece, n, err));
        TDMI_TRY(tdmi_atomic_write(file, piece, n, err));
        at += (int64_t)n;
    }
    return tdmi_atomic_commit(tdmi_take(&file), err);
}

static tdm_status local_remove(const char *path, tdm_error *err)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_SYSTEM, "cannot remove '%s': %s", path, strerror(errno));
}

static const struct tdmi_storage_table local = {
    .name = "local",
    .look = local_look,
    .list = local_list,
    .open = local_open,
    .close = local_close,
    .read = local_read,
    .put = local_put,
    .remove = local_remove,
};

/* ---- the store of a place ---------------------------------------------------------------------
 */

struct tdmi_storage_file {
    const struct tdmi_storage_table *table; /* NULL: not open */
    void *self;
    int64_t size_bytes;
    const char *path;
    char *own_path; /* the same, or NULL where it is lent */
};

/* Does the path begin with "scheme://"? */
static bool has_scheme(const char *path)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-.0123456789";
    return isalpha((unsigned char)path[0]) && strncmp(path + strspn(path, letters), "://", 3) == 0;
}

const char *tdmi_storage_local(const char *path)
{
    return strncmp(path, "file://", 7) == 0 ? path + 7 : path;
}

bool tdmi_storage_is_uri(const char *path)
{
    return has_scheme(path) && tdmi_storage_local(path) == path;
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
    *taken = tdmi_storage_local(path);
    *table = tdmi_storage_is_uri(path) ? tdmi_storage_of_uris() : &local;
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
    static const char *const facts[] = {
        [TDMI_FILE_REGULAR] = "a file",
        [TDMI_FILE_FOLDER] = "a folder",
        [TDMI_FILE_OTHER] = "neither a file nor a folder",
    };
    if (kind == TDMI_FILE_MISSING)
        return TDM_FAIL(err, TDM_E_INPUT, "no such file or folder: '%s'; expected %s", path,
                        expected);
    if (kind == TDMI_FILE_FORBIDDEN)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' may not be looked at: it, or a folder above it, is closed to this "
                        "user; expected %s",
                        path, expected);
    return TDM_FAIL(err, TDM_E_INPUT, "'%s' is %s; expected %s", path, facts[kind], expected);
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

/* ---- writing -------------------------------------------------------------------------------- */

tdm_status tdmi_storage_put(const char *path, const struct tdmi_byte_source *source,
                            int64_t size_bytes, tdm_error *err)
{
    const struct tdmi_storage_table *table = NULL;
    TDM_TRY(find(path, &table, &path, err), err, "cannot write '%s'", path);
    return table->put(path, source, size_bytes, err);
}

tdm_status tdmi_storage_remove(const char *path, tdm_error *err)
{
    const struct tdmi_storage_table *table = NULL;
    TDM_TRY(find(path, &table, &path, err), err, "cannot remove '%s'", path);
    return table->remove(path, err);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Open a file whose path is lent and whose listed size, or -1, is set. */
static tdm_status begin(const char *path, tdmi_storage_file *file, tdm_error *err)
{
    const struct tdmi_storage_table *table = NULL;
    TDM_TRY(find(path, &table, &file->path, err), err, "cannot open '%s'", path);
    TDMI_TRY(table->open(file->path, &file->self, &file->size_bytes, err));
    file->table = table;
    return TDM_OK;
}

static void end(tdmi_storage_file *file)
{
    if (file->table != NULL)
        file->table->close(file->self);
    tdmi_free(file->own_path);
}

tdm_status tdmi_storage_open(const char *path, tdmi_storage_file **file, tdm_error *err)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *opened = NULL;
    size_t path_bytes = strlen(path) + 1;
    *file = NULL;
    TDMI_TRY(TDMI_NEW(opened, 1, err));
    TDMI_TRY(TDMI_NEW(opened->own_path, path_bytes, err));
    memcpy(opened->own_path, path, path_bytes);
    opened->size_bytes = -1;
    TDMI_TRY(begin(opened->own_path, opened, err));
    *file = tdmi_take(&opened);
    return TDM_OK;
}

void tdmi_storage_close(tdmi_storage_file *file)
{
    if (file != NULL)
        end(file);
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
        TDMI_TRY(file->table->read(file->self, file->path, offset + (int64_t)done,
                                   (char *)bytes + done, length_bytes - done, &step, err));
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
    TDMI_AT_END(end) tdmi_storage_file file = {.size_bytes = listed_bytes};
    tdmi_text_clear(bytes);
    TDMI_TRY(begin(path, &file, err));
    if (file.size_bytes > limit_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is larger than the %lld bytes accepted here",
                        file.path, (long long)limit_bytes);
    char *room = tdmi_text_room(bytes, (size_t)file.size_bytes);
    TDMI_CHECK_MEMORY(room, err);
    tdm_status status = tdmi_storage_read(&file, 0, room, (size_t)file.size_bytes, err);
    if (status != TDM_OK)
        tdmi_text_clear(bytes);
    return status;
}
