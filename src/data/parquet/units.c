/*
 * Units: rows that are loaded together and kept in the cache. A page with several rows, or a whole
 * row group decoded by Arrow; either way an array of values and the memory they point into.
 */
#include "data/parquet/member.h"

#include "io/arrow/cell.h"
#include <string.h>

struct unit {
    int64_t first_row; /* in the table */
    struct tdmi_page page, dictionary;
    struct tdmi_page_places places; /* with spans: in place of the values */
    struct ArrowArray *batches;     /* page.values point into these instead */
    int64_t n_batches, capacity;
};

void tdmi_parquet_drop_unit(void *self, void *value)
{
    struct unit *unit = value;
    (void)self;
    if (unit == NULL)
        return;
    for (int64_t b = 0; b < unit->n_batches; b++)
        tdmi_arrow_array_release(&unit->batches[b]);
    tdmi_free(unit->batches);
    tdmi_places_release(&unit->places);
    tdmi_page_release(&unit->page);
    tdmi_page_release(&unit->dictionary);
    tdmi_free(unit);
}

static void release_unit_at(struct unit **unit)
{
    tdmi_parquet_drop_unit(NULL, *unit);
}

/* ---- row groups through Arrow ------------------------------------------------------------ */

/* The image in one row of a stream; bytes NULL where it, or the struct it is in, is null. */
static tdm_status value_of_row(const struct tdmi_parquet_columns *columns,
                               struct tdmi_arrow_cell row, struct tdmi_page_value *value,
                               tdm_error *err)
{
    struct tdmi_arrow_cell cell;
    const uint8_t *bytes;
    int64_t n_bytes;
    *value = (struct tdmi_page_value){0};
    bool is_there = tdmi_arrow_cell_field(row, columns->image, &cell);
    if (is_there && tdmi_arrow_cell_is_null(cell))
        return TDM_OK;
    if (is_there && columns->image_field != NULL) {
        is_there = tdmi_arrow_cell_field(cell, columns->image_field, &cell);
        if (is_there && tdmi_arrow_cell_is_null(cell))
            return TDM_OK;
    }
    if (!is_there || !tdmi_arrow_cell_bytes(cell, &bytes, &n_bytes) || n_bytes > INT32_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "column '%s' holds no bytes there", columns->image_read);
    *value = (struct tdmi_page_value){bytes, (int32_t)n_bytes};
    return TDM_OK;
}

/* Keep the batches of a row group and find its values in them. */
static tdm_status drain(const struct tdmi_parquet_table *table,
                        const struct tdmi_parquet_file *file, struct ArrowArrayStream *stream,
                        const struct ArrowSchema *schema, struct unit *unit, tdm_error *err)
{
    for (int64_t n_rows = 0;;) {
        TDMI_TRY(TDMI_MAKE_ROOM(unit->batches, unit->capacity, unit->n_batches, err));
        struct ArrowArray *batch = &unit->batches[unit->n_batches];
        TDMI_TRY(tdmi_arrow_stream_next(stream, file->path, batch, err));
        const bool is_end = batch->release == NULL;
        unit->n_batches += !is_end;
        if (is_end && n_rows == unit->page.n_values)
            return TDM_OK;
        if (is_end || batch->length > unit->page.n_values - n_rows)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "a row group of '%s' has %lld rows; it is said to have %d", file->path,
                            (long long)(n_rows + batch->length), unit->page.n_values);
        for (int64_t r = 0; r < batch->length; r++, n_rows++) {
            struct tdmi_page_value *value = &unit->page.values[n_rows];
            TDM_TRY(value_of_row(&table->columns, tdmi_arrow_cell_at(schema, batch, r), value, err),
                    err, "cannot read row %lld of '%s'",
                    (long long)(unit->first_row - file->first_row + n_rows), file->path);
            unit->page.held_bytes += value->n_bytes;
        }
    }
}

static tdm_status load_row_group(const struct tdmi_parquet_table *table,
                                 const struct tdmi_parquet_file *file,
                                 const struct tdmi_parquet_group *group, struct unit *unit,
                                 tdm_error *err)
{
    TDMI_AT_END(tdmi_arrow_stream_release) struct ArrowArrayStream stream = {0};
    TDMI_AT_END(tdmi_arrow_schema_release) struct ArrowSchema schema = {0};
    if (group->n_rows > INT32_MAX)
        return TDM_FAIL(err, TDM_E_INPUT, "a row group of '%s' has %lld rows; at most %d are read",
                        file->path, (long long)group->n_rows, INT32_MAX);
    TDMI_TRY(TDMI_NEW(unit->page.values, group->n_rows, err));
    unit->page.n_values = (int32_t)group->n_rows;
    unit->page.held_bytes = group->n_rows * (int64_t)sizeof *unit->page.values;
    TDMI_TRY(tdmi_arrow_file_stream(file->arrow, &table->columns.image_read, 1,
                                    (int)(group - file->groups), 1, &stream, err));
    if (stream.get_schema(&stream, &schema) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read the schema of '%s'", file->path);
    return drain(table, file, &stream, &schema, unit, err);
}

/* ---- loading -------------------------------------------------------------------------- */

static tdm_status load_page(const struct tdmi_parquet_file *file,
                            const struct tdmi_parquet_group *group, int64_t page, struct unit *unit,
                            tdm_error *err)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *own = NULL;
    const tdmi_storage_file *bytes;
    const struct tdmi_pages *pages = &group->pages;
    TDMI_TRY(tdmi_parquet_bytes(file, &own, &bytes, err));
    TDMI_TRY(tdmi_places_find(pages, bytes, page, &unit->places, err));
    if (unit->places.spans != NULL)
        return TDM_OK;
    return tdmi_pages_blame(
        pages, bytes, page,
        tdmi_pages_load(pages, bytes, page, &unit->page, &unit->dictionary, err), err);
}

tdm_status tdmi_parquet_load_unit(void *self, int64_t index, void **value, int64_t *n_bytes,
                                  tdm_error *err)
{
    TDMI_AT_END(release_unit_at) struct unit *unit = NULL;
    const struct tdmi_parquet_table *table = self;
    struct tdmi_parquet_file *file;
    struct tdmi_parquet_group *group;
    tdmi_parquet_group_of_unit(table, index, &file, &group);
    TDMI_TRY(TDMI_NEW(unit, 1, err));
    unit->first_row = group->first_row;
    if (group->pages.n_pages > 0) {
        int64_t page = index - group->first_unit;
        unit->first_row += tdmi_pages_first_row(&group->pages, page);
        TDMI_TRY(load_page(file, group, page, unit, err));
    } else {
        TDMI_TRY(load_row_group(table, file, group, unit, err));
    }
    *n_bytes =
        unit->page.held_bytes + unit->dictionary.held_bytes + tdmi_places_held_bytes(&unit->places);
    *value = tdmi_take(&unit);
    return TDM_OK;
}

void tdmi_parquet_unit_find(const void *value, int64_t row, struct tdmi_page_value *found,
                            const struct tdmi_body **body, struct tdmi_page_span *span)
{
    const struct unit *unit = value;
    *body = unit->places.spans == NULL ? NULL : &unit->places.body;
    if (*body != NULL)
        *span = unit->places.spans[row - unit->first_row];
    else
        *found = unit->page.values[row - unit->first_row];
}
