/*
 * The folder is listed when the cache is opened, and again whenever this process has added a
 * sixteenth of the limit: other processes add too. Use is remembered as the file's time of change.
 * Nothing is synced: a file that a crash cut short fails its checksum and is fetched again.
 */
#include "data/cache/cache_disk.h"

#include "base/bytes.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/system/env.h"
#include "tandem/log.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAME_BYTES = 64, SHOWN_NAME = 48, N_FOLDERS = 256, PROOF_BYTES = 8 };

static const int64_t default_limit = (int64_t)8 << 30;

struct tdmi_disk_cache {
    tdmi_arena arena;
    const char *folder;
    int folder_fd;
    int64_t limit_bytes;
    struct timespec opened; /* what was used since then stays */
    pthread_mutex_t lock;
    /* Under the lock. */
    int64_t used, added; /* bytes: there, and by us since the folder was last listed */
    bool is_full, has_failed;
    uint64_t n_written; /* for temporary names */
};

struct found {
    struct timespec when;
    int64_t size_bytes;
    char name[NAME_BYTES];
};

struct found_list {
    struct found *of;
    size_t n;
    int64_t capacity;
    int64_t bytes;
};

static void name_of(struct tdmi_bytes_key key, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%02x/%016llx%s", (unsigned)(key.number >> 56),
             (unsigned long long)key.number, key.is_content ? "" : ".row");
}

/* Are these the bytes that were put? *n of them without the hash that follows those of a row. */
static bool is_proven(struct tdmi_bytes_key key, const char *bytes, size_t *n)
{
    if (key.is_content)
        return tdmi_xxh64_of(bytes, *n, 0) == key.number;
    if (*n < PROOF_BYTES)
        return false;
    *n -= PROOF_BYTES;
    return tdmi_xxh64_of(bytes, *n, key.number) ==
           tdmi_read_little((const uint8_t *)bytes + *n, PROOF_BYTES);
}

/* ---- room ---------------------------------------------------------------------------------- */

static int compare_times(const struct timespec *a, const struct timespec *b)
{
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static int by_time(const void *a, const void *b)
{
    return compare_times(&((const struct found *)a)->when, &((const struct found *)b)->when);
}

/* List everything below the folder, the temporary files of killed processes too. Without memory the
 * list is cut short: then less is evicted now and the rest another time. */
static void list_files(tdmi_disk_cache *cache, struct found_list *list)
{
    for (int i = 0; i < N_FOLDERS; i++) {
        TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
        char folder[4];
        struct tdmi_folder_entry *entries = NULL;
        size_t n = 0;
        snprintf(folder, sizeof folder, "%02x", (unsigned)i & 255u);
        const char *path = tdmi_path_join(&arena, cache->folder, folder);
        if (path == NULL || tdmi_folder_list(path, &arena, &entries, &n, NULL) != TDM_OK)
            n = 0;
        for (size_t e = 0; e < n && TDMI_GROW(list->of, list->capacity, list->n); e++) {
            struct found *found = &list->of[list->n];
            struct stat status;
            snprintf(found->name, sizeof found->name, "%s/%.*s", folder, SHOWN_NAME,
                     entries[e].name);
            if (fstatat(cache->folder_fd, found->name, &status, 0) != 0 || !S_ISREG(status.st_mode))
                continue;
            found->when = status.st_mtim;
            found->size_bytes = status.st_size;
            list->bytes += status.st_size;
            list->n++;
        }
    }
}

/* Make room for `needed` more bytes: down to nine tenths of the limit, if the old files allow it,
 * so that the next additions are quick. */
static void evict(tdmi_disk_cache *cache, int64_t needed)
{
    struct found_list list = {0};
    list_files(cache, &list);
    if (list.bytes + needed > cache->limit_bytes && list.n > 0) {
        qsort(list.of, list.n, sizeof *list.of, by_time);
        for (size_t i = 0; i < list.n && list.bytes > cache->limit_bytes / 10 * 9; i++) {
            if (compare_times(&list.of[i].when, &cache->opened) >= 0)
                break;
            if (unlinkat(cache->folder_fd, list.of[i].name, 0) == 0 || errno == ENOENT)
                list.bytes -= list.of[i].size_bytes;
        }
    }
    cache->used = list.bytes;
    cache->added = 0;
    tdmi_free(list.of);
}

/* Called with the lock held. */
static bool has_room(tdmi_disk_cache *cache, int64_t bytes)
{
    if (cache->is_full || cache->has_failed)
        return false;
    if (cache->added > cache->limit_bytes / 16 || cache->used + bytes > cache->limit_bytes)
        evict(cache, bytes);
    const bool is_at_limit = cache->used + bytes > cache->limit_bytes;
    cache->is_full = is_at_limit || bytes > tdmi_disk_spare_bytes(cache->folder);
    if (cache->is_full)
        tdm_log(TDM_LOG_WARNING,
                "no more images are kept in '%s', which has %lld MiB of them: %s; the others are "
                "read from their source each time",
                cache->folder, (long long)(cache->used >> 20),
                is_at_limit ? "that is its limit"
                            : "the rest of its disk, a GiB or a tenth of it, stays free");
    return !cache->is_full;
}

/* ---- open, close ----------------------------------------------------------------------------- */

static tdm_status open_folder(tdmi_disk_cache *cache, const char *folder, tdm_error *err)
{
    if (folder == NULL) {
        const char *home = tdmi_env_home(&cache->arena);
        if (home == NULL)
            return TDM_FAIL(err, TDM_E_SYSTEM,
                            "there is no folder to keep images in: none of TANDEM_HOME, "
                            "XDG_CACHE_HOME and HOME is set");
        cache->folder = tdmi_path_join(&cache->arena, home, "pictures");
    } else {
        cache->folder = tdmi_arena_copy(&cache->arena, folder);
    }
    TDMI_CHECK_MEMORY(cache->folder, err);
    TDM_TRY(tdmi_folder_make(cache->folder, err), err, "cannot keep images in '%s'", cache->folder);
    cache->folder_fd = open(cache->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cache->folder_fd < 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot open the folder '%s': %s", cache->folder,
                        strerror(errno));
    return TDM_OK;
}

tdm_status tdmi_disk_cache_open(const char *folder, int64_t limit_bytes, tdmi_disk_cache **cache,
                                tdm_error *err)
{
    TDMI_AT_END(tdmi_disk_cache_close_at) tdmi_disk_cache *opened = NULL;
    *cache = NULL;
    TDMI_TRY(TDMI_NEW(opened, 1, err));
    opened->folder_fd = -1;
    opened->limit_bytes = limit_bytes > 0 ? limit_bytes : default_limit;
    clock_gettime(CLOCK_REALTIME_COARSE, &opened->opened); /* the clock of file systems */
    pthread_mutex_init(&opened->lock, NULL);
    TDMI_TRY(open_folder(opened, folder, err));
    evict(opened, 0);
    *cache = tdmi_take(&opened);
    return TDM_OK;
}

void tdmi_disk_cache_close(tdmi_disk_cache *cache)
{
    if (cache == NULL)
        return;
    pthread_mutex_destroy(&cache->lock);
    if (cache->folder_fd >= 0)
        close(cache->folder_fd);
    tdmi_arena_release(&cache->arena);
    tdmi_free(cache);
}

const char *tdmi_disk_cache_folder(const tdmi_disk_cache *cache)
{
    return cache->folder;
}

/* ---- use ----------------------------------------------------------------------------------- */

static bool read_whole(int fd, char *bytes, size_t length_bytes)
{
    for (size_t at = 0; at < length_bytes;) {
        ssize_t n = read(fd, bytes + at, length_bytes - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

bool tdmi_disk_cache_get(tdmi_disk_cache *cache, struct tdmi_bytes_key key, tdmi_text *bytes)
{
    char name[NAME_BYTES];
    struct stat status;
    name_of(key, name);
    int fd = openat(cache->folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    tdmi_text_clear(bytes);
    bool is_good = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    char *room = is_good ? tdmi_text_room(bytes, (size_t)status.st_size) : NULL;
    is_good = room != NULL && read_whole(fd, room, (size_t)status.st_size);
    size_t length_bytes = is_good ? (size_t)status.st_size : 0;
    if (is_good && !is_proven(key, room, &length_bytes)) {
        is_good = false;
        unlinkat(cache->folder_fd, name, 0);
    } else if (is_good && compare_times(&status.st_mtim, &cache->opened) < 0) {
        (void)futimens(fd, NULL); /* marks it as used; a disk that refuses only forgets sooner */
    }
    close(fd);
    if (!is_good) {
        tdmi_text_clear(bytes);
        return false;
    }
    bytes->length_bytes = length_bytes;
    room[length_bytes] = '\0';
    return true;
}

static bool write_whole(int fd, const char *bytes, size_t length_bytes)
{
    for (size_t at = 0; at < length_bytes;) {
        ssize_t n = write(fd, bytes + at, length_bytes - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool write_entry(tdmi_disk_cache *cache, struct tdmi_bytes_key key, uint64_t number,
                        const tdmi_text *bytes)
{
    char name[NAME_BYTES], temporary[64];
    uint8_t proof[PROOF_BYTES];
    name_of(key, name);
    snprintf(temporary, sizeof temporary, "%.2s/.%ld.%llu", name, (long)getpid(),
             (unsigned long long)number);
    char folder[3] = {name[0], name[1], '\0'};
    if (mkdirat(cache->folder_fd, folder, 0777) != 0 && errno != EEXIST)
        return false;
    int fd = openat(cache->folder_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool is_whole = write_whole(fd, tdmi_text_string(bytes), bytes->length_bytes);
    if (is_whole && !key.is_content) {
        tdmi_write_little(proof,
                          tdmi_xxh64_of(tdmi_text_string(bytes), bytes->length_bytes, key.number),
                          PROOF_BYTES);
        is_whole = write_whole(fd, (const char *)proof, sizeof proof);
    }
    is_whole = close(fd) == 0 && is_whole;
    if (is_whole && renameat(cache->folder_fd, temporary, cache->folder_fd, name) == 0)
        return true;
    int why = errno;
    unlinkat(cache->folder_fd, temporary, 0);
    errno = why;
    return false;
}

void tdmi_disk_cache_put(tdmi_disk_cache *cache, struct tdmi_bytes_key key, const tdmi_text *bytes)
{
    int64_t length = (int64_t)bytes->length_bytes + (key.is_content ? 0 : PROOF_BYTES);
    if (key.is_content &&
        tdmi_xxh64_of(tdmi_text_string(bytes), bytes->length_bytes, 0) != key.number)
        return;
    pthread_mutex_lock(&cache->lock);
    bool may_write = has_room(cache, length);
    uint64_t number = cache->n_written;
    if (may_write) {
        cache->n_written++;
        cache->used += length;
        cache->added += length;
    }
    pthread_mutex_unlock(&cache->lock);
    if (!may_write || write_entry(cache, key, number, bytes))
        return;

    const char *why = strerror(errno);
    pthread_mutex_lock(&cache->lock);
    bool is_first = !cache->has_failed;
    cache->has_failed = true;
    pthread_mutex_unlock(&cache->lock);
    if (is_first)
        tdm_log(TDM_LOG_WARNING, "images are no longer kept in '%s': %s", cache->folder, why);
}
