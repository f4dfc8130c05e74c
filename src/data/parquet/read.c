/* One image of an opened table, as bytes of a file or as raw pixels, and the queries of a source.
 */
#include "data/parquet/member.h"

#include "base/hash/hash.h"
#include "data/parquet/write.h"
#include "io/storage/records.h"
#include <string.h>

enum { LARGEST_SPARK_SIDE = 1 << 15 };

/* ---- where a row is ---------------------------------------------------------------------- */

struct place {
    const struct tdmi_parquet_file *file;
    const struct tdmi_parquet_group *group;
    int64_t unit, page;
    bool is_single; /* a page with this row alone */
};

static struct place place_of(const struct tdmi_parquet_table *table, int64_t row)
{
    struct place place = {.file = tdmi_parquet_file_of_row(table, row)};
    place.group = tdmi_parquet_group_of_row(place.file, row);
    place.unit = place.group->first_unit;
    if (place.group->pages.n_pages == 0)
        return place;
    const struct tdmi_pages *pages = &place.group->pages;
    place.page = tdmi_pages_find(pages, row - place.group->first_row);
    place.unit += place.page;
    place.is_single =
        tdmi_pages_first_row(pages, place.page + 1) - tdmi_pages_first_row(pages, place.page) == 1;
    return place;
}

static tdm_status blame(const struct place *place, int64_t row, tdm_status status, tdm_error *err)
{
    return TDM_WRAP(err, status, "cannot read the image in row %lld of '%s'",
                    (long long)(row - place->file->first_row), place->file->path);
}

/* ---- values ------------------------------------------------------------------------------ */

static size_t raw_bytes(const struct tdmi_raw_shape *shape)
{
    return (size_t)shape->height * (size_t)shape->width * (size_t)shape->channels;
}

/* Where a value goes: it is appended to text, or fills exactly the pixels of the shape. */
struct target {
    tdmi_text *text; /* NULL: pixels */
    uint8_t *pixels;
    const struct tdmi_raw_shape *shape;
};

/* The memory for a value of n_bytes. */
static tdm_status find_room(const struct target *target, int64_t n_bytes, uint8_t **room,
                            tdm_error *err)
{
    const struct tdmi_raw_shape *shape = target->shape;
    *room = target->pixels;
    if (target->text != NULL) {
        *room = (uint8_t *)tdmi_text_room(target->text, (size_t)n_bytes);
        TDMI_CHECK_MEMORY(*room, err);
    } else if ((size_t)n_bytes != raw_bytes(shape)) {
        return TDM_FAIL(err, TDM_E_INPUT, "it has %lld bytes; raw images of %d × %d × %d have %zu",
                        (long long)n_bytes, shape->height, shape->width, shape->channels,
                        raw_bytes(shape));
    }
    return TDM_OK;
}

/* The value in a loaded unit of several rows, or at a place that the unit knows. */
static tdm_status read_from_unit(const void *unit, const struct place *place, int64_t row,
                                 const struct target *target, tdm_error *err)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *own = NULL;
    TDMI_AT_END(tdmi_body_reader_release) struct tdmi_body_reader reader = {0};
    struct tdmi_page_value value;
    struct tdmi_page_span span;
    uint8_t *room = NULL;
    tdmi_parquet_unit_find(unit, row, &value, &reader.body, &span);
    if (reader.body != NULL) {
        if (span.n_bytes < 0)
            return tdmi_pages_fail_null(err);
        TDMI_TRY(find_room(target, span.n_bytes, &room, err));
        TDMI_TRY(tdmi_parquet_bytes(place->file, &own, &reader.file, err));
        return tdmi_body_read(&reader, span.first, room, (size_t)span.n_bytes, err);
    }
    if (value.bytes == NULL)
        return tdmi_pages_fail_null(err);
    TDMI_TRY(find_room(target, value.n_bytes, &room, err));
    memcpy(room, value.bytes, (size_t)value.n_bytes);
    return TDM_OK;
}

static tdm_status read_value(const struct tdmi_parquet_table *table, const struct place *place,
                             int64_t row, const struct target *target, tdm_error *err)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *own = NULL;
    const struct tdmi_pages *pages = &place->group->pages;
    const tdmi_storage_file *bytes;
    const void *unit;
    if (!place->is_single) {
        TDM_TRY(tdmi_group_cache_take(table->cache, place->unit, &unit, err), err,
                "cannot load the rows around it");
        tdm_status status = read_from_unit(unit, place, row, target, err);
        tdmi_group_cache_give(table->cache, place->unit);
        return status;
    }
    TDMI_TRY(tdmi_parquet_bytes(place->file, &own, &bytes, err));
    return target->text != NULL
               ? tdmi_pages_read_single(pages, bytes, place->page, target->text, err)
               : tdmi_pages_read_single_raw(pages, bytes, place->page, target->pixels,
                                            raw_bytes(target->shape), err);
}

static tdm_status read_bytes(const struct tdmi_parquet_table *table, const struct place *place,
                             int64_t row, tdmi_text *text, tdm_error *err)
{
    tdmi_text_clear(text);
    return read_value(table, place, row, &(struct target){.text = text}, err);
}

static tdm_status read_pixels(const struct tdmi_parquet_table *table, const struct place *place,
                              int64_t row, uint8_t *pixels, tdm_error *err)
{
    const struct target target = {.pixels = pixels, .shape = &table->raw};
    return read_value(table, place, row, &target, err);
}

/* A head of Netpbm, then the pixels. */
static tdm_status read_raw_picture(const struct tdmi_parquet_table *table,
                                   const struct place *place, int64_t row, tdmi_text *text,
                                   tdm_error *err)
{
    const struct tdmi_raw_shape *shape = &table->raw;
    tdmi_records_picture_head(text, shape->channels, shape->width, shape->height);
    char *room = tdmi_text_room(text, raw_bytes(shape));
    TDMI_CHECK_MEMORY(room, err);
    return read_pixels(table, place, row, (uint8_t *)room, err);
}

/* ---- Spark's images -------------------------------------------------------------------- */

/* BGR becomes RGB, BGRA is laid over white. */
static void convert_pixels(const uint8_t *from, int channels, size_t n, uint8_t *to)
{
    for (size_t p = 0; p < n; p++, from += channels) {
        if (channels == 1) {
            *to++ = from[0];
            continue;
        }
        int alpha = channels == 4 ? from[3] : 255;
        for (int c = 2; c >= 0; c--)
            *to++ = (uint8_t)((from[c] * alpha + 255 * (255 - alpha) + 127) / 255);
    }
}

static tdm_status read_spark(const struct tdmi_parquet_table *table, const struct place *place,
                             int64_t row, tdmi_text *text, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text raw = {0};
    struct tdmi_spark_shape shape = table->spark_shapes[row];
    if (shape.height < 1 || shape.height > LARGEST_SPARK_SIDE || shape.width < 1 ||
        shape.width > LARGEST_SPARK_SIDE ||
        (shape.channels != 1 && shape.channels != 3 && shape.channels != 4))
        return TDM_FAIL(
            err, TDM_E_INPUT,
            "its shape is %d × %d × %d; expected sides from 1 to %d and 1, 3 or 4 channels",
            shape.height, shape.width, shape.channels, LARGEST_SPARK_SIDE);
    size_t n = (size_t)shape.height * (size_t)shape.width, n_bytes = n * (size_t)shape.channels;
    TDMI_TRY(read_bytes(table, place, row, &raw, err));
    if (raw.length_bytes != n_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "it has %zu bytes; its shape %d × %d × %d needs %zu",
                        raw.length_bytes, shape.height, shape.width, shape.channels, n_bytes);
    int channels = shape.channels == 1 ? 1 : 3;
    tdmi_records_picture_head(text, channels, shape.width, shape.height);
    uint8_t *room = (uint8_t *)tdmi_text_room(text, n * (size_t)channels);
    TDMI_CHECK_MEMORY(room, err);
    convert_pixels((const uint8_t *)raw.bytes, shape.channels, n, room);
    return TDM_OK;
}

/* ---- the table's entries ----------------------------------------------------------------- */

tdm_status tdmi_parquet_table_read(const void *self, int64_t index, tdmi_text *bytes,
                                   tdm_error *err)
{
    const struct tdmi_parquet_table *table = self;
    struct place place = place_of(table, index);
    tdm_status (*read)(const struct tdmi_parquet_table *, const struct place *, int64_t,
                       tdmi_text *, tdm_error *) = read_bytes;
    if (table->columns.form == TDMI_PICTURE_SPARK)
        read = read_spark;
    else if (table->raw.channels > 0)
        read = read_raw_picture;
    return blame(&place, index, read(table, &place, index, bytes, err), err);
}

tdm_status tdmi_parquet_table_read_raw(const void *self, int64_t index, uint8_t *pixels,
                                       tdm_error *err)
{
    const struct tdmi_parquet_table *table = self;
    struct place place = place_of(table, index);
    return blame(&place, index, read_pixels(table, &place, index, pixels, err), err);
}

bool tdmi_parquet_table_geometry(const void *self, struct tdmi_preprocess *geometry)
{
    const struct tdmi_parquet_table *table = self;
    *geometry = table->geometry;
    return table->geometry.width > 0;
}

bool tdmi_parquet_table_raw_shape(const void *self, struct tdmi_raw_shape *shape)
{
    const struct tdmi_parquet_table *table = self;
    *shape = table->raw;
    return table->raw.channels > 0 && table->columns.form == TDMI_PICTURE_BYTES;
}

uint64_t tdmi_parquet_table_hash(const void *self, int64_t index)
{
    const struct tdmi_parquet_table *table = self;
    return table->hashes == NULL ? 0 : table->hashes[index];
}

/* The names of prepare's files hold the hash of all their bytes. */
bool tdmi_parquet_table_row_name(const void *self, int64_t index, uint64_t *name)
{
    const struct tdmi_parquet_table *table = self;
    if (table->hashes == NULL)
        return false;
    const struct tdmi_parquet_file *file = tdmi_parquet_file_of_row(table, index);
    const char *own_name = tdmi_path_name(file->name);
    *name = tdmi_parquet_is_part_name(own_name)
                ? tdmi_xxh64_of(own_name, strlen(own_name), (uint64_t)(index - file->first_row))
                : 0;
    return true;
}

const char *tdmi_parquet_table_row_file(const void *self, int64_t index)
{
    return tdmi_parquet_file_of_row(self, index)->path;
}

int64_t tdmi_parquet_table_n_groups(const void *self)
{
    const struct tdmi_parquet_table *table = self;
    return table->group_starts != NULL ? table->n_kept_groups
           : table->has_large_units    ? table->n_units
                                       : 0;
}

int64_t tdmi_parquet_table_group_first(const void *self, int64_t group)
{
    const struct tdmi_parquet_table *table = self;
    if (table->group_starts != NULL)
        return table->group_starts[group];
    if (group == table->n_units)
        return table->listing.n_items;
    struct tdmi_parquet_file *file;
    struct tdmi_parquet_group *rows;
    tdmi_parquet_group_of_unit(table, group, &file, &rows);
    int64_t page = group - rows->first_unit;
    return rows->first_row + (page == 0 ? 0 : tdmi_pages_first_row(&rows->pages, page));
}
