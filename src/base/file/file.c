/*
 * Reading whole files, folders and paths. What the system says is passed on with the path and the
 * reason: a file that is missing or unreadable is the user's input, everything that cannot be made
 * or written is the system's refusal.
 */
#include "base/file/file.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* So much of a disk stays free for others, or a tenth of it if that is less. */
static const int64_t spared_bytes = (int64_t)1 << 30;

/* Running out of descriptors or memory is no fault of the file. */
static tdm_status read_status(int reason)
{
    return reason == EMFILE || reason == ENFILE || reason == ENOMEM ? TDM_E_SYSTEM : TDM_E_INPUT;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* Read until the end into *bytes, which grows; the size that stat gave is only a first guess,
 * because /proc files say 0 and other files may grow meanwhile. */
static tdm_status read_all(int fd, const char *path, size_t guess, size_t limit_bytes, char **bytes,
                           size_t *length_bytes, tdm_error *err)
{
    size_t capacity = 0, length = 0;
    for (;;) {
        if (length + 1 >= capacity) {
            capacity = capacity == 0 ? guess + 2 : capacity * 2;
            if (capacity > limit_bytes && capacity - limit_bytes > 2)
                capacity = limit_bytes + 2;
            char *grown = tdmi_realloc(*bytes, capacity, 1);
            if (!grown)
                return TDM_FAIL(err, TDM_E_MEMORY, "cannot read %s: no memory for %zu bytes", path,
                                capacity);
            *bytes = grown;
        }
        ssize_t step = read(fd, *bytes + length, capacity - 1 - length);
        if (step < 0 && errno == EINTR)
            continue;
        if (step < 0)
            return TDM_FAIL(err, read_status(errno), "cannot read %s: %s", path, strerror(errno));
        if (step == 0)
            break;
        length += (size_t)step;
        if (length > limit_bytes)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "%s is too large: more than the %zu bytes accepted here", path,
                            limit_bytes);
    }
    (*bytes)[length] = '\0';
    *length_bytes = length;
    return TDM_OK;
}

tdm_status tdmi_file_read(const char *path, size_t limit_bytes, void **bytes, size_t *length_bytes,
                          tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) char *content = NULL;
    struct stat facts;
    *bytes = NULL;
    *length_bytes = 0;
    if (limit_bytes > (size_t)PTRDIFF_MAX / 4)
        limit_bytes = (size_t)PTRDIFF_MAX / 4;
    TDMI_AT_END(tdmi_close_at) const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return TDM_FAIL(err, read_status(errno), "cannot open %s: %s", path, strerror(errno));
    if (fstat(fd, &facts) != 0)
        return TDM_FAIL(err, read_status(errno), "cannot read %s: %s", path, strerror(errno));
    if (S_ISDIR(facts.st_mode) || S_ISFIFO(facts.st_mode))
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read %s: it is a %s, not a file", path,
                        S_ISDIR(facts.st_mode) ? "folder" : "pipe");
    const uint64_t size = facts.st_size > 0 ? (uint64_t)facts.st_size : 0;
    if (size > limit_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s is too large: %llu bytes, at most %zu are accepted here", path,
                        (unsigned long long)size, limit_bytes);
    TDMI_TRY(
        read_all(fd, path, size ? (size_t)size : 4096, limit_bytes, &content, length_bytes, err));
    *bytes = tdmi_take(&content);
    return TDM_OK;
}

/* ---- folders ------------------------------------------------------------------------------ */

/* Kind for an errno of stat: only the first four mean that nothing is there. */
static enum tdmi_file_kind kind_of_refusal(int reason)
{
    return reason == ENOENT || reason == ENOTDIR || reason == ELOOP || reason == ENAMETOOLONG
               ? TDMI_FILE_MISSING
               : TDMI_FILE_FORBIDDEN;
}

static enum tdmi_file_kind kind_of_mode(mode_t mode)
{
    return S_ISREG(mode) ? TDMI_FILE_REGULAR : S_ISDIR(mode) ? TDMI_FILE_FOLDER : TDMI_FILE_OTHER;
}

enum tdmi_file_kind tdmi_file_kind_of(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? kind_of_mode(facts.st_mode) : kind_of_refusal(errno);
}

int64_t tdmi_file_bytes(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) ? (int64_t)facts.st_size : -1;
}

int64_t tdmi_disk_spare_bytes(const char *path)
{
    struct statvfs disk;
    if (statvfs(path, &disk) != 0 || disk.f_blocks == 0)
        return INT64_MAX;
    const double block = (double)disk.f_frsize, tenth = (double)disk.f_blocks / 10 * block,
                 kept = tenth < (double)spared_bytes ? tenth : (double)spared_bytes,
                 spare = (double)disk.f_bavail * block - kept;
    return spare <= 0 ? 0 : spare >= 0x1p62 ? INT64_MAX : (int64_t)spare;
}

tdm_status tdmi_folder_make(const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    if (tdmi_file_kind_of(path) == TDMI_FILE_FOLDER)
        return TDM_OK;
    char *prefix = tdmi_arena_copy(&arena, path);
    TDMI_CHECK_MEMORY(prefix, err);
    /* Every prefix that ends before a slash, then the whole; another process may make them too. */
    for (char *at = prefix;; at++) {
        if (*at != '/' && *at != '\0')
            continue;
        const char kept = *at;
        *at = '\0';
        const int reason = at != prefix && mkdir(prefix, 0777) != 0 ? errno : 0;
        if (reason && tdmi_file_kind_of(prefix) != TDMI_FILE_FOLDER)
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make the folder %s: %s%s%s", path,
                            kept ? prefix : "", kept ? ": " : "",
                            reason == EEXIST ? "is there and is no folder" : strerror(reason));
        *at = kept;
        if (kept == '\0')
            return TDM_OK;
    }
}

tdm_status tdmi_folder_sync(const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_close_at) const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A folder that may be written but not read cannot be synced; nothing is wrong with it. */
    if (fd < 0 && errno == EACCES)
        return TDM_OK;
    if (fd < 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot sync the folder %s: %s", path, strerror(errno));
    /* Some network and user-space file systems have no fsync for folders. */
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot sync the folder %s: %s", path, strerror(errno));
    return TDM_OK;
}

static enum tdmi_file_kind kind_of_entry(int folder_fd, const struct dirent *entry, bool *is_loop)
{
    struct stat facts;
    *is_loop = false;
    if (entry->d_type == DT_REG)
        return TDMI_FILE_REGULAR;
    if (entry->d_type == DT_DIR)
        return TDMI_FILE_FOLDER;
    if (fstatat(folder_fd, entry->d_name, &facts, 0) != 0) {
        *is_loop = errno == ELOOP;
        return kind_of_refusal(errno); /* a link to nowhere, or gone meanwhile */
    }
    return kind_of_mode(facts.st_mode);
}

static int by_name(const void *left, const void *right)
{
    const struct tdmi_folder_entry *a = left, *b = right;
    return strcmp(a->name, b->name);
}

/* All entries into *list of tdmi_realloc, unsorted. */
static tdm_status list_entries(DIR *folder, const char *path, tdmi_arena *arena,
                               struct tdmi_folder_entry **list, size_t *n_list, tdm_error *err)
{
    int64_t capacity = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (!entry && errno != 0)
            return TDM_FAIL(err, read_status(errno), "cannot list the folder %s: %s", path,
                            strerror(errno));
        if (!entry)
            return TDM_OK;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const char *name = tdmi_arena_copy(arena, entry->d_name);
        TDMI_CHECK_MEMORY(name, err);
        TDMI_TRY(TDMI_MAKE_ROOM(*list, capacity, *n_list, err));
        bool is_loop;
        enum tdmi_file_kind kind = kind_of_entry(dirfd(folder), entry, &is_loop);
        (*list)[(*n_list)++] = (struct tdmi_folder_entry){name, kind, is_loop};
    }
}

static void close_folder(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

tdm_status tdmi_folder_list(const char *path, tdmi_arena *arena, struct tdmi_folder_entry **entries,
                            size_t *n_entries, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct tdmi_folder_entry *list = NULL;
    size_t n_list = 0;
    *entries = NULL;
    *n_entries = 0;
    TDMI_AT_END(close_folder) DIR *folder = opendir(path);
    if (!folder)
        return TDM_FAIL(err, read_status(errno), "cannot list the folder %s: %s", path,
                        strerror(errno));
    TDMI_TRY(list_entries(folder, path, arena, &list, &n_list, err));
    struct tdmi_folder_entry *kept = tdmi_arena_alloc(arena, n_list, sizeof *kept);
    TDMI_CHECK_MEMORY(kept, err);
    if (n_list > 0) {
        qsort(list, n_list, sizeof *list, by_name);
        memcpy(kept, list, n_list * sizeof *list);
    }
    *entries = kept;
    *n_entries = n_list;
    return TDM_OK;
}

/* ---- paths -------------------------------------------------------------------------------- */

char *tdmi_path_join(tdmi_arena *arena, const char *folder, const char *name)
{
    size_t length = strlen(folder);
    if (length == 0 || name[0] == '/')
        return tdmi_arena_copy(arena, name);
    const char *query = strstr(folder, "://") != NULL ? strchr(folder, '?') : NULL;
    if (query != NULL) {
        size_t before = (size_t)(query - folder);
        return tdmi_arena_printf(arena, "%.*s%s%s%s", (int)before, folder,
                                 query[-1] == '/' ? "" : "/", name, query);
    }
    return tdmi_arena_printf(arena, "%s%s%s", folder, folder[length - 1] == '/' ? "" : "/", name);
}

const char *tdmi_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
