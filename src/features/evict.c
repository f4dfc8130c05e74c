/*
 * Keys are locked one after another until they hold enough bytes, and only then removed: a fill
 * that cannot fit removes nothing. Counted are the sizes of files and the bytes that fills have
 * reserved and not yet written. One process counts at a time, so that no room is reserved twice.
 */

#include "base/file/file.h"
#include "features/inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t default_limit = (int64_t)32 << 30;

struct key_found {
    const char *folder, *lock_path, *name;
    int64_t size_bytes, reserved_bytes;
    struct timespec used;
    int lock; /* -1: not held */
};

struct keys_found {
    struct key_found *of;
    size_t n;
    int64_t size_bytes, reserved_bytes;
};

/* ---- listing --------------------------------------------------------------------------- */

/* A folder that vanishes meanwhile counts as empty. */
static tdm_status look_at_key(struct key_found *key, tdmi_arena *arena, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena names = {0};
    struct tdmi_folder_entry *entries = NULL;
    struct stat facts;
    size_t n = 0;
    tdm_status status = tdmi_folder_list(key->folder, &names, &entries, &n, err);
    if (status != TDM_E_INPUT)
        TDMI_TRY(status);
    for (size_t i = 0; i < n; i++) {
        const char *path = tdmi_path_join(&names, key->folder, entries[i].name);
        TDMI_CHECK_MEMORY(path, err);
        if (tdmi_store_is_reservation_name(entries[i].name))
            key->reserved_bytes += tdmi_store_reserved_bytes(path);
        else if (lstat(path, &facts) == 0 && S_ISREG(facts.st_mode))
            key->size_bytes += facts.st_size;
    }
    key->lock_path = tdmi_path_join(arena, key->folder, TDMI_STORE_LOCK);
    TDMI_CHECK_MEMORY(key->lock_path, err);
    if (stat(key->lock_path, &facts) == 0)
        key->used = facts.st_mtim;
    return TDM_OK;
}

static tdm_status look_through(const char *root, tdmi_arena *arena, struct keys_found *keys,
                               tdm_error *err)
{
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    TDMI_TRY(tdmi_folder_list(root, arena, &entries, &n, err));
    keys->of = tdmi_arena_alloc(arena, n, sizeof *keys->of);
    TDMI_CHECK_MEMORY(keys->of, err);
    for (size_t i = 0; i < n; i++) {
        if (entries[i].kind != TDMI_FILE_FOLDER || !tdmi_store_is_key_name(entries[i].name))
            continue;
        struct key_found *key = &keys->of[keys->n++];
        *key = (struct key_found){.name = entries[i].name, .lock = -1};
        key->folder = tdmi_path_join(arena, root, key->name);
        TDMI_CHECK_MEMORY(key->folder, err);
        TDMI_TRY(look_at_key(key, arena, err));
        keys->size_bytes += key->size_bytes;
        keys->reserved_bytes += key->reserved_bytes;
    }
    return TDM_OK;
}

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct key_found *)a)->used,
                          *y = &((const struct key_found *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* ---- room ------------------------------------------------------------------------------------ */

static int64_t lock_enough(struct keys_found *keys, const char *own, int64_t needed)
{
    int64_t locked = 0;
    for (size_t i = 0; i < keys->n && locked < needed; i++) {
        struct key_found *key = &keys->of[i];
        if (strcmp(key->name, own) == 0)
            continue;
        key->lock = tdmi_store_lock_idle(key->lock_path);
        if (key->lock >= 0)
            locked += key->size_bytes;
    }
    return locked;
}

static void let_go(struct keys_found *keys, bool is_removed)
{
    for (size_t i = 0; i < keys->n; i++) {
        if (keys->of[i].lock < 0)
            continue;
        if (is_removed)
            tdmi_store_key_remove(keys->of[i].folder);
        close(keys->of[i].lock);
    }
}

static double gib(int64_t bytes)
{
    return (double)bytes / 0x1p30;
}

static tdm_status too_little(const tdmi_store *store, int64_t bytes, const struct keys_found *keys,
                             int64_t limit, int64_t free_bytes, int64_t idle, tdm_error *err)
{
    const int64_t taken = keys->size_bytes + keys->reserved_bytes - idle;
    if (taken + bytes > limit)
        return TDM_FAIL(
            err, TDM_E_SYSTEM,
            "%lld bytes of rows (%.2f GiB) do not fit %s: its limit is %lld bytes "
            "(%.2f GiB), and %lld of them are taken by rows of this key and of keys "
            "that are in use, or promised to them; wait for the others, set TANDEM_HOME to a "
            "folder on another disk, or train with --features none",
            (long long)bytes, gib(bytes), store->root, (long long)limit, gib(limit),
            (long long)taken);
    return TDM_FAIL(err, TDM_E_SYSTEM,
                    "%lld bytes of rows (%.2f GiB) do not fit the disk of %s: %lld bytes (%.2f "
                    "GiB) are free for them, and %lld more in keys that nobody uses; free some, "
                    "set TANDEM_HOME to a folder on another disk, or train with --features none",
                    (long long)bytes, gib(bytes), store->root, (long long)free_bytes,
                    gib(free_bytes), (long long)idle);
}

static int64_t limit_of(const tdmi_store *store, const struct keys_found *keys, int64_t free_bytes)
{
    if (store->limit_bytes > 0)
        return store->limit_bytes;
    if (free_bytes > INT64_MAX - keys->size_bytes)
        return default_limit;
    /* Half of what was free before any row was here: growing must not lower it. */
    const int64_t half = (free_bytes + keys->size_bytes) / 2;
    return half < default_limit ? half : default_limit;
}

static tdm_status make_room(const tdmi_store *store, int64_t bytes, tdmi_arena *arena,
                            tdm_error *err)
{
    struct keys_found keys = {0};
    TDMI_TRY(look_through(store->root, arena, &keys, err));
    const int64_t free_bytes = tdmi_disk_spare_bytes(store->root);
    const int64_t limit = limit_of(store, &keys, free_bytes);
    int64_t left = free_bytes;
    if (free_bytes < INT64_MAX) /* bytes reserved by others count as written */
        left = free_bytes > keys.reserved_bytes ? free_bytes - keys.reserved_bytes : 0;
    int64_t needed = keys.size_bytes + keys.reserved_bytes + bytes - limit;
    if (bytes > left && bytes - left > needed)
        needed = bytes - left;
    if (needed <= 0)
        return TDM_OK;
    qsort(keys.of, keys.n, sizeof *keys.of, by_use);
    const int64_t idle = lock_enough(&keys, store->key.name, needed);
    let_go(&keys, idle >= needed);
    return idle < needed ? too_little(store, bytes, &keys, limit, left, idle, err) : TDM_OK;
}

tdm_status tdmi_store_make_room(const tdmi_store *store, int64_t bytes,
                                struct tdmi_store_reservation *reservation, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(tdmi_store_counting_end) int lock = tdmi_store_counting_begin(store->root);
    (void)lock; /* held until here returns */
    TDMI_TRY(make_room(store, bytes, &arena, err));
    tdmi_store_reserve(reservation, store->key.folder, bytes);
    return TDM_OK;
}
