/*
 * Opening a key reads the index of each of its files, 16 bytes a row; rows stay on disk until they
 * are read. The page cache is the only cache: it is shared by processes and shrinks by
 * itself.
 */
#include "features/store.h"

#include "base/system/env.h"
#include "base/file/file.h"
#include "features/inside.h"
#include "tandem/log.h"
#include "tandem/event.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tdm_status find_root(tdmi_store *store, const char *folder, tdm_error *err)
{
    if (folder != NULL) {
        store->root = tdmi_arena_copy(&store->arena, folder);
    } else {
        const char *home = tdmi_env_home(&store->arena);
        if (home == NULL)
            return TDM_FAIL(err, TDM_E_SYSTEM,
                            "there is no folder to keep features in: none of TANDEM_HOME, "
                            "XDG_CACHE_HOME and HOME is set");
        store->root = tdmi_path_join(&store->arena, home, "features");
    }
    TDMI_CHECK_MEMORY(store->root, err);
    return TDM_OK;
}

/* The opened files, until room for all rows is known. */
struct opened {
    struct tdmi_store_file **files;
    size_t n, n_kept; /* kept: now the table's */
    int64_t n_rows;
};

/* Remove a file that cannot be read; err has the reason. */
static bool drop(const char *path, const tdm_error *err)
{
    if (unlink(path) != 0 && errno != ENOENT)
        return false;
    char why[TDM_ERROR_TEXT_BYTES];
    snprintf(why, sizeof why, "%s", err && err->n_frames > 0 ? tdm_error_sentence(err, 0) : path);
    tdmi_store_drop_remedy(why);
    tdm_log(TDM_LOG_WARNING, "stored features are removed, and are computed again: %s", why);
    return true;
}

static tdm_status open_files(tdmi_store *store, struct opened *opened, tdmi_arena *arena,
                             tdm_error *err)
{
    struct tdmi_folder_entry *entries = NULL;
    size_t n = 0;
    TDMI_TRY(tdmi_folder_list(store->key.folder, arena, &entries, &n, err));
    opened->files = tdmi_arena_alloc(arena, n, sizeof(struct tdmi_store_file *));
    TDMI_CHECK_MEMORY(opened->files, err);
    for (size_t i = 0; i < n; i++) {
        if (!tdmi_store_is_rows_name(entries[i].name))
            continue;
        const char *path = tdmi_path_join(arena, store->key.folder, entries[i].name);
        TDMI_CHECK_MEMORY(path, err);
        tdm_status status =
            tdmi_store_file_open(path, &store->form, &opened->files[opened->n], err);
        if (status == TDM_E_INPUT && store->drops_damaged && drop(path, err))
            continue;
        if (status == TDM_E_SYSTEM && tdmi_file_kind_of(path) == TDMI_FILE_MISSING)
            continue; /* another process has removed it since */
        TDMI_TRY(status);
        opened->n_rows += opened->files[opened->n++]->n_rows;
    }
    return TDM_OK;
}

static void close_files(struct opened *opened)
{
    for (size_t i = opened->n_kept; i < opened->n; i++)
        tdmi_store_file_close(opened->files[i]);
}

static tdm_status read_indexes(tdmi_store *store, tdm_error *err)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(close_files) struct opened opened = {0};
    TDMI_TRY(open_files(store, &opened, &arena, err));
    TDMI_TRY(tdmi_store_table_reserve(&store->table, opened.n_rows, err));
    while (opened.n_kept < opened.n)
        TDMI_TRY(tdmi_store_table_add(&store->table, opened.files[opened.n_kept++], err));
    return TDM_OK;
}

static tdm_status open_store(tdmi_store *store, const struct tdmi_store_options *options,
                             tdm_error *err)
{
    const uint16_t one = 1;
    if (*(const uint8_t *)&one != 1)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "stores of features are little-endian, and this machine is not");
    if (options->width < 1 || options->width > TDMI_STORE_MAX_WIDTH)
        return TDM_FAIL(err, TDM_E_BUG, "rows have from 1 to %d floats, not %d",
                        TDMI_STORE_MAX_WIDTH, options->width);
    TDMI_TRY(find_root(store, options->folder, err));
    TDMI_TRY(tdmi_store_key_open(store->root, options->key, options->drops_damaged, &store->arena,
                                 &store->key, err));
    store->form.width = options->width;
    memcpy(store->form.key, store->key.sha256, sizeof store->form.key);
    tdmi_store_key_mark_used(&store->key);
    return read_indexes(store, err);
}

tdm_status tdmi_store_open(const struct tdmi_store_options *options, tdmi_store **store,
                           tdm_error *err)
{
    TDMI_AT_END(tdmi_store_close_at) tdmi_store *opened = NULL;
    *store = NULL;
    TDMI_TRY(TDMI_NEW(opened, 1, err));
    opened->key.lock = -1;
    opened->limit_bytes = options->limit_bytes;
    opened->drops_damaged = options->drops_damaged;
    TDM_TRY(open_store(opened, options, err), err, "cannot open the store of features");
    *store = tdmi_take(&opened);
    return TDM_OK;
}

/* Now that nothing of the key is open here. */
static void merge_files(tdmi_store *store)
{
    tdm_error err = {0};
    if (tdm_stop_is_requested() || !tdmi_store_key_take_alone(&store->key))
        return;
    if (tdmi_store_merge(store->key.folder, &store->form, &err) != TDM_OK &&
        err.code != TDM_E_STOPPED)
        tdm_log(TDM_LOG_WARNING, "the many files of %s are left as they are: %s", store->key.folder,
                tdm_error_sentence(&err, 0));
}

void tdmi_store_close(tdmi_store *store)
{
    if (store == NULL)
        return;
    tdmi_store_fill_abandon(store);
    const bool has_many = store->table.n_files > TDMI_STORE_MANY_FILES;
    tdmi_store_table_release(&store->table);
    if (store->has_filled && has_many)
        merge_files(store);
    tdmi_store_key_close(&store->key);
    tdmi_arena_release(&store->arena);
    tdmi_free(store);
}

/* ---- reading --------------------------------------------------------------------------------- */

int64_t tdmi_store_find(const tdmi_store *store, struct tdmi_store_row row)
{
    return tdmi_store_table_find(&store->table, row);
}

static tdm_status file_at(const tdmi_store *store, int64_t place,
                          const struct tdmi_store_file **file, int64_t *row, tdm_error *err)
{
    *file = tdmi_store_table_at(&store->table, place, row);
    if (*file == NULL)
        return TDM_FAIL(err, TDM_E_BUG, "%lld is no place of a row in %s", (long long)place,
                        store->key.folder);
    return TDM_OK;
}

tdm_status tdmi_store_read(const tdmi_store *store, int64_t place, float *values, tdm_error *err)
{
    const struct tdmi_store_file *file;
    int64_t row;
    TDMI_TRY(file_at(store, place, &file, &row, err));
    return tdmi_store_file_read(file, row, values, err);
}

tdm_status tdmi_store_discard(const tdmi_store *store, int64_t place, tdm_error *err)
{
    const struct tdmi_store_file *file;
    int64_t row;
    TDMI_TRY(file_at(store, place, &file, &row, err));
    if (unlink(file->path) != 0 && errno != ENOENT)
        return TDM_FAIL(err, TDM_E_SYSTEM, "cannot remove %s, which is damaged: %s", file->path,
                        strerror(errno));
    return TDM_OK;
}

/* ---- queries --------------------------------------------------------------------------------- */

int64_t tdmi_store_rows(const tdmi_store *store)
{
    return atomic_load(&store->table.n_rows);
}

const char *tdmi_store_folder(const tdmi_store *store)
{
    return store->key.folder;
}
