/*
 * Delta tables as a data set: the log lists the Parquet files and the values of their partition
 * columns, and they are read as one table in the order of their paths. Rows that deletion vectors
 * remove are no items, and a class that only they had is none either.
 */
#include "data/delta/log.h"
#include "data/delta/path.h"
#include "data/delta/vector.h"
#include "data/parquet/member.h"
#include "io/storage/storage.h"

#include <inttypes.h>

/* Needed only while opening. */
struct opening {
    struct tdmi_delta_table table;
    struct tdmi_parquet_member *members;
    tdmi_arena arena;
};

static bool delta_can_open(const char *path)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {.block_bytes = 1024};
    const char *table = NULL;
    int64_t version;
    return tdmi_delta_path_version(path, &arena, &table, &version) && tdmi_delta_is_table(table);
}

/* ---- files --------------------------------------------------------------------------------- */

/* Check a local file before it is opened, because the log explains why it may be missing. */
static tdm_status check_file(const struct opening *in, const struct tdmi_delta_file *file,
                             const char *path, tdm_error *err)
{
    struct tdmi_place place;
    if (tdmi_storage_is_uri(path))
        return TDM_OK;
    TDM_TRY(tdmi_storage_look(path, &place, err), err, "cannot look at '%s'", path);
    if (place.kind != TDMI_FILE_REGULAR)
        return TDM_WRAP(err, tdmi_storage_refuse(path, place.kind, "a Parquet file", err),
                        "%s, %s %" PRId64 " makes '%.120s' part of version %" PRId64
                        ": was the table vacuumed or copied in part?",
                        file->origin, tdmi_delta_line_word(file->origin), file->line, file->path,
                        in->table.version);
    if (place.size_bytes != file->size_bytes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' has %" PRId64 " bytes, and %s, %s %" PRId64 " says %" PRId64
                        ": it was cut short or replaced",
                        path, place.size_bytes, file->origin, tdmi_delta_line_word(file->origin),
                        file->line, file->size_bytes);
    return TDM_OK;
}

static tdm_status make_member(struct opening *in, int64_t index, tdm_error *err)
{
    const struct tdmi_delta_table *table = &in->table;
    const struct tdmi_delta_file *file = &table->files[index];
    struct tdmi_parquet_member *member = &in->members[index];
    struct tdmi_parquet_value *values =
        tdmi_arena_alloc(&in->arena, (size_t)table->n_partition_columns, sizeof *values);
    TDMI_CHECK_MEMORY(values, err);
    TDM_TRY(tdmi_delta_path_place(&in->arena, table->path, file->path, table->follows,
                                  &member->path, err),
            err, "%s, %s %" PRId64, file->origin, tdmi_delta_line_word(file->origin), file->line);
    member->name = file->path;
    for (int i = 0; i < table->n_partition_columns; i++)
        values[i] = (struct tdmi_parquet_value){table->partition_columns[i], file->values[i]};
    member->values = values;
    member->n_values = table->n_partition_columns;
    return check_file(in, file, member->path, err);
}

static tdm_status make_members(struct opening *in, tdm_error *err)
{
    if (in->table.n_files == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "version %" PRId64 " of the Delta table '%s' has no files, so no images",
                        in->table.version, in->table.path);
    in->members = tdmi_arena_alloc(&in->arena, (size_t)in->table.n_files, sizeof *in->members);
    TDMI_CHECK_MEMORY(in->members, err);
    for (int64_t i = 0; i < in->table.n_files; i++)
        TDMI_TRY(make_member(in, i, err));
    return TDM_OK;
}

/* ---- deleted rows -------------------------------------------------------------------------- */

static tdm_status keep_rows(struct tdmi_listing *listing, const struct tdmi_delta_table *table,
                            int64_t index, int64_t first, int64_t n_rows, tdm_error *err)
{
    const struct tdmi_delta_file *file = &table->files[index];
    TDMI_AT_END(tdmi_free_at) int64_t *deleted = NULL;
    const int64_t n_deleted = file->deleted.kind == 0 ? 0 : file->deleted.n_rows;
    if (file->deleted.kind != 0)
        TDM_TRY(tdmi_delta_vector_read(table, file, &deleted, err), err,
                "cannot leave out the deleted rows of '%s'", table->path);
    for (int64_t row = 0, next = 0; row < n_rows; row++)
        if (next < n_deleted && deleted[next] == row)
            next++;
        else
            listing->kept[listing->n_kept++] = first + row;
    return TDM_OK;
}

static tdm_status keep_all_rows(struct tdmi_parquet_table *rows, const struct opening *in,
                                tdm_error *err)
{
    struct tdmi_listing *listing = &rows->listing;
    int64_t first = 0;
    TDMI_TRY(TDMI_NEW(listing->kept, listing->n_items, err));
    for (int64_t i = 0; i < in->table.n_files; i++) {
        const struct tdmi_delta_file *file = &in->table.files[i];
        const int64_t n_rows = tdmi_parquet_table_file_rows(rows, in->members[i].path, first);
        if (file->n_rows >= 0 && file->n_rows != n_rows)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the log of '%s' counts %" PRId64 " rows in '%s', which has %" PRId64
                            ", so which are deleted is unknown",
                            in->table.path, file->n_rows, in->members[i].name, n_rows);
        TDMI_TRY(keep_rows(listing, &in->table, i, first, n_rows, err));
        first += n_rows;
    }
    return TDM_OK;
}

/* Keep the classes that still have an item, in their order. */
static tdm_status keep_classes(struct tdmi_listing *listing, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) int *class_of = NULL;
    int n_kept = 0;
    TDMI_TRY(TDMI_NEW(class_of, listing->n_classes, err));
    for (int64_t i = 0; i < listing->n_kept; i++) {
        const int label = listing->items[listing->kept[i]].label;
        if (label >= 0)
            class_of[label] = 1;
    }
    for (int c = 0; c < listing->n_classes; c++)
        if (class_of[c] != 0) {
            class_of[c] = n_kept;
            listing->classes[n_kept++] = listing->classes[c];
        }
    listing->n_classes = n_kept;
    for (int64_t i = 0; i < listing->n_kept; i++) {
        struct tdmi_item *item = &listing->items[listing->kept[i]];
        item->label = item->label < 0 ? -1 : class_of[item->label];
    }
    return TDM_OK;
}

/* Keep the groups that still have an item. */
static tdm_status keep_groups(struct tdmi_parquet_table *rows, tdm_error *err)
{
    const struct tdmi_listing *listing = &rows->listing;
    int64_t n = tdmi_parquet_table_n_groups(rows), n_kept = 0, item = 0, *starts;
    TDMI_TRY(TDMI_NEW(starts, n + 1, err));
    for (int64_t g = 0; g < n; g++) {
        int64_t end = tdmi_parquet_table_group_first(rows, g + 1), first = item;
        while (item < listing->n_kept && listing->kept[item] < end)
            item++;
        if (item > first)
            starts[n_kept++] = tdmi_parquet_table_group_first(rows, g);
    }
    starts[n_kept] = listing->n_items;
    rows->group_starts = starts;
    rows->n_kept_groups = n_kept;
    return TDM_OK;
}

static tdm_status leave_out_deleted(struct tdmi_parquet_table *rows, const struct opening *in,
                                    tdm_error *err)
{
    bool has_deleted = false;
    for (int64_t i = 0; i < in->table.n_files; i++)
        has_deleted = has_deleted || in->table.files[i].deleted.kind != 0;
    if (!has_deleted)
        return TDM_OK;
    TDMI_TRY(keep_all_rows(rows, in, err));
    TDMI_TRY(keep_classes(&rows->listing, err));
    return keep_groups(rows, err);
}

/* ---- opening ------------------------------------------------------------------------------- */

static void opening_release(struct opening *in)
{
    tdmi_delta_table_release(&in->table);
    tdmi_arena_release(&in->arena);
}

static tdm_status delta_open(const char *path, const struct tdm_source_options *options, void *self,
                             tdm_error *err)
{
    TDMI_AT_END(opening_release) struct opening in = {0};
    const char *table = NULL;
    int64_t version;
    TDMI_CHECK_MEMORY(tdmi_delta_path_version(path, &in.arena, &table, &version), err);
    /* Storage takes what follows file:// as it is, Arrow undoes its escapes: plain names agree. */
    table = tdmi_storage_local(table);
    TDMI_TRY(tdmi_delta_log_read(table, version, &in.table, err));
    in.table.follows = options->follow;
    TDMI_TRY(make_members(&in, err));
    TDMI_TRY(tdmi_parquet_table_open(path, in.members, in.table.n_files, options, self, err));
    return leave_out_deleted(self, &in, err);
}

const struct tdmi_source_table tdmi_source_delta = {
    .name = "delta",
    .summary = "a Delta table (or a version of it, as in pets@v3) with a column of images",
    .state_bytes = sizeof(struct tdmi_parquet_table),
    .is_prepared = true,
    .can_open = delta_can_open,
    .open = delta_open,
    TDMI_PARQUET_TABLE_ENTRIES,
};
