/*
 * A lock is valid only while its file still has its name: removing a key removes its lock file
 * last, and a process that waited for it then holds a lock that no other process will see. So the
 * name is looked up after each lock, and opening starts again where it names another file.
 */
#include "features/inside.h"

#include "base/file/file.h"
#include "base/text/text.h"
#include "tandem/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t max_text_bytes = (size_t)16 << 20;

/* ---- the lock -------------------------------------------------------------------------------- */

static bool is_still_named(int descriptor, const char *path)
{
    struct stat opened, named;
    return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

int tdmi_store_lock_now(int descriptor, int how)
{
    int result;
    do
        result = flock(descriptor, how);
    while (result != 0 && errno == EINTR);
    return result;
}

static bool has_no_locks(int reason)
{
    return reason == ENOLCK || reason == ENOSYS || reason == EOPNOTSUPP || reason == EINVAL;
}

/* Remove the temporary files of processes that are gone; requires the exclusive lock. */
static tdm_status sweep(const char *folder, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    TDMI_TRY(tdmi_folder_list(folder, &arena, &entries, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (entries[i].name[0] != '.' || !tdmi_ends_with(entries[i].name, ".tmp"))
            continue;
        const char *path = tdmi_path_join(&arena, folder, entries[i].name);
        TDMI_CHECK_MEMORY(path, err);
        (void)unlink(path); /* a file that stays only takes space */
    }
    return TDM_OK;
}

static bool is_for_reading_only(int reason)
{
    return reason == EROFS || reason == EACCES || reason == EPERM;
}

/* A read-only file can still be locked shared, which protects the key from removal. */
static void take_as_it_is(struct tdmi_store_key *key)
{
    key->is_read_only = true;
    key->lock = open(key->lock_path, O_RDONLY | O_CLOEXEC);
    if (key->lock >= 0)
        (void)tdmi_store_lock_now(key->lock, LOCK_SH);
}

/* Try once. TDM_OK with the lock still -1 and not read-only: the folder was removed meanwhile. */
static tdm_status try_to_lock(struct tdmi_store_key *key, tdm_error *err)
{
    tdm_status status = TDM_OK;
    TDMI_TRY(tdmi_folder_make(key->folder, err));
    int lock = open(key->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0 && errno == ENOENT)
        return TDM_OK;
    const int reason = lock < 0 ? errno : 0;
    if (is_for_reading_only(reason) && tdmi_file_kind_of(key->text_path) == TDMI_FILE_REGULAR) {
        take_as_it_is(key);
        return TDM_OK;
    }
    if (lock < 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make the lock file %s: %s", key->lock_path,
                        strerror(reason));
    const bool is_alone = tdmi_store_lock_now(lock, LOCK_EX | LOCK_NB) == 0;
    if (is_alone && is_still_named(lock, key->lock_path))
        status = sweep(key->folder, err);
    if (status == TDM_OK && tdmi_store_lock_now(lock, LOCK_SH) != 0 && !has_no_locks(errno))
        status = TDM_FAIL(err, TDM_E_SYSTEM, "cannot lock %s: %s", key->lock_path, strerror(errno));
    if (status == TDM_OK && is_still_named(lock, key->lock_path))
        key->lock = lock;
    else
        close(lock);
    return status;
}

int tdmi_store_lock_idle(const char *lock_path)
{
    int lock = open(lock_path, O_RDWR | O_CLOEXEC);
    if (lock < 0)
        return -1;
    if (tdmi_store_lock_now(lock, LOCK_EX | LOCK_NB) == 0 && is_still_named(lock, lock_path))
        return lock;
    close(lock);
    return -1;
}

bool tdmi_store_key_take_alone(const struct tdmi_store_key *key)
{
    return tdmi_store_lock_now(key->lock, LOCK_EX | LOCK_NB) == 0 &&
           is_still_named(key->lock, key->lock_path);
}

void tdmi_store_key_mark_used(const struct tdmi_store_key *key)
{
    (void)futimens(key->lock, NULL); /* on failure the key is only evicted sooner */
}

/* ---- the text -------------------------------------------------------------------------------- */

/* format_version precedes the caller's key, so the file is one JSON object. */
static tdm_status compare_text(const struct tdmi_store_key *key, const char *text, bool mends_text,
                               tdmi_arena *arena, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *found = NULL;
    size_t n_found = 0;
    const char *path = key->text_path;
    const char *expected = tdmi_arena_printf(arena, "{\"format_version\":1,\"key\":%s}\n", text);
    TDMI_CHECK_MEMORY(expected, err);
    if (tdmi_file_kind_of(path) == TDMI_FILE_MISSING)
        return tdmi_file_write(path, expected, strlen(expected), err);
    tdm_status status = tdmi_file_read(path, max_text_bytes, &found, &n_found, err);
    if (status == TDM_OK && (n_found != strlen(expected) || memcmp(found, expected, n_found) != 0))
        status = TDM_FAIL(err, TDM_E_INPUT,
                          "%s is the key of other rows than requested, though its folder has "
                          "the hash of these: it was changed or put there by hand; remove the "
                          "folder, and its rows are computed again",
                          path);
    if (status != TDM_E_INPUT || !mends_text)
        return status;
    if (err)
        *err = (tdm_error){0};
    TDM_TRY(tdmi_file_write(path, expected, strlen(expected), err), err, "mending the key");
    tdm_log(TDM_LOG_WARNING,
            "%s was damaged, and is written again; stored features say themselves "
            "whether they are of it",
            path);
    return TDM_OK;
}

/* ---- open, close, remove --------------------------------------------------------------------- */

tdm_status tdmi_store_key_open(const char *root, const char *text, bool mends_text,
                               tdmi_arena *arena, struct tdmi_store_key *key, tdm_error *err)
{
    tdmi_sha256 state;
    char hex[65];
    *key = (struct tdmi_store_key){.lock = -1};
    tdmi_sha256_init(&state);
    tdmi_sha256_add(&state, text, strlen(text));
    tdmi_sha256_result(&state, key->sha256);
    tdmi_sha256_hex(key->sha256, hex);
    snprintf(key->name, sizeof key->name, "%.*s", TDMI_STORE_KEY_DIGITS, hex);
    key->folder = tdmi_path_join(arena, root, key->name);
    TDMI_CHECK_MEMORY(key->folder, err);
    key->lock_path = tdmi_path_join(arena, key->folder, TDMI_STORE_LOCK);
    TDMI_CHECK_MEMORY(key->lock_path, err);
    key->text_path = tdmi_path_join(arena, key->folder, TDMI_STORE_TEXT);
    TDMI_CHECK_MEMORY(key->text_path, err);

    const bool is_new = tdmi_file_kind_of(key->folder) == TDMI_FILE_MISSING;
    for (int attempt = 0; key->lock < 0 && !key->is_read_only; attempt++) {
        if (attempt == 100)
            return TDM_FAIL(err, TDM_E_SYSTEM, "%s is made and removed by others all the time",
                            key->folder);
        TDMI_TRY(try_to_lock(key, err));
    }
    TDMI_TRY(compare_text(key, text, mends_text, arena, err));
    /* The folder must be durable before its files are. */
    return is_new ? tdmi_folder_sync(root, err) : TDM_OK;
}

void tdmi_store_key_close(struct tdmi_store_key *key)
{
    if (key->lock >= 0)
        close(key->lock);
    key->lock = -1;
}

bool tdmi_store_is_key_name(const char *name)
{
    return strlen(name) == TDMI_STORE_KEY_DIGITS &&
           strspn(name, "0123456789abcdef") == TDMI_STORE_KEY_DIGITS;
}

static void remove_in(const char *folder, const char *name)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    const char *path = tdmi_path_join(&arena, folder, name);
    if (path != NULL)
        (void)unlink(path);
}

/* Remove rows first, then their text, the lock last: whenever this is interrupted, the rest is
 * still a key. */
void tdmi_store_key_remove(const char *folder)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    if (tdmi_folder_list(folder, &arena, &entries, &n, NULL) != TDM_OK)
        n = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(entries[i].name, TDMI_STORE_LOCK) != 0 &&
            strcmp(entries[i].name, TDMI_STORE_TEXT) != 0)
            remove_in(folder, entries[i].name);
    remove_in(folder, TDMI_STORE_TEXT);
    remove_in(folder, TDMI_STORE_LOCK);
    (void)rmdir(folder);
}
