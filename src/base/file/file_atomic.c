/*
 * Files that are there whole or not at all.
 *
 *     open    .<name>.<pid>.tmp beside the target, O_EXCL, so nobody else's file is taken
 *     write   into it; a failure is remembered, and commit then refuses. What is large goes to the
 *             disk meanwhile, so that commit has little left to wait for
 *     commit  fsync the bytes, rename over the target, fsync the folder so that the rename lasts
 *     abort   remove it
 *
 * A target that is a symbolic link stays one: the file it points to is replaced. A target that is
 * no regular file (a folder, a device, a pipe) is refused, because a rename would destroy it.
 */
#include "base/file/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tdmi_atomic_file {
    tdmi_arena arena;
    const char *target; /* links resolved */
    const char *temporary;
    const char *folder;
    int fd; /* -1 when closed */
    bool is_made, is_broken;
    off_t n_written, n_flushing; /* bytes; n_flushing of them are being written to the disk */
};

#define FLUSH_BYTES ((off_t)4 << 20)

static tdm_status refused(const tdmi_atomic_file *file, int reason, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write %s: %s", file->target, strerror(reason));
}

/* Set the target's folder; false: no memory. */
static bool find_folder(tdmi_atomic_file *file)
{
    char *folder = tdmi_arena_copy(&file->arena, file->target);
    if (!folder)
        return false;
    char *slash = strrchr(folder, '/');
    if (slash == folder)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    file->folder = slash ? folder : ".";
    return true;
}

/* Resolve the final path, and the mode of the file there (0 for a new file). */
static tdm_status find_target(tdmi_atomic_file *file, const char *path, mode_t *mode,
                              tdm_error *err)
{
    struct stat facts;
    char resolved[PATH_MAX];
    *mode = 0;
    if (stat(path, &facts) == 0) {
        if (!S_ISREG(facts.st_mode))
            return TDM_FAIL(err, TDM_E_USAGE, "cannot write %s: it is %s; give the name of a file",
                            path, S_ISDIR(facts.st_mode) ? "a folder" : "a device or pipe");
        *mode = facts.st_mode & 0777;
        const bool is_link = lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode);
        if (is_link && !realpath(path, resolved))
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write %s: %s", path, strerror(errno));
        file->target = tdmi_arena_copy(&file->arena, is_link ? resolved : path);
    } else {
        file->target = tdmi_arena_copy(&file->arena, path);
    }
    TDMI_CHECK_MEMORY(file->target && find_folder(file), err);
    if (tdmi_path_name(file->target)[0] == '\0')
        return TDM_FAIL(err, TDM_E_USAGE, "cannot write \"%s\": it names no file", path);
    return TDM_OK;
}

/* Leftovers of killed processes whose number came back, and other threads writing the same file,
 * only move the name on. */
static tdm_status make_temporary(tdmi_atomic_file *file, mode_t mode, tdm_error *err)
{
    const char *name = tdmi_path_name(file->target);
    for (int i = 0; i < 1000; i++) {
        char number[16] = "";
        if (i > 0)
            snprintf(number, sizeof number, ".%d", i);
        /* Cut, so that a name of the longest length the system knows still leaves room. */
        const char *temporary = tdmi_arena_printf(&file->arena, "%s/.%.200s.%ld%s.tmp",
                                                  file->folder, name, (long)getpid(), number);
        TDMI_CHECK_MEMORY(temporary, err);
        file->fd =
            open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode ? mode : 0666);
        if (file->fd >= 0) {
            file->temporary = temporary;
            file->is_made = true;
            /* umask may have narrowed it. Where modes cannot be set, narrower is the safe side. */
            if (mode && fchmod(file->fd, mode) != 0 && errno != EPERM && errno != ENOTSUP)
                return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write %s: setting its mode: %s",
                                file->target, strerror(errno));
            return TDM_OK;
        }
        if (errno != EEXIST && errno != EINTR)
            return refused(file, errno, err);
    }
    return TDM_FAIL(err, TDM_E_SYSTEM,
                    "cannot write %s: 1000 temporary files of it are left in %s; remove them",
                    file->target, file->folder);
}

static tdm_status open_atomic(const char *path, bool makes_folder, tdmi_atomic_file **file,
                              tdm_error *err)
{
    mode_t mode = 0;
    *file = NULL;
    TDMI_AT_END(tdmi_atomic_abort_at) tdmi_atomic_file *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->fd = -1;
    tdmi_arena_init(&made->arena, 4096);
    TDMI_TRY(find_target(made, path, &mode, err));
    if (makes_folder)
        TDM_TRY(tdmi_folder_make(made->folder, err), err, "cannot write %s", path);
    TDMI_TRY(make_temporary(made, mode, err));
    *file = tdmi_take(&made);
    return TDM_OK;
}

tdm_status tdmi_atomic_open(const char *path, tdmi_atomic_file **file, tdm_error *err)
{
    return open_atomic(path, true, file, err);
}

tdm_status tdmi_atomic_open_in_folder(const char *path, tdmi_atomic_file **file, tdm_error *err)
{
    return open_atomic(path, false, file, err);
}

/* offset < 0 appends. */
static tdm_status put(tdmi_atomic_file *file, off_t offset, const void *bytes, size_t length_bytes,
                      tdm_error *err)
{
    const char *at = bytes;
    while (length_bytes > 0) {
        ssize_t step = offset < 0 ? write(file->fd, at, length_bytes)
                                  : pwrite(file->fd, at, length_bytes, offset);
        if (step < 0 && errno == EINTR)
            continue;
        if (step <= 0) {
            file->is_broken = true;
            return refused(file, step < 0 ? errno : ENOSPC, err);
        }
        at += step;
        length_bytes -= (size_t)step;
        if (offset >= 0)
            offset += step;
    }
    return TDM_OK;
}

/* Only starts the write-out; errors are found by commit, so a refusal is ignored here. */
static void flush_early(tdmi_atomic_file *file)
{
    const off_t n = (file->n_written - file->n_flushing) / FLUSH_BYTES * FLUSH_BYTES;
    if (n == 0)
        return;
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(file->fd, file->n_flushing, n, SYNC_FILE_RANGE_WRITE);
#endif
    file->n_flushing += n;
}

tdm_status tdmi_atomic_write(tdmi_atomic_file *file, const void *bytes, size_t length_bytes,
                             tdm_error *err)
{
    TDMI_TRY(put(file, -1, bytes, length_bytes, err));
    file->n_written += (off_t)length_bytes;
    flush_early(file);
    return TDM_OK;
}

tdm_status tdmi_atomic_write_at(tdmi_atomic_file *file, uint64_t offset, const void *bytes,
                                size_t length_bytes, tdm_error *err)
{
    off_t written = lseek(file->fd, 0, SEEK_CUR);
    if (written < 0 || offset > (uint64_t)written || length_bytes > (uint64_t)written - offset) {
        file->is_broken = true;
        return TDM_FAIL(err, TDM_E_BUG,
                        "cannot overwrite %zu bytes at %llu of %s: only %lld are written",
                        length_bytes, (unsigned long long)offset, file->target, (long long)written);
    }
    return put(file, (off_t)offset, bytes, length_bytes, err);
}

tdm_status tdmi_atomic_rename(tdmi_atomic_file *file, const char *path, tdm_error *err)
{
    file->target = tdmi_arena_copy(&file->arena, path);
    if (file->target && find_folder(file))
        return TDM_OK;
    file->is_broken = true;
    return TDM_FAIL(err, TDM_E_MEMORY, "cannot write %s: no memory", path);
}

/* As rename, but EEXIST where there is a file of that name. */
static int rename_new(const char *from, const char *to)
{
    const int status = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (status == 0 || (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP))
        return status;
    if (tdmi_file_kind_of(to) == TDMI_FILE_MISSING) /* as good as this file system allows */
        return rename(from, to);
    errno = EEXIST;
    return -1;
}

static tdm_status commit(tdmi_atomic_file *file, bool is_new, tdm_error *err)
{
    TDMI_AT_END(tdmi_atomic_abort_at) tdmi_atomic_file *own = file;
    if (own->is_broken)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot finish %s: an earlier write to it failed",
                        own->target);
    if (fsync(own->fd) != 0 && errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return refused(own, errno, err);
    /* Network file systems report a full disk or quota as late as here. */
    const int is_closed = close(own->fd);
    own->fd = -1;
    if ((is_closed != 0 && errno != EINTR) ||
        (is_new ? rename_new : rename)(own->temporary, own->target) != 0)
        return refused(own, errno, err);
    own->is_made = false;
    return TDM_WRAP(err, tdmi_folder_sync(own->folder, err),
                    "%s is written but may not outlive a power failure", own->target);
}

tdm_status tdmi_atomic_commit(tdmi_atomic_file *file, tdm_error *err)
{
    return commit(file, false, err);
}

void tdmi_atomic_abort(tdmi_atomic_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    if (file->is_made)
        unlink(file->temporary);
    tdmi_arena_release(&file->arena);
    tdmi_free(file);
}

static tdm_status write_whole(const char *path, bool makes_folder, bool is_new, const void *bytes,
                              size_t length_bytes, tdm_error *err)
{
    TDMI_AT_END(tdmi_atomic_abort_at) tdmi_atomic_file *file = NULL;
    TDMI_TRY(open_atomic(path, makes_folder, &file, err));
    TDMI_TRY(tdmi_atomic_write(file, bytes, length_bytes, err));
    return commit(tdmi_take(&file), is_new, err);
}

tdm_status tdmi_file_write(const char *path, const void *bytes, size_t length_bytes, tdm_error *err)
{
    return write_whole(path, true, false, bytes, length_bytes, err);
}

tdm_status tdmi_file_write_in_folder(const char *path, const void *bytes, size_t length_bytes,
                                     tdm_error *err)
{
    return write_whole(path, false, false, bytes, length_bytes, err);
}

tdm_status tdmi_file_write_new(const char *path, const void *bytes, size_t length_bytes,
                               tdm_error *err)
{
    return write_whole(path, true, true, bytes, length_bytes, err);
}
