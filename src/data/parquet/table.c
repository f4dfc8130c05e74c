/*
 * Opening goes file by file: footer, small columns, places of the pages. Afterwards an image is
 * found by three searches (file, row group, page). Local files whose pages can be read singly are
 * read page by page; the rest (remote files, lists, delta encodings) goes by row groups through
 * Arrow. Units with several rows come from a cache.
 */
#include "data/parquet/member.h"

#include "base/text/json.h"
#include "data/parquet/write.h"
#include "io/storage/records.h"
#include "tandem/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_BYTES = 256 * 1024 * 1024, FILES_KEPT_OPEN = 256, LARGEST_SIDE = 1 << 15 };

/* ---- finding ----------------------------------------------------------------------------- */

/* The last of n things whose member `key` is not above `limit`. */
#define FIND_LAST(things, key, n, limit)                                                       \
    (&(things)[find_last((things), sizeof *(things),                                           \
                         (size_t)((const char *)&(things)->key - (const char *)(things)), (n), \
                         (limit))])

static int64_t find_last(const void *things, size_t size, size_t at, int64_t n, int64_t limit)
{
    int64_t low = 0, high = n;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2, first;
        memcpy(&first, (const char *)things + (size_t)middle * size + at, sizeof first);
        if (first <= limit)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct tdmi_parquet_file *tdmi_parquet_file_of_row(const struct tdmi_parquet_table *table,
                                                   int64_t row)
{
    return FIND_LAST(table->files, first_row, table->n_files, row);
}

struct tdmi_parquet_group *tdmi_parquet_group_of_row(const struct tdmi_parquet_file *file,
                                                     int64_t row)
{
    return FIND_LAST(file->groups, first_row, file->n_groups, row);
}

void tdmi_parquet_group_of_unit(const struct tdmi_parquet_table *table, int64_t unit,
                                struct tdmi_parquet_file **file, struct tdmi_parquet_group **group)
{
    *file = FIND_LAST(table->files, first_unit, table->n_files, unit);
    *group = FIND_LAST((*file)->groups, first_unit, (*file)->n_groups, unit);
}

int64_t tdmi_parquet_table_file_rows(const tdmi_parquet_table *table, const char *path,
                                     int64_t first_item)
{
    if (table->n_files == 0)
        return 0;
    const struct tdmi_parquet_file *file = tdmi_parquet_file_of_row(table, first_item);
    return file->first_row == first_item && strcmp(file->path, path) == 0 ? file->n_rows : 0;
}

tdm_status tdmi_parquet_bytes(const struct tdmi_parquet_file *file, tdmi_storage_file **own,
                              const tdmi_storage_file **bytes, tdm_error *err)
{
    if (file->bytes == NULL)
        TDMI_TRY(tdmi_storage_open(file->path, own, err));
    *bytes = file->bytes == NULL ? *own : file->bytes;
    return TDM_OK;
}

/* ---- opening a file ---------------------------------------------------------------------- */

static tdm_status find_columns(struct tdmi_parquet_opening *opening,
                               const struct tdmi_parquet_member *member,
                               const struct tdmi_parquet_file *file, tdm_error *err)
{
    struct tdmi_parquet_table *table = opening->table;
    const char *json = tdmi_arrow_file_value(file->arrow, "huggingface"), *unused;
    TDMI_AT_END(tdmi_arrow_schema_release) struct ArrowSchema arrow = {0};
    struct tdmi_parquet_schema schema = {.file = file->path,
                                         .schema = &arrow,
                                         .values = member->values,
                                         .n_values = member->n_values};
    opening->is_ours = schema.is_ours =
        tdmi_arrow_file_value(file->arrow, TDMI_PARQUET_VERSION_KEY) != NULL;
    if (json != NULL)
        TDMI_TRY(
            tdmi_parquet_labels_describe(opening->labels, json, NULL, &schema.class_label, err));
    TDMI_TRY(tdmi_arrow_file_schema(file->arrow, &arrow, err));
    TDMI_TRY(tdmi_parquet_find_columns(&schema, opening->options, &table->listing.arena,
                                       &table->columns, err));
    if (json != NULL && table->columns.label != NULL)
        TDMI_TRY(tdmi_parquet_labels_describe(opening->labels, json, table->columns.label, &unused,
                                              err));
    table->has_columns = true;
    return TDM_OK;
}

/* "32x32x3" */
static tdm_status read_shape(const char *text, const char *from, struct tdmi_raw_shape *shape,
                             tdm_error *err)
{
    char after;
    int n = sscanf(text, "%dx%dx%d%c", &shape->height, &shape->width, &shape->channels, &after);
    if (n != 3 || shape->height < 1 || shape->height > LARGEST_SIDE || shape->width < 1 ||
        shape->width > LARGEST_SIDE || (shape->channels != 1 && shape->channels != 3)) {
        *shape = (struct tdmi_raw_shape){0};
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s gives the raw shape '%s'; expected height, width and channels (1 or 3) "
                        "as in 32x32x3",
                        from, text);
    }
    return TDM_OK;
}

static tdm_status find_shape(struct tdmi_parquet_opening *opening,
                             const struct tdmi_parquet_file *file, tdm_error *err)
{
    struct tdmi_parquet_table *table = opening->table;
    const char *metadata = tdmi_arrow_file_value(file->arrow, TDMI_PARQUET_RAW_SHAPE_KEY);
    struct tdmi_raw_shape shape = {0};
    if (opening->options->raw_shape != NULL)
        return read_shape(opening->options->raw_shape, "the option", &table->raw, err);
    if (metadata != NULL)
        TDM_TRY(read_shape(metadata, file->path, &shape, err), err, "cannot open '%s'", file->path);
    if (table->n_files == 0)
        table->raw = shape;
    if (shape.height != table->raw.height || shape.width != table->raw.width ||
        shape.channels != table->raw.channels)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' holds raw images of %d × %d × %d, '%s' before it of %d × %d × %d",
                        file->path, shape.height, shape.width, shape.channels, table->files[0].path,
                        table->raw.height, table->raw.width, table->raw.channels);
    return TDM_OK;
}

static bool is_same(const struct tdmi_preprocess *a, const struct tdmi_preprocess *b)
{
    return a->width == b->width && a->height == b->height && a->channels == b->channels &&
           a->fit == b->fit && a->filter == b->filter && a->uses_draft == b->uses_draft &&
           a->crop_fraction >= b->crop_fraction && a->crop_fraction <= b->crop_fraction;
}

static tdm_status read_geometry(const char *text, const char *path,
                                struct tdmi_preprocess *geometry, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *json = NULL;
    TDMI_TRY(tdm_json_read(text, strlen(text), path, &json, err));
    return tdmi_preprocess_from_json(tdm_json_root(json), path, geometry, err);
}

/* Read the geometry that the loader applies to images stored in their original size. */
static tdm_status find_geometry(struct tdmi_parquet_table *table,
                                const struct tdmi_parquet_file *file, tdm_error *err)
{
    const char *metadata = tdmi_arrow_file_value(file->arrow, TDMI_PARQUET_GEOMETRY_KEY);
    struct tdmi_preprocess geometry = {0};
    if (metadata != NULL) {
        TDM_TRY(read_geometry(metadata, file->path, &geometry, err), err,
                "cannot use the image size in '%s'", file->path);
        if (geometry.channels != 3)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' says that its images are loaded in grey; 3 channels are needed",
                            file->path);
    }
    if (table->n_files == 0)
        table->geometry = geometry;
    if (!is_same(&geometry, &table->geometry))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' requires its images in another size or form than '%s' before "
                        "it; tables prepared alike can be read together",
                        file->path, table->files[0].path);
    return TDM_OK;
}

static tdm_status find_pages(struct tdmi_parquet_table *table, struct tdmi_parquet_file *file,
                             tdm_error *err)
{
    TDMI_AT_END(tdmi_storage_close_at) tdmi_storage_file *bytes = NULL;
    const char *leaf = table->columns.image_leaf;
    bool can_read = leaf != NULL && !tdmi_storage_is_uri(file->path), needs_arrow = false;
    int64_t row = file->first_row;
    TDMI_TRY(TDMI_NEW(file->groups, file->n_groups, err));
    if (can_read)
        TDMI_TRY(tdmi_storage_open(file->path, &bytes, err));
    file->first_unit = table->n_units;
    for (int g = 0; g < file->n_groups; g++) {
        struct tdmi_parquet_group *group = &file->groups[g];
        bool has_pages = can_read;
        group->first_row = row;
        group->first_unit = table->n_units;
        group->n_rows = tdmi_arrow_group_rows(file->arrow, g);
        row += group->n_rows;
        if (group->n_rows == 0)
            continue;
        if (can_read)
            TDMI_TRY(tdmi_pages_open(file->arrow, bytes, leaf, g, &group->pages, &has_pages, err));
        group->n_units = has_pages ? group->pages.n_pages : 1;
        table->n_units += group->n_units;
        needs_arrow = needs_arrow || !has_pages;
        table->has_large_units =
            table->has_large_units || (group->n_units < group->n_rows && !group->pages.have_places);
    }
    if (!needs_arrow) {
        tdmi_arrow_file_close(file->arrow);
        file->arrow = NULL;
    }
    if (table->n_open < FILES_KEPT_OPEN) {
        file->bytes = tdmi_take(&bytes);
        table->n_open++;
    }
    return TDM_OK;
}

static tdm_status open_file(struct tdmi_parquet_opening *opening,
                            const struct tdmi_parquet_member *member,
                            struct tdmi_parquet_file *file, tdm_error *err)
{
    struct tdmi_parquet_table *table = opening->table;
    file->path = tdmi_arena_copy(&table->listing.arena, member->path);
    file->name = tdmi_arena_copy(&table->listing.arena, member->name);
    TDMI_CHECK_MEMORY(file->path != NULL && file->name != NULL, err);
    TDMI_TRY(tdmi_arrow_file_open(file->path, &file->arrow, err));
    file->first_row = table->listing.n_items;
    file->n_rows = tdmi_arrow_file_rows(file->arrow);
    file->n_groups = tdmi_arrow_file_groups(file->arrow);
    if (file->n_rows == 0) /* as Spark leaves them */
        return TDM_OK;
    if (!table->has_columns)
        TDMI_TRY(find_columns(opening, member, file, err));
    TDMI_TRY(find_shape(opening, file, err));
    TDMI_TRY(find_geometry(opening->table, file, err));
    TDMI_TRY(tdmi_parquet_list_rows(opening, member, file, err));
    return find_pages(table, file, err);
}

static void close_file(struct tdmi_parquet_file *file)
{
    for (int g = 0; g < file->n_groups && file->groups != NULL; g++)
        tdmi_pages_release(&file->groups[g].pages);
    tdmi_free(file->groups);
    tdmi_storage_close(file->bytes);
    tdmi_arrow_file_close(file->arrow);
    *file = (struct tdmi_parquet_file){0};
}

/* ---- the whole --------------------------------------------------------------------------- */

/* Images of a part that stands alone are still to be split. */
static void forget_single_part(struct tdmi_listing *listing)
{
    bool has_part[TDMI_PART_TEST + 1] = {false};
    for (int64_t i = 0; i < listing->n_items; i++)
        has_part[listing->items[i].part] = true;
    if (has_part[TDMI_PART_TRAIN] + has_part[TDMI_PART_VAL] + has_part[TDMI_PART_TEST] > 1)
        return;
    for (int64_t i = 0; i < listing->n_items; i++)
        listing->items[i].part = TDMI_PART_NONE;
}

static void warn(const struct tdmi_parquet_opening *opening)
{
    const char *path = opening->table->path;
    if (opening->n_null_labels > 0 && opening->n_null_labels < opening->table->listing.n_items)
        tdm_log(TDM_LOG_WARNING, "left out of '%s': %lld row%s without a label, the first is '%s'",
                path, (long long)opening->n_null_labels, opening->n_null_labels == 1 ? "" : "s",
                opening->null_label_at);
    if (opening->n_unknown_splits > 0)
        tdm_log(
            TDM_LOG_WARNING,
            "'%s' has %lld row%s of no part: a split that is none of train, val, validation and "
            "test",
            path, (long long)opening->n_unknown_splits, opening->n_unknown_splits == 1 ? "" : "s");
}

/* Pixels without their shape look like damaged images, all of them; report that at once. */
static tdm_status check_first_picture(const struct tdmi_parquet_table *table, tdm_error *err)
{
    size_t n_bytes[2] = {0};
    bool are_unknown = table->raw.channels == 0 && table->columns.form == TDMI_PICTURE_BYTES &&
                       table->listing.n_items > 1;
    for (int i = 0; i < 2 && are_unknown; i++) {
        TDMI_AT_END(tdmi_text_release) tdmi_text bytes = {0};
        are_unknown = tdmi_parquet_table_read(table, i, &bytes, NULL) == TDM_OK &&
                      tdmi_image_sniff(bytes.bytes, bytes.length_bytes) == TDMI_IMAGE_UNKNOWN;
        n_bytes[i] = bytes.length_bytes;
    }
    if (!are_unknown || n_bytes[0] != n_bytes[1] || n_bytes[0] == 0)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "column '%s' of '%s' holds %zu bytes a row that are no image of a known "
                    "format; if they are pixels, give their shape as in 32x32x3",
                    table->columns.image_read, table->path, n_bytes[0]);
}

static tdm_status open_all(struct tdmi_parquet_opening *opening,
                           const struct tdmi_parquet_member *members, int64_t n_members,
                           tdm_error *err)
{
    struct tdmi_parquet_table *table = opening->table;
    for (int64_t m = 0; m < n_members; m++) {
        struct tdmi_parquet_file *file = &table->files[table->n_files];
        tdm_status status = open_file(opening, &members[m], file, err);
        if (status != TDM_OK || file->n_rows == 0)
            close_file(file);
        else
            table->n_files++;
        TDM_TRY(status, err, "cannot open a table");
    }
    TDM_TRY(tdmi_labels_finish(opening->labels, &table->listing, err), err,
            "cannot make classes of the labels");
    forget_single_part(&table->listing);
    warn(opening);
    int64_t limit = opening->options->cache_bytes > 0 ? opening->options->cache_bytes : CACHE_BYTES;
    struct tdmi_group_loader loader = {table, tdmi_parquet_load_unit, tdmi_parquet_drop_unit};
    TDMI_TRY(tdmi_group_cache_new(limit, &loader, &table->cache, err));
    return check_first_picture(table, err);
}

tdm_status tdmi_parquet_table_open(const char *path, const struct tdmi_parquet_member *members,
                                   int64_t n_members, const struct tdm_source_options *options,
                                   tdmi_parquet_table *table, tdm_error *err)
{
    TDMI_AT_END(tdmi_labels_release) struct tdmi_labels labels = {0};
    struct tdmi_parquet_opening opening = {.table = table, .options = options, .labels = &labels};
    table->path = tdmi_arena_copy(&table->listing.arena, path);
    TDMI_CHECK_MEMORY(table->path, err);
    TDMI_TRY(TDMI_NEW(table->files, n_members + 1, err));
    return open_all(&opening, members, n_members, err);
}

void tdmi_parquet_table_release(void *self)
{
    struct tdmi_parquet_table *table = self;
    tdmi_group_cache_free(table->cache);
    for (int64_t f = 0; f < table->n_files; f++)
        close_file(&table->files[f]);
    tdmi_free(table->files);
    tdmi_free(table->hashes);
    tdmi_free(table->spark_shapes);
    tdmi_free(table->group_starts);
}
