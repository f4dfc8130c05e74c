/*
 * Filling: one file after another, each streamed to disk as rows come and found once it is there.
 * How often? A kill costs what was not committed, and each file costs a descriptor and a wait for
 * the disk. A 32nd of the fill bounds the loss by its size and the files of a fill by a hundred or
 * so.
 */
#include "base/clock.h"
#include "base/file/file.h"
#include "features/inside.h"

enum { SHARE = 32 };
static const int64_t commit_bytes = (int64_t)64 << 20, commit_ns = (int64_t)20 * 1000000000;

static int64_t bytes_of(const tdmi_store *store, int64_t n_rows)
{
    return tdmi_store_file_bytes(store->form.width, store->fill.precision, n_rows);
}

static tdm_status reserve(tdmi_store *store, int64_t n_rows, tdm_error *err)
{
    if (n_rows > 0 && store->key.is_read_only)
        return TDM_FAIL(err, TDM_E_SYSTEM, "it can be read and not written");
    if (n_rows > 0)
        TDMI_TRY(
            tdmi_store_make_room(store, bytes_of(store, n_rows), &store->fill.reservation, err));
    return tdmi_store_table_reserve(&store->table, tdmi_store_rows(store) + n_rows, err);
}

tdm_status tdmi_store_fill_begin(tdmi_store *store, int64_t n_rows, enum tdmi_dtype precision,
                                 tdm_error *err)
{
    const int64_t most = INT64_MAX / 8 / ((int64_t)store->form.width * 4 + 16);
    if (precision != TDMI_DTYPE_F32 && precision != TDMI_DTYPE_F16)
        return TDM_FAIL(err, TDM_E_BUG, "rows are stored in F32 or F16, not in %s",
                        tdmi_dtype_name(precision));
    if (store->fill.writer != NULL)
        return TDM_FAIL(err, TDM_E_BUG, "a fill of %s begins before the last one was committed",
                        store->key.folder);
    if (n_rows < 0 || n_rows > most)
        return TDM_FAIL(err, TDM_E_BUG, "a fill of %lld rows: between 0 and %lld can be promised",
                        (long long)n_rows, (long long)most);
    tdmi_store_reservation_release(&store->fill.reservation);
    store->fill = (struct tdmi_store_fill){
        .precision = precision, .n_reserved = n_rows, .begun_ns = tdmi_clock_ns()};
    const tdm_status status = reserve(store, n_rows, err);
    store->fill.is_open = status == TDM_OK;
    if (status != TDM_OK)
        tdmi_store_reservation_release(&store->fill.reservation);
    return TDM_WRAP(err, status, "cannot store %lld rows of %d floats in %s", (long long)n_rows,
                    store->form.width, store->key.folder);
}

/* Other processes fill the disk too, so the remaining space is checked again for every file. */
static tdm_status next_file(tdmi_store *store, tdm_error *err)
{
    struct tdmi_store_fill *fill = &store->fill;
    const int64_t needed = bytes_of(store, fill->n_reserved - fill->n_added);
    const int64_t free_bytes = tdmi_disk_spare_bytes(store->key.folder);
    if (needed > free_bytes)
        return TDM_FAIL(err, TDM_E_SYSTEM,
                        "%lld bytes of rows are still to come, and the disk has %lld left for "
                        "them; free some and run it again; stored rows stay",
                        (long long)needed, (long long)free_bytes);
    fill->file_begun_ns = tdmi_clock_ns();
    return tdmi_store_writer_new(store->key.folder, &store->form, fill->precision, &fill->writer,
                                 err);
}

static bool is_time(const tdmi_store *store)
{
    const struct tdmi_store_fill *fill = &store->fill;
    const int64_t now = tdmi_clock_ns();
    const int64_t share_bytes = fill->committed_bytes / SHARE,
                  share_ns = (now - fill->begun_ns) / SHARE;
    return bytes_of(store, tdmi_store_writer_rows(fill->writer)) >=
               (share_bytes > commit_bytes ? share_bytes : commit_bytes) ||
           now - fill->file_begun_ns >= (share_ns > commit_ns ? share_ns : commit_ns);
}

/* The file is renamed, durable, and then opened like any other. */
static tdm_status commit(tdmi_store *store, tdm_error *err)
{
    struct tdmi_store_fill *fill = &store->fill;
    TDMI_AT_END(tdmi_free_at) char *path = NULL;
    struct tdmi_store_file *file = NULL;
    TDMI_TRY(tdmi_store_writer_commit(tdmi_take(&fill->writer), &path, err));
    store->has_filled = true;
    TDMI_TRY(tdmi_store_file_open(path, &store->form, &file, err));
    fill->committed_bytes += file->size_bytes;
    TDMI_TRY(tdmi_store_table_add(&store->table, file, err));
    tdmi_store_reservation_lower(&fill->reservation,
                                 bytes_of(store, fill->n_reserved - fill->n_added));
    tdmi_store_key_mark_used(&store->key);
    return TDM_OK;
}

static tdm_status end_when_failed(tdmi_store *store, tdm_status status, tdm_error *err)
{
    if (status != TDM_OK)
        tdmi_store_fill_abandon(store);
    return TDM_WRAP(err, status, "cannot store rows in %s", store->key.folder);
}

static tdm_status add_row(tdmi_store *store, struct tdmi_store_row row, const float *values,
                          tdm_error *err)
{
    struct tdmi_store_fill *fill = &store->fill;
    if (fill->n_added == fill->n_reserved)
        return TDM_FAIL(err, TDM_E_BUG, "more rows are added than the %lld that were promised",
                        (long long)fill->n_reserved);
    if (tdmi_store_find(store, row) < 0) {
        if (fill->writer == NULL)
            TDMI_TRY(next_file(store, err));
        TDMI_TRY(tdmi_store_writer_add(fill->writer, row, values, err));
    }
    fill->n_added++;
    return fill->writer != NULL && is_time(store) ? commit(store, err) : TDM_OK;
}

tdm_status tdmi_store_fill_add(tdmi_store *store, struct tdmi_store_row row, const float *values,
                               tdm_error *err)
{
    if (!store->fill.is_open)
        return TDM_FAIL(err, TDM_E_BUG, "rows are added to %s, and no fill was begun",
                        store->key.folder);
    return end_when_failed(store, add_row(store, row, values, err), err);
}

tdm_status tdmi_store_fill_commit(tdmi_store *store, tdm_error *err)
{
    if (!store->fill.is_open)
        return TDM_FAIL(err, TDM_E_BUG, "rows of %s are committed, and no fill was begun",
                        store->key.folder);
    if (store->fill.writer == NULL)
        return TDM_OK;
    return end_when_failed(store, commit(store, err), err);
}

void tdmi_store_fill_abandon(tdmi_store *store)
{
    tdmi_store_writer_abort(store->fill.writer);
    store->fill.writer = NULL;
    store->fill.is_open = false;
    tdmi_store_reservation_release(&store->fill.reservation);
}
