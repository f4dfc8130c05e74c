/* Local files: stat, readdir, pread, with short reads and interruptions put right by the caller. */
#include "io/storage/storage.h"

#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct local_file {
    int fd;
};

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
    if (*entries == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to list the folder '%s'", path);
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

/* A descriptor of a regular file and its size. */
static tdm_status open_regular(const char *path, int *fd, int64_t *size_bytes, tdm_error *err)
{
    struct stat found;
    /* Opening a pipe must not wait for its writer. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0) {
        bool is_lack = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return TDM_FAIL(err, is_lack ? TDM_E_SYSTEM : TDM_E_INPUT, "cannot open '%s': %s", path,
                        strerror(errno));
    }
    if (fstat(*fd, &found) != 0 || !S_ISREG(found.st_mode)) {
        close(*fd);
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is not a regular file", path);
    }
    *size_bytes = found.st_size;
    return TDM_OK;
}

static tdm_status local_open(const char *path, void **self, int64_t *size_bytes, tdm_error *err)
{
    int fd = -1;
    tdm_status status = open_regular(path, &fd, size_bytes, err);
    if (status != TDM_OK)
        return status;
    struct local_file *file = tdmi_alloc(1, sizeof *file);
    if (file == NULL) {
        close(fd);
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open '%s'", path);
    }
    file->fd = fd;
    *self = file;
    return TDM_OK;
}

static void local_close(void *self)
{
    struct local_file *file = self;
    close(file->fd);
    tdmi_free(file);
}

static tdm_status read_some(int fd, const char *path, int64_t offset, void *bytes,
                            size_t length_bytes, size_t *done, tdm_error *err)
{
    for (;;) {
        ssize_t got = pread(fd, bytes, length_bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return TDM_FAIL(err, TDM_E_INPUT, "cannot read %zu bytes at byte %lld of '%s': %s",
                            length_bytes, (long long)offset, path, strerror(errno));
        *done = (size_t)got;
        return TDM_OK;
    }
}

static tdm_status local_read(const void *self, const char *path, int64_t offset, void *bytes,
                             size_t length_bytes, size_t *done, tdm_error *err)
{
    const struct local_file *file = self;
    return read_some(file->fd, path, offset, bytes, length_bytes, done, err);
}

/* The bytes there were when it was opened. */
static tdm_status read_whole(int fd, const char *path, int64_t size_bytes, tdmi_text *bytes,
                             tdm_error *err)
{
    char *room = tdmi_text_room(bytes, (size_t)size_bytes);
    if (room == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the %lld bytes of '%s'",
                        (long long)size_bytes, path);
    size_t done = 0, step = 1;
    while (step > 0 && done < (size_t)size_bytes) {
        TDM_TRY(
            read_some(fd, path, (int64_t)done, room + done, (size_t)size_bytes - done, &step, err),
            err, "cannot read '%s'", path);
        done += step;
    }
    if (done < (size_t)size_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' became shorter while it was read: %zu of %lld bytes", path, done,
                        (long long)size_bytes);
    return TDM_OK;
}

static tdm_status local_read_file(const char *path, int64_t limit_bytes, tdmi_text *bytes,
                                  tdm_error *err)
{
    int fd = -1;
    int64_t size_bytes = 0;
    tdm_status status = open_regular(path, &fd, &size_bytes, err);
    if (status != TDM_OK)
        return status;
    if (size_bytes > limit_bytes)
        status = TDM_FAIL(err, TDM_E_INPUT, "'%s' is larger than the %lld bytes accepted here",
                          path, (long long)limit_bytes);
    else
        status = read_whole(fd, path, size_bytes, bytes, err);
    if (status != TDM_OK)
        tdmi_text_clear(bytes);
    close(fd);
    return status;
}

const struct tdmi_storage_table tdmi_storage_local = {
    .name = "local",
    .look = local_look,
    .list = local_list,
    .open = local_open,
    .close = local_close,
    .read = local_read,
    .read_file = local_read_file,
};
