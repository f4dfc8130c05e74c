/*
 * Writes a data set into a folder completely or not at all:
 *
 *     open    OUT/.unfinished/<class>/ for every class; making .unfinished also locks out others
 *     write   OUT/.unfinished/<class>/000123.jpg, straight under its name
 *     commit  syncfs once, rename each class to OUT/<class>, fsync OUT, remove .unfinished
 *     close   remove what was not committed
 *
 * A process that is killed leaves .unfinished behind and no torn image under a final name: none
 * at all, or, in the last milliseconds, complete classes beside .unfinished. One syncfs replaces an
 * fsync for each image: thousands of those take minutes on a disk, while the images only need
 * to be on it before their final names are. A system without syncfs flushes by sync, which may
 * return early; there a power failure, not a kill, can cost images of a finished set.
 */
#include "synth/folder.h"
#include "base/file/file.h"
#include "base/scope.h"
#include "synth/class.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char staging_name[] = ".unfinished";

enum { IMAGE_NAME_BYTES = TDMI_SYNTH_NAME_BYTES + 40 };

static tdm_status fail_system(const char *what, const char *path, const char *name, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_SYSTEM, "cannot %s %s%s%s: %s", what, path, *name ? "/" : "", name,
                    strerror(errno));
}

static tdm_status refuse_unless_empty(const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    TDM_TRY(tdmi_folder_list(path, &arena, &entries, &n, err), err,
            "cannot see whether the folder %s is empty", path);
    for (size_t i = 0; i < n; i++)
        if (strcmp(entries[i].name, staging_name) == 0)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "cannot make a data set in %s: another run is writing there, or one "
                            "was killed and left %s; remove the folder, or name another one",
                            path, staging_name);
    if (n > 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot make a data set in %s: the folder is not empty, it holds %.60s; "
                        "name a folder that is empty or does not exist",
                        path, entries[0].name);
    return TDM_OK;
}

tdm_status tdmi_synth_folder_open(struct tdmi_synth_folder *folder, const char *path, int n_classes,
                                  tdm_error *err)
{
    folder->path = path;
    enum tdmi_file_kind kind = tdmi_file_kind_of(path);
    if (kind == TDMI_FILE_REGULAR || kind == TDMI_FILE_OTHER)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot make a data set in %s: it is a file; name a folder that is empty "
                        "or does not exist",
                        path);
    if (kind == TDMI_FILE_FORBIDDEN)
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "cannot make a data set in %s: it, or a folder above it, is closed to this "
                        "user",
                        path);
    if (kind == TDMI_FILE_MISSING) {
        TDM_TRY(tdmi_folder_make(path, err), err, "cannot make a data set in %s", path);
        folder->is_made = true;
    }
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return fail_system("open the folder", path, "", err);
    folder->is_open = true;
    TDMI_TRY(refuse_unless_empty(path, err));

    if (mkdirat(folder->fd, staging_name, 0777) != 0)
        return fail_system("write in the folder", path, "", err);
    folder->is_staging = true;
    folder->staging_fd = openat(folder->fd, staging_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->staging_fd < 0)
        return fail_system("open", path, staging_name, err);
    for (int i = 0; i < n_classes; i++) {
        char name[TDMI_SYNTH_NAME_BYTES];
        tdmi_synth_class_name(i, name);
        if (mkdirat(folder->staging_fd, name, 0777) != 0)
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make the folder %s/%s/%s: %s", path,
                            staging_name, name, strerror(errno));
        folder->n_classes = i + 1;
    }
    return TDM_OK;
}

/* 0, or the reason as errno. */
static int write_file(int parent, const char *name, const char *bytes, size_t length_bytes)
{
    int reason = 0;
    int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    while (length_bytes > 0 && reason == 0) {
        ssize_t step = write(fd, bytes, length_bytes);
        if (step > 0) {
            bytes += step;
            length_bytes -= (size_t)step;
        } else if (step == 0) {
            reason = ENOSPC;
        } else if (errno != EINTR) {
            reason = errno;
        }
    }
    /* Network file systems report a full disk only here. */
    if (close(fd) != 0 && reason == 0 && errno != EINTR)
        reason = errno;
    return reason;
}

tdm_status tdmi_synth_folder_write(const struct tdmi_synth_folder *folder, int class_index,
                                   int64_t number, const char *ending, const void *bytes,
                                   size_t length_bytes, tdm_error *err)
{
    char class_name[TDMI_SYNTH_NAME_BYTES], name[IMAGE_NAME_BYTES];
    tdmi_synth_class_name(class_index, class_name);
    snprintf(name, sizeof name, "%s/%06lld%s", class_name, (long long)number, ending);
    int reason = write_file(folder->staging_fd, name, bytes, length_bytes);
    if (reason != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write the image %s/%s/%s: %s", folder->path,
                        staging_name, name, strerror(reason));
    return TDM_OK;
}

/* Everything written so far onto the disk that holds the folder; 0 or the reason. */
static int flush_disk(int fd)
{
#if defined(__linux__)
    return syncfs(fd) == 0 ? 0 : errno;
#else
    (void)fd;
    sync();
    return 0;
#endif
}

tdm_status tdmi_synth_folder_commit(struct tdmi_synth_folder *folder, tdm_error *err)
{
    int reason = flush_disk(folder->fd);
    if (reason != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot flush the images of %s to the disk: %s",
                        folder->path, strerror(reason));
    for (int i = 0; i < folder->n_classes; i++) {
        char name[TDMI_SYNTH_NAME_BYTES];
        tdmi_synth_class_name(i, name);
        if (renameat(folder->staging_fd, name, folder->fd, name) != 0)
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot move %s/%s/%s to its final place: %s",
                            folder->path, staging_name, name, strerror(errno));
        folder->n_moved = i + 1;
    }
    TDM_TRY(tdmi_folder_sync(folder->path, err), err, "cannot flush %s to the disk", folder->path);
    if (unlinkat(folder->fd, staging_name, AT_REMOVEDIR) != 0)
        return fail_system("remove", folder->path, staging_name, err);
    close(folder->staging_fd);
    close(folder->fd);
    folder->is_open = folder->is_made = folder->is_staging = false;
    return TDM_OK;
}

/* A class folder holds only what write put there. What cannot be removed stays: the first error is
 * already on its way to the user, and .unfinished marks the rest. */
static void remove_class(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (list) {
        const struct dirent *entry;
        while ((entry = readdir(list)))
            unlinkat(dirfd(list), entry->d_name, 0);
        closedir(list);
    } else if (fd >= 0) {
        close(fd);
    }
    unlinkat(parent, name, AT_REMOVEDIR);
}

void tdmi_synth_folder_close(struct tdmi_synth_folder *folder)
{
    if (folder->is_staging && folder->staging_fd >= 0) {
        for (int i = 0; i < folder->n_classes; i++) {
            char name[TDMI_SYNTH_NAME_BYTES];
            tdmi_synth_class_name(i, name);
            remove_class(i < folder->n_moved ? folder->fd : folder->staging_fd, name);
        }
        close(folder->staging_fd);
    }
    if (folder->is_staging)
        unlinkat(folder->fd, staging_name, AT_REMOVEDIR);
    if (folder->is_open)
        close(folder->fd);
    if (folder->is_made)
        rmdir(folder->path);
    *folder = (struct tdmi_synth_folder){0};
}
