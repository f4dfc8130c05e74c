/*
 * Delta tables as a data set: the log says which Parquet files there are and what their partition
 * columns hold, and they are read as one table in the order of their paths. Rows that deletion
 * vectors take away are no items; a class that only they had is none either.
 */
#include "data/delta/log.h"
#include "data/delta/path.h"
#include "data/delta/vector.h"
#include "data/source/listing.h"
#include "data/parquet/table.h"

#include "base/memory.h"
#include "io/arrow/bridge.h"
#include "io/storage/storage.h"
#include <inttypes.h>
#include <string.h>

struct delta {
    tdmi_parquet_table *rows; /* of all files */
    /* Where rows are deleted; else NULL and everything is as in rows. */
    int64_t *kept; /* item → row */
    int64_t n_kept;
    int *class_of;         /* label of a row → label here */
    int *classes;          /* the other way */
    int64_t *group_starts; /* in items; groups without any are gone */
    int64_t n_groups;
    int n_classes;
};

/* What is only needed while opening. */
struct opening {
    struct tdmi_delta_table table;
    struct tdmi_parquet_member *members;
    tdmi_arena arena;
};

static bool delta_can_open(const char *path)
{
    tdmi_arena arena;
    const char *table = NULL;
    int64_t version;
    tdmi_arena_init(&arena, 1024);
    bool can =
        tdmi_delta_path_version(path, &arena, &table, &version) && tdmi_delta_is_table(table);
    tdmi_arena_release(&arena);
    return can;
}

static tdm_status no_memory(const struct opening *in, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open the Delta table '%s'", in->table.path);
}

/* ---- files --------------------------------------------------------------------------------- */

/* A local file is looked at first, because its absence says more here than to who opens it. */
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
    if (values == NULL)
        return no_memory(in, err);
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
                        "version %" PRId64 " of the Delta table '%s' has no files, so no pictures",
                        in->table.version, in->table.path);
    in->members = tdmi_arena_alloc(&in->arena, (size_t)in->table.n_files, sizeof *in->members);
    if (in->members == NULL)
        return no_memory(in, err);
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < in->table.n_files && status == TDM_OK; i++)
        status = make_member(in, i, err);
    return status;
}

/* ---- deleted rows -------------------------------------------------------------------------- */

static tdm_status keep_rows(struct delta *delta, const struct tdmi_delta_table *table,
                            int64_t index, int64_t first, int64_t n_rows, tdm_error *err)
{
    const struct tdmi_delta_file *file = &table->files[index];
    int64_t *deleted = NULL, n_deleted = file->deleted.kind == 0 ? 0 : file->deleted.n_rows;
    if (file->deleted.kind != 0)
        TDM_TRY(tdmi_delta_vector_read(table, file, &deleted, err), err,
                "cannot leave out the deleted rows of '%s'", table->path);
    for (int64_t row = 0, next = 0; row < n_rows; row++)
        if (next < n_deleted && deleted[next] == row)
            next++;
        else
            delta->kept[delta->n_kept++] = first + row;
    tdmi_free(deleted);
    return TDM_OK;
}

static tdm_status keep_all_rows(struct delta *delta, const struct opening *in, tdm_error *err)
{
    int64_t n_all = tdmi_listing_n_items(delta->rows), first = 0;
    delta->kept = tdmi_alloc((size_t)n_all, sizeof *delta->kept);
    if (delta->kept == NULL)
        return no_memory(in, err);
    for (int64_t i = 0; i < in->table.n_files; i++) {
        const struct tdmi_delta_file *file = &in->table.files[i];
        const int64_t n_rows =
            tdmi_parquet_table_file_rows(delta->rows, in->members[i].path, first);
        if (file->n_rows >= 0 && file->n_rows != n_rows)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "the log of '%s' counts %" PRId64 " rows in '%s', which has %" PRId64
                            ", so the deleted ones cannot be told",
                            in->table.path, file->n_rows, in->members[i].name, n_rows);
        TDM_TRY(keep_rows(delta, &in->table, i, first, n_rows, err), err,
                "cannot leave out deleted rows");
        first += n_rows;
    }
    return TDM_OK;
}

/* Classes that still have an item, in their order. */
static tdm_status keep_classes(struct delta *delta, const struct opening *in, tdm_error *err)
{
    int n = tdmi_listing_n_classes(delta->rows);
    delta->class_of = tdmi_alloc((size_t)n, sizeof *delta->class_of);
    delta->classes = tdmi_alloc((size_t)n, sizeof *delta->classes);
    if (delta->class_of == NULL || delta->classes == NULL)
        return no_memory(in, err);
    for (int64_t i = 0; i < delta->n_kept; i++) {
        int label = tdmi_listing_item(delta->rows, delta->kept[i]).label;
        if (label >= 0)
            delta->class_of[label] = 1;
    }
    for (int c = 0; c < n; c++)
        if (delta->class_of[c] != 0) {
            delta->class_of[c] = delta->n_classes;
            delta->classes[delta->n_classes++] = c;
        }
    return TDM_OK;
}

static tdm_status keep_groups(struct delta *delta, const struct opening *in, tdm_error *err)
{
    int64_t n = tdmi_parquet_table_n_groups(delta->rows), item = 0;
    delta->group_starts = tdmi_alloc((size_t)n + 1, sizeof *delta->group_starts);
    if (delta->group_starts == NULL)
        return no_memory(in, err);
    for (int64_t g = 0; g < n; g++) {
        int64_t end = tdmi_parquet_table_group_first(delta->rows, g + 1), first = item;
        while (item < delta->n_kept && delta->kept[item] < end)
            item++;
        if (item > first)
            delta->group_starts[delta->n_groups++] = first;
    }
    delta->group_starts[delta->n_groups] = delta->n_kept;
    return TDM_OK;
}

static tdm_status leave_out_deleted(struct delta *delta, const struct opening *in, tdm_error *err)
{
    bool has_deleted = false;
    for (int64_t i = 0; i < in->table.n_files; i++)
        has_deleted = has_deleted || in->table.files[i].deleted.kind != 0;
    if (!has_deleted)
        return TDM_OK;
    tdm_status status = keep_all_rows(delta, in, err);
    if (status == TDM_OK)
        status = keep_classes(delta, in, err);
    return status == TDM_OK ? keep_groups(delta, in, err) : status;
}

/* ---- opening ------------------------------------------------------------------------------- */

static void delta_close(void *self)
{
    struct delta *delta = self;
    if (delta == NULL)
        return;
    tdmi_parquet_table_close(delta->rows);
    tdmi_free(delta->kept);
    tdmi_free(delta->class_of);
    tdmi_free(delta->classes);
    tdmi_free(delta->group_starts);
    tdmi_free(delta);
}

static tdm_status open_table(struct delta *delta, struct opening *in, const char *path,
                             const struct tdm_source_options *options, tdm_error *err)
{
    const char *table = NULL;
    int64_t version;
    if (!tdmi_delta_path_version(path, &in->arena, &table, &version))
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open the Delta table '%s'", path);
    /* Storage takes what follows file:// as it is, Arrow undoes its escapes: plain names agree. */
    if (strncmp(table, "file://", 7) == 0)
        table += 7;
    tdm_status status = tdmi_delta_log_read(table, version, &in->table, err);
    in->table.follows = options->follow;
    if (status == TDM_OK)
        status = make_members(in, err);
    if (status == TDM_OK)
        status = tdmi_parquet_table_open(path, in->members, in->table.n_files, options,
                                         &delta->rows, err);
    return status == TDM_OK ? leave_out_deleted(delta, in, err) : status;
}

static tdm_status delta_open(const char *path, const struct tdm_source_options *options,
                             void **self, tdm_error *err)
{
    struct opening in = {0};
    struct delta *delta = tdmi_alloc(1, sizeof *delta);
    *self = NULL;
    if (delta == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open the Delta table '%s'", path);
    tdmi_arena_init(&in.arena, 0);
    tdm_status status = open_table(delta, &in, path, options, err);
    tdmi_delta_table_release(&in.table);
    tdmi_arena_release(&in.arena);
    if (status == TDM_OK)
        *self = delta;
    else
        delta_close(delta);
    return status;
}

/* ---- items --------------------------------------------------------------------------------- */

static int64_t row_of(const struct delta *delta, int64_t index)
{
    return delta->kept == NULL ? index : delta->kept[index];
}

static int delta_n_classes(const void *self)
{
    const struct delta *delta = self;
    return delta->kept == NULL ? tdmi_listing_n_classes(delta->rows) : delta->n_classes;
}

static const char *delta_class_name(const void *self, int index)
{
    const struct delta *delta = self;
    return tdmi_listing_class_name(delta->rows,
                                   delta->kept == NULL ? index : delta->classes[index]);
}

static int64_t delta_n_items(const void *self)
{
    const struct delta *delta = self;
    return delta->kept == NULL ? tdmi_listing_n_items(delta->rows) : delta->n_kept;
}

static struct tdmi_item delta_item(const void *self, int64_t index)
{
    const struct delta *delta = self;
    struct tdmi_item item = tdmi_listing_item(delta->rows, row_of(delta, index));
    if (delta->kept != NULL && item.label >= 0)
        item.label = delta->class_of[item.label];
    return item;
}

static int64_t delta_n_ignored(const void *self)
{
    const struct delta *delta = self;
    return tdmi_listing_n_ignored(delta->rows);
}

static tdm_status delta_read(const void *self, int64_t index, tdmi_text *bytes, tdm_error *err)
{
    const struct delta *delta = self;
    return tdmi_parquet_table_read(delta->rows, row_of(delta, index), bytes, err);
}

static uint64_t delta_hash(const void *self, int64_t index)
{
    const struct delta *delta = self;
    return tdmi_parquet_table_hash(delta->rows, row_of(delta, index));
}

static bool delta_row_name(const void *self, int64_t index, uint64_t *name)
{
    const struct delta *delta = self;
    return tdmi_parquet_table_row_name(delta->rows, row_of(delta, index), name);
}

static bool delta_geometry(const void *self, struct tdmi_preprocess *geometry)
{
    const struct delta *delta = self;
    return tdmi_parquet_table_geometry(delta->rows, geometry);
}

static bool delta_raw_shape(const void *self, struct tdmi_raw_shape *shape)
{
    const struct delta *delta = self;
    return tdmi_parquet_table_raw_shape(delta->rows, shape);
}

static tdm_status delta_read_raw(const void *self, int64_t index, uint8_t *pixels, tdm_error *err)
{
    const struct delta *delta = self;
    return tdmi_parquet_table_read_raw(delta->rows, row_of(delta, index), pixels, err);
}

static const char *delta_row_file(const void *self, int64_t index)
{
    const struct delta *delta = self;
    return tdmi_parquet_table_row_file(delta->rows, row_of(delta, index));
}

static int64_t delta_n_groups(const void *self)
{
    const struct delta *delta = self;
    return delta->kept == NULL ? tdmi_parquet_table_n_groups(delta->rows) : delta->n_groups;
}

static int64_t delta_group_first(const void *self, int64_t group)
{
    const struct delta *delta = self;
    return delta->kept == NULL ? tdmi_parquet_table_group_first(delta->rows, group)
                               : delta->group_starts[group];
}

const struct tdmi_source_table tdmi_source_delta = {
    .name = "delta",
    .summary = "a Delta table (or a version of it, as in pets@v3) with a column of pictures",
    .can_open = delta_can_open,
    .open = delta_open,
    .close = delta_close,
    .n_classes = delta_n_classes,
    .class_name = delta_class_name,
    .n_items = delta_n_items,
    .item = delta_item,
    .n_ignored = delta_n_ignored,
    .read = delta_read,
    .takes_columns = true,
    .hash = delta_hash,
    .row_name = delta_row_name,
    .raw_shape = delta_raw_shape,
    .geometry = delta_geometry,
    .read_raw = delta_read_raw,
    .row_file = delta_row_file,
    .n_groups = delta_n_groups,
    .group_first = delta_group_first,
};
