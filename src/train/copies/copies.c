/* The thread that copies checkpoints. Its caller opens the files of one; it hashes and puts them.
 */
#include "train/copies/copies.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/system/signals.h"
#include "io/storage/storage.h"
#include "tandem/log.h"
#include "train/copies/manifest.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20 };

struct tdmi_copies {
    const char *url, *run;
    pthread_t thread;
    bool has_thread;
    /* The thread's own. */
    tdmi_manifest last;   /* as it stands at url */
    bool is_last_ours;    /* this process put its files there */
    bool warns_of_remove; /* has warned that old files stay */
    pthread_mutex_t lock;
    pthread_cond_t has_changed;
    /* Under the lock. */
    tdmi_manifest waiting; /* no files: none waits */
    bool is_copying, is_ending;
    tdm_status status; /* of the newest copy */
    tdm_error error;
};

/* ---- one copy -------------------------------------------------------------------------------- */

struct open_file {
    const char *name;
    int fd;
};

static tdm_status read_open_file(void *self, int64_t offset, void *bytes, size_t length_bytes,
                                 tdm_error *err)
{
    const struct open_file *file = self;
    for (size_t done = 0; done < length_bytes;) {
        const ssize_t n = pread(file->fd, (char *)bytes + done, length_bytes - done,
                                (off_t)(offset + (int64_t)done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot read %s of the run: %s", file->name,
                            n < 0 ? strerror(errno) : "it has become shorter");
        done += (size_t)n;
    }
    return TDM_OK;
}

static tdm_status hash_file(struct tdmi_manifest_file *file, char *piece, tdm_error *err)
{
    struct open_file from = {file->name, file->fd};
    tdmi_xxh64 state;
    tdmi_xxh64_init(&state, 0);
    for (int64_t at = 0; at < file->n_bytes;) {
        const int64_t left = file->n_bytes - at;
        const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        TDMI_TRY(read_open_file(&from, at, piece, n, err));
        tdmi_xxh64_add(&state, piece, n);
        at += (int64_t)n;
    }
    file->hash = tdmi_xxh64_result(&state);
    return TDM_OK;
}

static tdm_status put_file(const struct tdmi_copies *copies, const struct tdmi_manifest_file *file,
                           tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    struct open_file from = {file->name, file->fd};
    const char *path = tdmi_manifest_place(file, copies->url, &scratch);
    TDMI_CHECK_MEMORY(path, err);
    return tdmi_storage_put(path, &(struct tdmi_byte_source){&from, read_open_file}, file->n_bytes,
                            err);
}

/* ".0123456789abcdef-last.safetensors.PID.tmp": a key that a killed process was writing. */
static bool is_unfinished(const char *name, tdmi_arena *scratch)
{
    static const char ending[] = ".tmp";
    char *key =
        name[0] == '.' && tdmi_ends_with(name, ending) ? tdmi_arena_copy(scratch, name + 1) : NULL;
    if (!key)
        return false;
    key[strlen(key) - strlen(ending)] = '\0';
    char *pid = strrchr(key, '.');
    if (pid)
        *pid = '\0';
    return pid && tdmi_manifest_is_key(key);
}

/* Is it a key that neither manifest names, or was left by a killed process? */
static bool is_left_over(const tdmi_manifest *now, const tdmi_manifest *before, const char *name)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    if (is_unfinished(name, &scratch))
        return true;
    bool is_named = !tdmi_manifest_is_key(name);
    for (int m = 0; m < 2; m++) {
        const tdmi_manifest *manifest = m == 0 ? now : before;
        for (int64_t i = 0; i < manifest->n && !is_named; i++) {
            const char *key = tdmi_manifest_key(&manifest->files[i], &scratch);
            is_named = !key || strcmp(key, name) == 0;
        }
    }
    return !is_named;
}

static tdm_status remove_old(const struct tdmi_copies *copies, const tdmi_manifest *now,
                             tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    struct tdmi_place_entry *entries = NULL;
    size_t n = 0;
    TDMI_TRY(tdmi_storage_list(copies->url, false, &scratch, &entries, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (entries[i].kind != TDMI_FILE_REGULAR ||
            !is_left_over(now, &copies->last, entries[i].name))
            continue;
        const char *path = tdmi_path_join(&scratch, copies->url, entries[i].name);
        TDMI_CHECK_MEMORY(path, err);
        TDMI_TRY(tdmi_storage_remove(path, err));
    }
    return TDM_OK;
}

static tdm_status copy(struct tdmi_copies *copies, tdmi_manifest *manifest, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) char *piece = NULL;
    tdm_error why = {0};
    TDMI_TRY(TDMI_NEW(piece, PIECE_BYTES, err));
    for (int64_t i = 0; i < manifest->n; i++) {
        struct tdmi_manifest_file *file = &manifest->files[i];
        TDMI_TRY(hash_file(file, piece, err));
        if (!copies->is_last_ours || !tdmi_manifest_has(&copies->last, file))
            TDMI_TRY(put_file(copies, file, err));
        close(file->fd);
        file->fd = -1;
    }
    TDMI_TRY(tdmi_manifest_write(manifest, copies->url, err));
    if (remove_old(copies, manifest, &why) != TDM_OK && !copies->warns_of_remove) {
        copies->warns_of_remove = true;
        tdm_log(TDM_LOG_WARNING, "old copies stay in %s: %s", copies->url,
                tdm_error_sentence(&why, 0));
    }
    tdmi_manifest_release(&copies->last);
    copies->last = *manifest;
    copies->is_last_ours = true;
    *manifest = (tdmi_manifest){0};
    return TDM_OK;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* One warning for a row of failures. */
static void report(const struct tdmi_copies *copies, tdm_status status, const tdm_error *err,
                   int64_t step)
{
    char text[TDM_ERROR_TEXT_BYTES];
    if (status == TDM_OK && copies->status != TDM_OK)
        tdm_log(TDM_LOG_WARNING, "checkpoints are copied to %s again: step %lld", copies->url,
                (long long)step);
    if (status == TDM_OK || copies->status != TDM_OK)
        return;
    tdm_error_line(err, text, sizeof text);
    tdm_log(TDM_LOG_WARNING,
            "the checkpoint of step %lld is not copied to %s, and the next one is tried: %s",
            (long long)step, copies->url, text);
}

static void *work(void *self)
{
    struct tdmi_copies *copies = self;
    pthread_mutex_lock(&copies->lock);
    for (;;) {
        while (copies->waiting.n == 0 && !copies->is_ending)
            pthread_cond_wait(&copies->has_changed, &copies->lock);
        if (copies->waiting.n == 0)
            break;
        tdmi_manifest manifest = copies->waiting;
        tdm_error err = {0};
        copies->waiting = (tdmi_manifest){0};
        copies->is_copying = true;
        pthread_mutex_unlock(&copies->lock);
        const int64_t step = manifest.step;
        const tdm_status status = copy(copies, &manifest, &err);
        tdmi_manifest_release(&manifest);
        pthread_mutex_lock(&copies->lock);
        report(copies, status, &err, step);
        copies->is_copying = false;
        copies->status = status;
        copies->error = err;
        pthread_cond_broadcast(&copies->has_changed);
    }
    pthread_mutex_unlock(&copies->lock);
    return NULL;
}

static tdm_status start_thread(struct tdmi_copies *copies, tdm_error *err)
{
    sigset_t before;
    tdmi_signals_block(&before);
    const int problem = pthread_create(&copies->thread, NULL, work, copies);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot start the thread that copies checkpoints: %s",
                        strerror(problem));
    copies->has_thread = true;
    return TDM_OK;
}

/* ---- open, use, close ------------------------------------------------------------------------ */

/* Refuse the place of another run. */
static tdm_status check_place(const struct tdmi_copies *copies, const char *started, tdm_error *err)
{
    struct tdmi_place place, own;
    TDMI_TRY(tdmi_storage_look(copies->url, &place, err));
    TDMI_TRY(tdmi_storage_look(copies->run, &own, err));
    if (place.kind != TDMI_FILE_MISSING && place.kind != TDMI_FILE_FOLDER)
        return tdmi_storage_refuse(copies->url, place.kind, "a folder for copies", err);
    if (own.identity[1] != 0 && memcmp(own.identity, place.identity, sizeof own.identity) == 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' is the run folder itself; another place is accepted", copies->url);
    if (copies->last.text_hash == 0 || (started && strcmp(started, copies->last.started) == 0))
        return TDM_OK;
    if (!started)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "'%s' holds the copies of a run already: --resume with an empty run folder "
                        "continues it; another place is accepted",
                        copies->url);
    return TDM_FAIL(err, TDM_E_USAGE,
                    "'%s' holds the copies of another run, started at %s, and this one was "
                    "started at %s; another place is accepted",
                    copies->url, copies->last.started, started);
}

static tdm_status read_nothing(void *self, int64_t offset, void *bytes, size_t length_bytes,
                               tdm_error *err)
{
    (void)self, (void)offset, (void)bytes, (void)length_bytes, (void)err;
    return TDM_OK;
}

/* A place that refuses is known before training begins. */
static tdm_status try_to_write(const struct tdmi_copies *copies, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    const char *path = tdmi_path_join(&scratch, copies->url, "0000000000000000-try");
    TDMI_CHECK_MEMORY(path, err);
    TDMI_TRY(tdmi_storage_put(path, &(struct tdmi_byte_source){NULL, read_nothing}, 0, err));
    return tdmi_storage_remove(path, err);
}

static tdm_status open_copies(struct tdmi_copies *copies, const char *started, tdm_error *err)
{
    pthread_mutex_init(&copies->lock, NULL);
    pthread_cond_init(&copies->has_changed, NULL);
    TDMI_TRY(tdmi_manifest_read(copies->url, &copies->last, err));
    TDMI_TRY(check_place(copies, started, err));
    TDMI_TRY(try_to_write(copies, err));
    return start_thread(copies, err);
}

tdm_status tdmi_copies_open(const char *url, const char *run, const char *started,
                            tdmi_copies **copies, tdm_error *err)
{
    TDMI_AT_END(tdmi_copies_close_at) tdmi_copies *opened = NULL;
    TDMI_TRY(TDMI_NEW(opened, 1, err));
    opened->url = url;
    opened->run = run;
    TDM_TRY(open_copies(opened, started, err), err, "option --checkpoint-to");
    *copies = tdmi_take(&opened);
    return TDM_OK;
}

static tdm_status take(tdmi_copies *copies, int64_t step, tdm_error *err)
{
    TDMI_AT_END(tdmi_manifest_release) tdmi_manifest manifest = {.step = step};
    TDMI_TRY(tdmi_manifest_open_run(&manifest, copies->run, err));
    pthread_mutex_lock(&copies->lock);
    const tdmi_manifest older = copies->waiting;
    copies->waiting = manifest;
    manifest = older;
    pthread_cond_broadcast(&copies->has_changed);
    pthread_mutex_unlock(&copies->lock);
    return TDM_OK;
}

void tdmi_copies_take(tdmi_copies *copies, int64_t step)
{
    tdm_error err = {0};
    char text[TDM_ERROR_TEXT_BYTES];
    if (take(copies, step, &err) == TDM_OK)
        return;
    tdm_error_line(&err, text, sizeof text);
    tdm_log(TDM_LOG_WARNING, "the checkpoint of step %lld is not copied to %s: %s", (long long)step,
            copies->url, text);
}

tdm_status tdmi_copies_finish(tdmi_copies *copies, int64_t step, tdm_error *err)
{
    TDMI_TRY(take(copies, step, err));
    pthread_mutex_lock(&copies->lock);
    while (copies->waiting.n > 0 || copies->is_copying)
        pthread_cond_wait(&copies->has_changed, &copies->lock);
    const tdm_status status = copies->status;
    if (status != TDM_OK && err)
        *err = copies->error;
    pthread_mutex_unlock(&copies->lock);
    return status;
}

void tdmi_copies_close(tdmi_copies *copies)
{
    if (!copies)
        return;
    pthread_mutex_lock(&copies->lock);
    tdmi_manifest_release(&copies->waiting);
    copies->is_ending = true;
    pthread_cond_broadcast(&copies->has_changed);
    pthread_mutex_unlock(&copies->lock);
    if (copies->has_thread)
        pthread_join(copies->thread, NULL);
    tdmi_manifest_release(&copies->last);
    pthread_cond_destroy(&copies->has_changed);
    pthread_mutex_destroy(&copies->lock);
    tdmi_free(copies);
}
