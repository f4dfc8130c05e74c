/*
 * The kernel's lock decides; the text only names its owner for people. Open-file-description locks
 * are used where there are any: unlike the older ones they also keep out a second opener in this
 * process, and reading the file elsewhere does not drop them.
 *
 * Without locks in the file system, PATH.held is made exclusively (which NFS and Lustre do
 * atomically), says who made it and is removed in the end. The pid and its start time tell a dead
 * owner on this host from a living process that got its number.
 */
#include "track/lock.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/text/json.h"
#include "tandem/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef F_OFD_SETLK
#define SET_LOCK F_OFD_SETLK
#define GET_LOCK F_OFD_GETLK
#else
#define SET_LOCK F_SETLK
#define GET_LOCK F_GETLK
#endif

enum { TEXT_BYTES = 1024, HOST_BYTES = 256 };

struct tdmi_lock {
    tdmi_arena arena;
    const char *path;
    int file;
    bool is_held, is_by_text;
};

struct owner {
    char host[HOST_BYTES];
    int64_t pid;
    char born[32]; /* start of the process in clock ticks; "" where unknown */
    char since[32];
};

/* ---- owners ----------------------------------------------------------------------------- */

static void this_host(char host[HOST_BYTES])
{
    if (gethostname(host, HOST_BYTES - 1) != 0)
        snprintf(host, HOST_BYTES, "localhost");
    host[HOST_BYTES - 1] = '\0';
}

/* Field 22 of /proc/PID/stat; the name in field 2 may hold anything, but its ')' is the last. */
static void birth_of(int64_t pid, char born[32])
{
    char path[64], text[1024];
    born[0] = '\0';
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    TDMI_AT_END(tdmi_close_at) const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at != NULL)
        snprintf(born, 32, "%.*s", (int)strcspn(at + 1, " "), at + 1);
}

static bool write_owner(int file)
{
    char host[HOST_BYTES], born[32], now[21];
    const char *text = NULL;
    size_t n_bytes = 0;
    this_host(host);
    birth_of(getpid(), born);
    tdmi_clock_utc(now);
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "host", host);
    tdm_json_integer(json, "pid", getpid());
    tdm_json_string(json, "born", born);
    tdm_json_string(json, "since", now);
    tdm_json_object_end(json);
    return tdm_json_finish(json, &text, &n_bytes, NULL) == TDM_OK && ftruncate(file, 0) == 0 &&
           pwrite(file, text, n_bytes, 0) == (ssize_t)n_bytes && fsync(file) == 0;
}

static void copy_member(const tdm_json_value *object, const char *key, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", tdm_json_as_string(tdm_json_member(object, key), ""));
}

static bool read_owner(int file, struct owner *owner)
{
    char text[TEXT_BYTES];
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    ssize_t n = pread(file, text, sizeof text, 0);
    *owner = (struct owner){0};
    if (n <= 0 || tdm_json_read(text, (size_t)n, "lock", &document, NULL) != TDM_OK)
        return false;
    const tdm_json_value *root = tdm_json_root(document);
    copy_member(root, "host", owner->host, sizeof owner->host);
    copy_member(root, "born", owner->born, sizeof owner->born);
    copy_member(root, "since", owner->since, sizeof owner->since);
    owner->pid = tdm_json_as_integer(tdm_json_member(root, "pid"), 0);
    return owner->pid > 0;
}

static bool is_dead(const struct owner *owner)
{
    char host[HOST_BYTES], born[32];
    this_host(host);
    if (strcmp(host, owner->host) != 0)
        return false; /* cannot be known from here */
    birth_of(owner->pid, born);
    return access("/proc/self/stat", R_OK) == 0 && strcmp(born, owner->born) != 0;
}

static tdm_status held(const char *path, int file, const char *advice, tdm_error *err)
{
    struct owner owner;
    if (!read_owner(file, &owner))
        return TDM_FAIL(err, TDM_E_SYSTEM, "%s is held by another process; %s", path, advice);
    return TDM_FAIL(err, TDM_E_SYSTEM, "%s is held by process %lld on host %s since %s; %s", path,
                    (long long)owner.pid, owner.host, owner.since, advice);
}

/* ---- taking and giving ------------------------------------------------------------------ */

static tdm_status new_lock(const char *path, const char *ending, tdmi_lock **lock, tdm_error *err)
{
    TDMI_AT_END(tdmi_lock_give_at) tdmi_lock *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->file = -1;
    tdmi_arena_init(&made->arena, 1024);
    made->path = tdmi_arena_printf(&made->arena, "%s%s", path, ending);
    TDMI_CHECK_MEMORY(made->path, err);
    *lock = tdmi_take(&made);
    return TDM_OK;
}

/* Make the lock's file, which must not be there; remove one whose owner is dead. */
static tdm_status make_file(tdmi_lock *lock, tdm_error *err)
{
    struct owner owner;
    for (int attempt = 0; attempt < 3; attempt++) {
        lock->file = open(lock->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (lock->file >= 0)
            return TDM_OK;
        if (errno != EEXIST)
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make the lock file %s: %s", lock->path,
                            strerror(errno));
        TDMI_AT_END(tdmi_close_at) const int other = open(lock->path, O_RDONLY | O_CLOEXEC);
        if (other >= 0 && !(read_owner(other, &owner) && is_dead(&owner)))
            return held(lock->path, other,
                        "wait for it, or remove that file if the process is gone", err);
        (void)unlink(lock->path);
    }
    return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write the lock file %s: %s", lock->path,
                    strerror(EEXIST));
}

tdm_status tdmi_lock_take_by_text(const char *path, tdmi_lock **lock, tdm_error *err)
{
    TDMI_AT_END(tdmi_lock_give_at) tdmi_lock *made = NULL;
    TDMI_TRY(new_lock(path, ".held", &made, err));
    TDMI_TRY(make_file(made, err));
    made->is_by_text = true; /* so that releasing it removes the file */
    if (!write_owner(made->file))
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write the lock file %s: %s", made->path,
                        strerror(errno));
    made->is_held = true;
    *lock = tdmi_take(&made);
    return TDM_OK;
}

/* Is the open file still the one of that name? An owner that left nothing behind removed it. */
static bool is_still_named(int file, const char *path)
{
    struct stat opened, named;
    return fstat(file, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/* One attempt. TDM_OK with the file still -1: the name moved to another file in between. */
static tdm_status try_to_take(tdmi_lock *made, bool *has_locks, tdm_error *err)
{
    *has_locks = true;
    made->file = open(made->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (made->file < 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make the lock file %s: %s", made->path,
                        strerror(errno));
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(made->file, SET_LOCK, &whole) != 0) {
        if (errno == EAGAIN || errno == EACCES)
            return held(made->path, made->file, "wait for it or stop it", err);
        tdm_log(TDM_LOG_WARNING,
                "%s: this file system has no locks (%s); %s.held stands in for one", made->path,
                strerror(errno), made->path);
        *has_locks = false;
        return TDM_OK;
    }
    if (!is_still_named(made->file, made->path)) {
        (void)close(made->file);
        made->file = -1;
        return TDM_OK;
    }
    /* The text is for people: without room for it the lock holds just the same. */
    (void)write_owner(made->file);
    made->is_held = true;
    return TDM_OK;
}

tdm_status tdmi_lock_take(const char *path, tdmi_lock **lock, tdm_error *err)
{
    TDMI_AT_END(tdmi_lock_give_at) tdmi_lock *made = NULL;
    bool has_locks = true;
    TDMI_TRY(new_lock(path, "", &made, err));
    for (int attempt = 0; has_locks && !made->is_held; attempt++) {
        if (attempt == 100)
            return TDM_FAIL(err, TDM_E_SYSTEM, "%s is made and removed by others all the time",
                            path);
        TDMI_TRY(try_to_take(made, &has_locks, err));
    }
    if (!has_locks)
        return tdmi_lock_take_by_text(path, lock, err);
    *lock = tdmi_take(&made);
    return TDM_OK;
}

bool tdmi_lock_is_in_place(const tdmi_lock *lock)
{
    struct stat named;
    if (stat(lock->path, &named) != 0) /* a file system that does not answer says nothing */
        return errno != ENOENT && errno != ENOTDIR;
    return is_still_named(lock->file, lock->path);
}

void tdmi_lock_remove(tdmi_lock *lock)
{
    if (lock != NULL && !lock->is_by_text && lock->is_held &&
        is_still_named(lock->file, lock->path))
        (void)unlink(lock->path);
    tdmi_lock_give(lock);
}

void tdmi_lock_give(tdmi_lock *lock)
{
    if (lock == NULL)
        return;
    if (lock->is_by_text) {
        if (is_still_named(lock->file, lock->path)) /* not another owner's */
            (void)unlink(lock->path);
    } else if (lock->is_held) {
        (void)!ftruncate(lock->file, 0); /* only the text: closing gives the lock back */
    }
    if (lock->file >= 0)
        (void)close(lock->file);
    tdmi_arena_release(&lock->arena);
    tdmi_free(lock);
}

bool tdmi_lock_is_held(const char *path)
{
    char name[4096];
    struct stat status;
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int length = snprintf(name, sizeof name, "%s.held", path);
    if (length > 0 && (size_t)length < sizeof name && stat(name, &status) == 0)
        return true;
    TDMI_AT_END(tdmi_close_at) const int file = open(path, O_RDONLY | O_CLOEXEC);
    return file >= 0 && fcntl(file, GET_LOCK, &range) == 0 && range.l_type != F_UNLCK;
}
