/* A run comes back from its copies. */
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "io/storage/storage.h"
#include "base/text/text.h"
#include "track/lock.h"
#include "train/copies/copies.h"
#include "train/copies/manifest.h"

#include <string.h>

enum { PIECE_BYTES = 1 << 20 };

/* Is the folder missing, or without a run and anything that fetching did not leave there? */
static tdm_status may_fetch(const char *run, bool *may, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    const enum tdmi_file_kind kind = tdmi_file_kind_of(run);
    *may = kind == TDMI_FILE_MISSING || kind == TDMI_FILE_FOLDER;
    if (kind == TDMI_FILE_FOLDER)
        TDMI_TRY(tdmi_folder_list(run, &scratch, &entries, &n, err));
    for (size_t i = 0; i < n; i++) {
        const char *name = entries[i].name;
        *may = *may && strcmp(name, TDMI_MANIFEST_RECORD) != 0 &&
               (name[0] == '.' || strncmp(name, "lock", 4) == 0 || strcmp(name, "kernels") == 0 ||
                tdmi_manifest_is_known(name));
    }
    return TDM_OK;
}

static tdm_status copy_bytes(const tdmi_storage_file *from, const struct tdmi_manifest_file *file,
                             tdmi_atomic_file *to, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) char *piece = NULL;
    tdmi_xxh64 state;
    TDMI_TRY(TDMI_NEW(piece, PIECE_BYTES, err));
    tdmi_xxh64_init(&state, 0);
    for (int64_t at = 0; at < file->n_bytes;) {
        const int64_t left = file->n_bytes - at;
        const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        TDMI_TRY(tdmi_storage_read(from, at, piece, n, err));
        TDMI_TRY(tdmi_atomic_write(to, piece, n, err));
        tdmi_xxh64_add(&state, piece, n);
        at += (int64_t)n;
    }
    if (tdmi_storage_size(from) != file->n_bytes || tdmi_xxh64_result(&state) != file->hash)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' is damaged: it does not have the size and hash of "
                        "its " TDMI_MANIFEST_NAME,
                        tdmi_storage_path(from));
    return TDM_OK;
}

static tdm_status fetch_file(const char *url, const char *run,
                             const struct tdmi_manifest_file *file, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *from = NULL;
    TDMI_AT_END(tdmi_atomic_abort_at) tdmi_atomic_file *to = NULL;
    const char *path = tdmi_manifest_place(file, url, &scratch);
    const char *target = tdmi_path_join(&scratch, run, file->name);
    TDMI_CHECK_MEMORY(path && target, err);
    TDMI_TRY(tdmi_storage_open(path, &from, err));
    TDMI_TRY(tdmi_atomic_open(target, &to, err));
    TDMI_TRY(copy_bytes(from, file, to, err));
    return tdmi_atomic_commit(tdmi_take(&to), err);
}

/* The record is last: without it the folder holds no run yet, and is fetched again. */
static tdm_status fetch_files(const char *url, const char *run, const tdmi_manifest *manifest,
                              tdm_error *err)
{
    const struct tdmi_manifest_file *record = NULL;
    for (int64_t i = 0; i < manifest->n; i++) {
        const struct tdmi_manifest_file *file = &manifest->files[i];
        if (strcmp(file->name, TDMI_MANIFEST_RECORD) == 0)
            record = file;
        else
            TDMI_TRY(fetch_file(url, run, file, err));
    }
    if (!record)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its " TDMI_MANIFEST_NAME " names no " TDMI_MANIFEST_RECORD);
    return fetch_file(url, run, record, err);
}

/* Files that go missing because a newer state has come are no failure: that one is fetched. */
static tdm_status fetch_newest(const char *url, const char *run, tdmi_manifest *manifest,
                               tdm_error *err)
{
    for (;;) {
        tdm_error why = {0};
        const uint64_t before = manifest->text_hash;
        const tdm_status status = fetch_files(url, run, manifest, &why);
        if (status != TDM_E_INPUT || tdmi_manifest_read(url, manifest, NULL) != TDM_OK ||
            manifest->text_hash == before) {
            if (status != TDM_OK && err)
                *err = why;
            return status;
        }
    }
}

static tdm_status fetch(const char *url, const char *run, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    TDMI_AT_END(tdmi_manifest_release) tdmi_manifest manifest = {0};
    TDMI_AT_END(tdmi_lock_give_at) tdmi_lock *lock = NULL;
    bool may = false;
    TDMI_TRY(may_fetch(run, &may, err));
    if (may)
        TDMI_TRY(tdmi_manifest_read(url, &manifest, err));
    if (manifest.text_hash == 0)
        return TDM_OK;
    const char *path = tdmi_path_join(&scratch, run, "lock");
    TDMI_CHECK_MEMORY(path, err);
    TDMI_TRY(tdmi_folder_make(run, err));
    TDMI_TRY(tdmi_lock_take(path, &lock, err));
    TDMI_TRY(may_fetch(run, &may, err)); /* another process may just have done it */
    return may ? fetch_newest(url, run, &manifest, err) : TDM_OK;
}

tdm_status tdmi_copies_fetch(const char *url, const char *run, tdm_error *err)
{
    return TDM_WRAP(err, fetch(url, run, err), "fetching the run %s from %s", run, url);
}

static tdm_status read_record(const char *url, const struct tdmi_manifest_file *file,
                              tdm_json_document **document, tdm_error *err)
{
    enum { LIMIT_BYTES = 64 << 20 };
    TDMI_AT_END(tdmi_arena_release) tdmi_arena scratch = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    const char *path = tdmi_manifest_place(file, url, &scratch);
    TDMI_CHECK_MEMORY(path, err);
    TDMI_TRY(tdmi_storage_read_file(path, LIMIT_BYTES, &text, err));
    return tdm_json_read(tdmi_text_string(&text), text.length_bytes, path, document, err);
}

tdm_status tdmi_copies_record(const char *url, tdm_json_document **document, tdm_error *err)
{
    TDMI_AT_END(tdmi_manifest_release) tdmi_manifest manifest = {0};
    *document = NULL;
    TDM_TRY(tdmi_manifest_read(url, &manifest, err), err, "reading the copies in %s", url);
    for (int64_t i = 0; i < manifest.n; i++)
        if (strcmp(manifest.files[i].name, TDMI_MANIFEST_RECORD) == 0)
            return TDM_WRAP(err, read_record(url, &manifest.files[i], document, err),
                            "reading the copies in %s", url);
    return TDM_OK;
}
