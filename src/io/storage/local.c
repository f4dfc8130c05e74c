/* Local files: stat, readdir, pread, with short reads and interruptions put right by the caller. */
#include "io/storage/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

const struct tdmi_storage_table tdmi_storage_local = {
    .name = "local",
    .look = local_look,
    .list = local_list,
    .open = local_open,
    .close = local_close,
    .read = local_read,
};
