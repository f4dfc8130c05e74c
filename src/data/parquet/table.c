/*
 * Opening goes file by file: footer, small columns, places of the pages. Afterwards a picture is
 * found by three searches (file, row group, page). What lies on a local disk in pages that can be
 * read singly is read so; the rest (remote files, lists, delta encodings) goes by row groups
 * through Arrow. Units with several rows come from a cache.
 */
#include "data/parquet/member.h"

#include "base/memory.h"
#include "io/arrow/cell.h"
#include "data/parquet/write.h"
#include "io/storage/records.h"
#include "image/image.h"
#include "tandem/log.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CACHE_BYTES = 256 * 1024 * 1024, FILES_KEPT_OPEN = 256, LARGEST_SIDE = 1 << 15 };

static tdm_status out_of_memory(const char *path, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open the table '%s'", path);
}

/* ---- finding ----------------------------------------------------------------------------- */

/* The last of n things, size bytes apart, whose number at `at` is not above wanted. */
static int64_t find_last(const void *things, size_t size, size_t at, int64_t n, int64_t wanted)
{
    int64_t low = 0, high = n;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2, first;
        memcpy(&first, (const char *)things + (size_t)middle * size + at, sizeof first);
        if (first <= wanted)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct tdmi_parquet_file *tdmi_parquet_file_of_row(const struct tdmi_parquet_table *table,
                                                   int64_t row)
{
    return &table->files[find_last(table->files, sizeof *table->files,
                                   offsetof(struct tdmi_parquet_file, first_row), table->n_files,
                                   row)];
}

struct tdmi_parquet_group *tdmi_parquet_group_of_row(const struct tdmi_parquet_file *file,
                                                     int64_t row)
{
    return &file->groups[find_last(file->groups, sizeof *file->groups,
                                   offsetof(struct tdmi_parquet_group, first_row), file->n_groups,
                                   row)];
}

int64_t tdmi_parquet_table_file_rows(const tdmi_parquet_table *table, const char *path,
                                     int64_t first_item)
{
    if (table->n_files == 0)
        return 0;
    const struct tdmi_parquet_file *file = tdmi_parquet_file_of_row(table, first_item);
    return file->first_row == first_item && strcmp(file->path, path) == 0 ? file->n_rows : 0;
}

void tdmi_parquet_group_of_unit(const struct tdmi_parquet_table *table, int64_t unit,
                                struct tdmi_parquet_file **file, struct tdmi_parquet_group **group)
{
    *file = &table->files[find_last(table->files, sizeof **file,
                                    offsetof(struct tdmi_parquet_file, first_unit), table->n_files,
                                    unit)];
    *group = &(*file)->groups[find_last((*file)->groups, sizeof **group,
                                        offsetof(struct tdmi_parquet_group, first_unit),
                                        (*file)->n_groups, unit)];
}

tdm_status tdmi_parquet_take_bytes(const struct tdmi_parquet_file *file, tdmi_storage_file **bytes,
                                   tdm_error *err)
{
    *bytes = file->bytes;
    return file->bytes != NULL ? TDM_OK : tdmi_storage_open(file->path, bytes, err);
}

void tdmi_parquet_give_bytes(const struct tdmi_parquet_file *file, tdmi_storage_file *bytes)
{
    if (bytes != file->bytes)
        tdmi_storage_close(bytes);
}

/* ---- opening a file ---------------------------------------------------------------------- */

static tdm_status find_columns(struct tdmi_parquet_opening *opening,
                               const struct tdmi_parquet_member *member,
                               const struct tdmi_parquet_file *file, tdm_error *err)
{
    struct tdmi_parquet_table *table = opening->table;
    const char *json = tdmi_arrow_file_value(file->arrow, "huggingface"), *unused;
    struct ArrowSchema arrow = {0};
    struct tdmi_parquet_schema schema = {.file = file->path,
                                         .schema = &arrow,
                                         .values = member->values,
                                         .n_values = member->n_values};
    opening->is_ours = schema.is_ours =
        tdmi_arrow_file_value(file->arrow, TDMI_PARQUET_VERSION_KEY) != NULL;
    if (json != NULL)
        TDM_TRY(tdmi_parquet_read_features(json, NULL, opening, &schema.class_label, err), err,
                "cannot read what '%s' says about its columns", file->path);
    TDM_TRY(tdmi_arrow_file_schema(file->arrow, &arrow, err), err, "cannot find the columns");
    tdm_status status = tdmi_parquet_find_columns(&schema, opening->options, &table->listing.arena,
                                                  &table->columns, err);
    tdmi_arrow_schema_release(&arrow);
    if (status == TDM_OK && json != NULL && table->columns.label != NULL)
        status = tdmi_parquet_read_features(json, table->columns.label, opening, &unused, err);
    table->has_columns = status == TDM_OK;
    return status;
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
                        "'%s' holds raw pictures of %d × %d × %d, '%s' before it of %d × %d × %d",
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

/* Read the geometry that the loader applies to images stored in their original size. */
static tdm_status find_geometry(struct tdmi_parquet_table *table,
                                const struct tdmi_parquet_file *file, tdm_error *err)
{
    const char *metadata = tdmi_arrow_file_value(file->arrow, TDMI_PARQUET_GEOMETRY_KEY);
    struct tdmi_preprocess geometry = {0};
    tdm_json_document *json = NULL;
    if (metadata != NULL) {
        tdm_status status = tdm_json_read(metadata, strlen(metadata), file->path, &json, err);
        if (status == TDM_OK)
            status = tdmi_preprocess_from_json(tdm_json_root(json), file->path, &geometry, err);
        tdm_json_document_free(json);
        TDM_TRY(status, err, "cannot use what '%s' says about the size of its pictures",
                file->path);
        if (geometry.channels != 3)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' says that its pictures are loaded in grey; 3 channels are needed",
                            file->path);
    }
    if (table->n_files == 0)
        table->geometry = geometry;
    if (!is_same(&geometry, &table->geometry))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "'%s' wants its pictures brought to another size or form than '%s' before "
                        "it; tables prepared alike can be read together",
                        file->path, table->files[0].path);
    return TDM_OK;
}

static tdm_status find_pages(struct tdmi_parquet_table *table, struct tdmi_parquet_file *file,
                             tdm_error *err)
{
    bool can_read = table->columns.image_leaf != NULL && !tdmi_storage_is_uri(file->path);
    tdmi_storage_file *bytes = NULL;
    file->groups = tdmi_alloc((size_t)file->n_groups, sizeof *file->groups);
    if (file->groups == NULL)
        return out_of_memory(table->path, err);
    if (can_read)
        TDM_TRY(tdmi_storage_open(file->path, &bytes, err), err, "cannot open a table");
    tdm_status status = TDM_OK;
    bool needs_arrow = false;
    int64_t row = file->first_row;
    file->first_unit = table->n_units;
    for (int g = 0; g < file->n_groups && status == TDM_OK; g++) {
        struct tdmi_parquet_group *group = &file->groups[g];
        bool has_pages = can_read;
        group->first_row = row;
        group->first_unit = table->n_units;
        group->n_rows = tdmi_arrow_group_rows(file->arrow, g);
        row += group->n_rows;
        if (group->n_rows == 0)
            continue;
        if (can_read)
            status = tdmi_pages_open(file->arrow, bytes, table->columns.image_leaf, g,
                                     &group->pages, &has_pages, err);
        group->n_units = has_pages ? group->pages.n_pages : 1;
        table->n_units += group->n_units;
        needs_arrow = needs_arrow || !has_pages;
        table->has_large_units =
            table->has_large_units || (group->n_units < group->n_rows && !group->pages.have_places);
    }
    if (!needs_arrow && status == TDM_OK) {
        tdmi_arrow_file_close(file->arrow);
        file->arrow = NULL;
    }
    if (table->n_open < FILES_KEPT_OPEN && status == TDM_OK) {
        file->bytes = bytes;
        table->n_open++;
    } else {
        tdmi_storage_close(bytes);
    }
    return status;
}

static tdm_status open_file(struct tdmi_parquet_opening *opening,
                            const struct tdmi_parquet_member *member,
                            struct tdmi_parquet_file *file, tdm_error *err)
{
    struct tdmi_parquet_table *table = opening->table;
    file->path = tdmi_arena_copy(&table->listing.arena, member->path);
    file->name = tdmi_arena_copy(&table->listing.arena, member->name);
    if (file->path == NULL || file->name == NULL)
        return out_of_memory(table->path, err);
    TDM_TRY(tdmi_arrow_file_open(file->path, &file->arrow, err), err, "cannot open a table");
    file->first_row = table->listing.n_items;
    file->n_rows = tdmi_arrow_file_rows(file->arrow);
    file->n_groups = tdmi_arrow_file_groups(file->arrow);
    if (file->n_rows == 0) /* as Spark leaves them */
        return TDM_OK;
    if (!table->has_columns)
        TDM_TRY(find_columns(opening, member, file, err), err, "cannot open a table");
    TDM_TRY(find_shape(opening, file, err), err, "cannot open a table");
    TDM_TRY(find_geometry(opening->table, file, err), err, "cannot open a table");
    TDM_TRY(tdmi_parquet_list_rows(opening, member, file, err), err, "cannot open a table");
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
        tdm_log(TDM_LOG_WARNING,
                "%lld rows of '%s' have no label and are left out, the first is '%s'",
                (long long)opening->n_null_labels, path, opening->null_label_at);
    if (opening->n_unknown_splits > 0)
        tdm_log(
            TDM_LOG_WARNING,
            "%lld rows of '%s' have a split that is none of train, val, validation and test: they "
            "belong to no part",
            (long long)opening->n_unknown_splits, path);
}

/* Pixels without their shape look like damaged images, all of them; report that at once. */
static tdm_status check_first_picture(const struct tdmi_parquet_table *table, tdm_error *err)
{
    tdmi_text bytes[2] = {{0}, {0}};
    tdm_error problem = {0};
    tdm_status status = TDM_OK;
    bool are_unknown = table->raw.channels == 0 && table->columns.form == TDMI_PICTURE_BYTES &&
                       table->listing.n_items > 1;
    for (int i = 0; i < 2 && are_unknown; i++)
        are_unknown = tdmi_parquet_table_read(table, i, &bytes[i], &problem) == TDM_OK &&
                      tdmi_image_sniff(bytes[i].bytes, bytes[i].length_bytes) == TDMI_IMAGE_UNKNOWN;
    if (are_unknown && bytes[0].length_bytes == bytes[1].length_bytes && bytes[0].length_bytes > 0)
        status =
            TDM_FAIL(err, TDM_E_INPUT,
                     "column '%s' of '%s' holds %zu bytes a row that are no picture of a known "
                     "format; if they are pixels, give their shape as in 32x32x3",
                     table->columns.image_read, table->path, bytes[0].length_bytes);
    tdmi_text_release(&bytes[0]);
    tdmi_text_release(&bytes[1]);
    return status;
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
        if (status != TDM_OK)
            return status;
    }
    TDM_TRY(tdmi_parquet_labels_finish(&opening->labels, opening->class_names,
                                       opening->n_class_names, &table->listing, err),
            err, "cannot open the table '%s'", table->path);
    forget_single_part(&table->listing);
    warn(opening);
    int64_t limit = opening->options->cache_bytes > 0 ? opening->options->cache_bytes : CACHE_BYTES;
    struct tdmi_group_loader loader = {table, tdmi_parquet_load_unit, tdmi_parquet_drop_unit};
    TDM_TRY(tdmi_group_cache_new(limit, &loader, &table->cache, err), err,
            "cannot open the table '%s'", table->path);
    return check_first_picture(table, err);
}

tdm_status tdmi_parquet_table_open(const char *path, const struct tdmi_parquet_member *members,
                                   int64_t n_members, const struct tdm_source_options *options,
                                   tdmi_parquet_table *table, tdm_error *err)
{
    struct tdmi_parquet_opening opening = {.table = table, .options = options};
    tdmi_parquet_labels_init(&opening.labels);
    table->path = tdmi_arena_copy(&table->listing.arena, path);
    table->files = tdmi_alloc((size_t)n_members + 1, sizeof *table->files);
    tdm_status status = table->path == NULL || table->files == NULL
                            ? out_of_memory(path, err)
                            : open_all(&opening, members, n_members, err);
    tdmi_parquet_labels_release(&opening.labels);
    return status;
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
