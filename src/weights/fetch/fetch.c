/*
 * Downloading published weights to TANDEM_HOME/weights.
 *
 *     .FILE.part   the bytes received so far; a later try requests the rest
 *     .FILE.tag    what the server called it, so that the rest is of the same file
 *     .FILE.lock   one process at a time
 *     FILE         whole, compared with what its publisher says, renamed
 *     FILE.json    where it came from and its SHA-256, for the next time
 */
#include "weights/fetch/catalogue.h"
#include "weights/fetch/digest.h"
#include "weights/fetch/transfer.h"
#include "base/file/file.h"
#include "base/sized.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "track/lock.h"
#include "weights/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 4, NOTE_BYTES = 65536 };
/* A server that sends more than so many times what was published sends something else. */
#define MOST_TIMES 2.0

struct fetch {
    const struct tdm_weights_known *known;
    const char *folder, *path, *part, *tag_file, *lock_file, *note, *url;
    int fd;     /* of the part; -1: closed */
    int64_t at; /* bytes that are in it */
    int64_t total;
    tdm_sink sink;
    tdmi_arena *arena;
};

static void report(const struct fetch *fetch, tdm_event_kind kind, const char *text)
{
    const tdm_event event = {.kind = kind, .text = text, .done = fetch->at, .total = fetch->total};
    if (fetch->sink.event)
        fetch->sink.event(fetch->sink.self, &event);
}

static bool is_local(const char *mirror)
{
    return *mirror == '/' || *mirror == '.' || strncmp(mirror, "file:", 5) == 0;
}

static tdm_status set_names(struct fetch *fetch, const char *mirror, tdm_error *err)
{
    tdmi_arena *arena = fetch->arena;
    const char *file = fetch->known->file;
    TDMI_TRY(tdmi_catalogue_folder(arena, &fetch->folder, err));
    if (mirror && is_local(mirror))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "a mirror is a web server's folder, http://… or https://…; found %s (a "
                        "file on this machine is copied to %s/%s)",
                        mirror, fetch->folder, file);
    const struct {
        const char **name, *before, *after;
    } names[] = {{&fetch->path, "", ""},
                 {&fetch->note, "", ".json"},
                 {&fetch->part, ".", ".part"},
                 {&fetch->tag_file, ".", ".tag"},
                 {&fetch->lock_file, ".", ".lock"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        *names[i].name = tdmi_arena_printf(arena, "%s/%s%s%s", fetch->folder, names[i].before, file,
                                           names[i].after);
        TDMI_CHECK_MEMORY(*names[i].name, err);
    }
    const char *from = mirror && *mirror ? mirror : fetch->known->folder;
    fetch->url =
        tdmi_arena_printf(arena, "%s%s%s", from, tdmi_ends_with(from, "/") ? "" : "/", file);
    TDMI_CHECK_MEMORY(fetch->url, err);
    return tdmi_folder_make(fetch->folder, err);
}

/* ---- what is remembered of a file --------------------------------------------------------- */

/* The SHA-256 that an earlier fetch wrote down; "" when there is none. */
static void remembered(const struct fetch *fetch, char sha256[65])
{
    size_t n = 0;
    tdm_error err;
    TDMI_AT_END(tdmi_free_at) void *text = NULL;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    sha256[0] = '\0';
    if (tdmi_file_kind_of(fetch->note) == TDMI_FILE_REGULAR &&
        tdmi_file_read(fetch->note, NOTE_BYTES, &text, &n, &err) == TDM_OK &&
        tdm_json_read(text, n, fetch->note, &document, &err) == TDM_OK)
        snprintf(sha256, 65, "%s",
                 tdm_json_as_string(tdm_json_member(tdm_json_root(document), "sha256"), ""));
}

static tdm_status remember(const struct fetch *fetch, const struct tdm_weights_fetched *fetched,
                           tdm_error *err)
{
    const char *text = NULL;
    size_t n = 0;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(2);
    tdm_json_object_begin(json, NULL);
    tdm_json_integer(json, "format_version", 1);
    tdm_json_string(json, "name", fetch->known->name);
    tdm_json_string(json, "origin", fetch->known->origin);
    tdm_json_string(json, "licence", fetch->known->licence);
    tdm_json_string(json, "url", fetch->url);
    tdm_json_integer(json, "bytes", fetched->bytes);
    tdm_json_string(json, "sha256", fetched->sha256);
    tdm_json_string(json, "published", *fetch->known->hash ? fetch->known->hash : NULL);
    tdm_json_object_end(json);
    TDMI_TRY(tdm_json_finish(json, &text, &n, err));
    return tdmi_file_write(fetch->note, text, n, err);
}

/* ---- comparing ---------------------------------------------------------------------------- */

/* With what the publisher says, else with what was remembered. */
static tdm_status compare(const struct fetch *fetch, const char *path,
                          struct tdm_weights_fetched *fetched, tdm_error *err)
{
    struct tdmi_digest digest;
    const char *hash = fetch->known->hash;
    char before[65];
    TDMI_TRY(tdmi_digest_file(path, &digest, err));
    memcpy(fetched->sha256, digest.sha256, sizeof fetched->sha256);
    fetched->bytes = digest.bytes;
    remembered(fetch, before);
    fetched->is_new = *hash == '\0' && *before == '\0';
    fetched->is_published = *hash != '\0';
    if (*hash && !tdmi_digest_is(&digest, hash))
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "%s is not the published file: its publisher says %s, its SHA-256 is %s and its MD5 %s",
            path, hash, digest.sha256, digest.md5);
    if (*before && strcmp(before, digest.sha256) != 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s is not the file that was fetched: its SHA-256 was %s and is %s; remove "
                        "it and %s to take this one",
                        path, before, digest.sha256, fetch->note);
    return TDM_OK;
}

/* ---- transferring ------------------------------------------------------------------------- */

static int64_t most_bytes(const struct fetch *fetch)
{
    return (int64_t)(MOST_TIMES * 1e6 * fetch->known->megabytes);
}

static tdm_status too_large(const struct fetch *fetch, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_INPUT,
                    "the server sends more than %lld bytes, twice what was published (%.1f MB): it "
                    "is another file",
                    (long long)most_bytes(fetch), fetch->known->megabytes);
}

static tdm_status on_begin(void *self, int64_t from, int64_t total, const char *tag, tdm_error *err)
{
    struct fetch *fetch = self;
    fetch->total = total > 0 ? total : 0;
    if (total > most_bytes(fetch))
        return too_large(fetch, err);
    if (from != fetch->at && ftruncate(fetch->fd, 0) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot empty %s: %s", fetch->part, strerror(errno));
    if (from != fetch->at)
        fetch->at = 0;
    if (*tag)
        return tdmi_file_write(fetch->tag_file, tag, strlen(tag), err);
    (void)unlink(fetch->tag_file);
    return TDM_OK;
}

static tdm_status on_bytes(void *self, const void *bytes, size_t length_bytes, tdm_error *err)
{
    struct fetch *fetch = self;
    if (fetch->at + (int64_t)length_bytes > most_bytes(fetch))
        return too_large(fetch, err);
    for (size_t done = 0; done < length_bytes;) {
        ssize_t n = pwrite(fetch->fd, (const char *)bytes + done, length_bytes - done,
                           (off_t)(fetch->at + (int64_t)done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write %s: %s", fetch->part, strerror(errno));
        done += (size_t)n;
    }
    fetch->at += (int64_t)length_bytes;
    report(fetch, TDM_EVENT_PROGRESS, NULL);
    return TDM_OK;
}

static tdm_status open_part(struct fetch *fetch, char tag[256], tdm_error *err)
{
    struct stat facts;
    size_t n = 0;
    tdm_error unread;
    TDMI_AT_END(tdmi_free_at) void *text = NULL;
    fetch->fd = open(fetch->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fetch->fd < 0 || fstat(fetch->fd, &facts) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write %s: %s", fetch->part, strerror(errno));
    fetch->at = facts.st_size;
    tag[0] = '\0';
    if (tdmi_file_kind_of(fetch->tag_file) == TDMI_FILE_REGULAR &&
        tdmi_file_read(fetch->tag_file, 255, &text, &n, &unread) == TDM_OK)
        snprintf(tag, 256, "%s", (char *)text);
    /* The rest of an unnamed file, with no hash to compare the whole with, could be another's. */
    if (*tag || *fetch->known->hash)
        return TDM_OK;
    fetch->at = 0;
    if (facts.st_size > 0 && ftruncate(fetch->fd, 0) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write %s: %s", fetch->part, strerror(errno));
    return TDM_OK;
}

static void wait_tenths(int tenths)
{
    const struct timespec tenth = {.tv_nsec = 100000000};
    for (int i = 0; i < tenths && !tdm_stop_is_requested(); i++)
        (void)nanosleep(&tenth, NULL);
}

static void close_part(struct fetch **fetch)
{
    if ((*fetch)->fd >= 0)
        (void)close((*fetch)->fd);
    (*fetch)->fd = -1;
}

static tdm_status transfer_once(struct fetch *fetch, enum tdmi_transfer_end *end, tdm_error *err)
{
    char tag[256];
    TDMI_AT_END(close_part) struct fetch *opened = fetch;
    TDMI_TRY(open_part(opened, tag, err));
    const struct tdmi_transfer transfer = {.url = fetch->url,
                                           .from = fetch->at,
                                           .tag = tag,
                                           .self = fetch,
                                           .begin = on_begin,
                                           .bytes = on_bytes};
    *end = tdmi_transfer_run(&transfer, err);
    if (*end == TDMI_TRANSFER_REFUSED && transfer.from > 0 && ftruncate(fetch->fd, 0) == 0) {
        fetch->at = 0; /* no rest is to be had: of the whole file, then */
        *end = TDMI_TRANSFER_BROKE;
    }
    if (*end == TDMI_TRANSFER_DONE && fsync(fetch->fd) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot write %s: %s", fetch->part, strerror(errno));
    return TDM_OK;
}

static tdm_status transfer(struct fetch *fetch, tdm_error *err)
{
    enum tdmi_transfer_end end = TDMI_TRANSFER_REFUSED;
    tdm_error own = {0};
    tdm_error *why = err ? err : &own; /* its code is needed */
    for (int try = 0; try < TRIES; try++) {
        int64_t before = fetch->at;
        TDMI_TRY(transfer_once(fetch, &end, why));
        if (end == TDMI_TRANSFER_DONE)
            return TDM_OK;
        if (end == TDMI_TRANSFER_ENDED || end == TDMI_TRANSFER_REFUSED)
            break;
        if (fetch->at > before) /* it moves */
            try = 0;
        if (try + 1 < TRIES)
            wait_tenths(5 << try);
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request");
    }
    return why->code == TDM_OK ? TDM_E_SYSTEM : why->code;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static tdm_status download(struct fetch *fetch, struct tdm_weights_fetched *fetched, tdm_error *err)
{
    tdm_status status = transfer(fetch, err);
    if (status != TDM_OK && fetch->at == 0)
        (void)unlink(fetch->part);
    TDM_TRY(status, err,
            "fetching %s failed%s; by hand: put the file at %s, or name another place with "
            "--mirror",
            fetch->url, fetch->at > 0 ? " (what has come is kept)" : "", fetch->path);
    status = compare(fetch, fetch->part, fetched, err);
    if (status != TDM_OK && status != TDM_E_INPUT)
        return TDM_WRAP(err, status, "comparing what %s gave", fetch->url);
    if (status != TDM_OK)
        (void)unlink(fetch->part);
    else if (rename(fetch->part, fetch->path) != 0)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot rename %s: %s", fetch->part, strerror(errno));
    (void)unlink(fetch->tag_file);
    TDM_TRY(status, err, "%s gave another file, which was removed", fetch->url);
    return tdmi_folder_sync(fetch->folder, err);
}

static tdm_status fetch_locked(struct fetch *fetch, struct tdm_weights_fetched *fetched,
                               tdm_error *err)
{
    fetched->was_here = tdmi_file_kind_of(fetch->path) != TDMI_FILE_MISSING;
    snprintf(fetched->path, sizeof fetched->path, "%s", fetch->path);
    report(fetch, TDM_EVENT_PHASE_BEGIN, "fetching");
    const tdm_status status = fetched->was_here ? compare(fetch, fetch->path, fetched, err)
                                                : download(fetch, fetched, err);
    report(fetch, TDM_EVENT_PHASE_END, NULL);
    const bool is_remembered = tdmi_file_kind_of(fetch->note) != TDMI_FILE_MISSING;
    if (status == TDM_OK && !(fetched->was_here && is_remembered))
        return remember(fetch, fetched, err);
    return status;
}

tdm_status tdm_weights_fetch(const char *name, const char *mirror, tdm_sink sink,
                             struct tdm_weights_fetched *fetched, tdm_error *err)
{
    TDMI_RESULT(tdm_weights_fetched, fetched, err);
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    struct fetch fetch = {.fd = -1, .sink = sink, .arena = &arena};
    TDMI_AT_END(tdmi_lock_remove_at) tdmi_lock *lock = NULL;
    TDMI_TRY(tdmi_catalogue_find(name, &fetch.known, err));
    TDMI_TRY(set_names(&fetch, mirror, err));
    TDM_TRY(tdmi_lock_take(fetch.lock_file, &lock, err), err, "fetching %s", name);
    return fetch_locked(&fetch, fetched, err);
}
