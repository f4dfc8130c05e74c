/*
 * The rules, in this order: the column that the options name; else the first known name of a
 * fitting type; else, for images, the only column of a fitting type. An ambiguous file is refused
 * with the candidates.
 */
#include "data/parquet/columns.h"

#include "io/arrow/cell.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Best first; letters of either case. */
static const char *const image_names[] = {
    "image", "img", "content", "picture", "photo", "pixels", "data",     "bytes",
    "jpeg",  "jpg", "png",     "raw",     "x",     "images", "features", NULL};
static const char *const label_names[] = {"label",    "labels",     "class",       "target",
                                          "category", "y",          "fine_label",  "class_id",
                                          "label_id", "class_name", "class_label", NULL};

/* ---- candidates -------------------------------------------------------------- */

typedef bool (*column_test)(const struct ArrowSchema *column);

static bool has_field(const struct ArrowSchema *schema, const char *name, column_test fits)
{
    const struct ArrowSchema *field = tdmi_arrow_schema_field(schema, name);
    return field != NULL && fits(field);
}

static bool is_struct(const struct ArrowSchema *column)
{
    return strcmp(column->format, "+s") == 0;
}

static bool is_spark_image(const struct ArrowSchema *column)
{
    return is_struct(column) && has_field(column, "data", tdmi_arrow_is_binary) &&
           has_field(column, "height", tdmi_arrow_is_integer) &&
           has_field(column, "width", tdmi_arrow_is_integer) &&
           has_field(column, "nChannels", tdmi_arrow_is_integer);
}

static bool can_be_pictures(const struct ArrowSchema *column)
{
    return tdmi_arrow_is_binary(column) || tdmi_arrow_is_byte_list(column) ||
           is_spark_image(column) ||
           (is_struct(column) && has_field(column, "bytes", tdmi_arrow_is_binary));
}

static bool can_be_labels(const struct ArrowSchema *column)
{
    return tdmi_arrow_is_integer(column) || tdmi_arrow_is_text(column) ||
           tdmi_arrow_is_number(column);
}

/* ---- images ---------------------------------------------------------------------------- */

static tdm_status set_image(const struct ArrowSchema *column, const char *field, tdmi_arena *arena,
                            struct tdmi_parquet_columns *columns, tdm_error *err)
{
    columns->form =
        field == NULL && is_spark_image(column) ? TDMI_PICTURE_SPARK : TDMI_PICTURE_BYTES;
    if (field == NULL && is_struct(column))
        field = columns->form == TDMI_PICTURE_SPARK ? "data" : "bytes";
    columns->image = tdmi_arena_copy(arena, column->name);
    columns->image_read = columns->image;
    if (field != NULL) {
        columns->image_field = tdmi_arena_copy(arena, field);
        columns->image_read = tdmi_arena_printf(arena, "%s.%s", column->name, field);
    }
    TDMI_CHECK_MEMORY(columns->image != NULL && columns->image_read != NULL &&
                          (field == NULL || columns->image_field != NULL),
                      err);
    columns->image_leaf = tdmi_arrow_is_byte_list(column) ? NULL : columns->image_read;
    return TDM_OK;
}

static tdm_status fail_columns(const struct tdmi_parquet_schema *schema, const char *why,
                               const char *accepted, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text names = {0};
    for (int64_t i = 0; i < schema->schema->n_children; i++) {
        const struct ArrowSchema *column = schema->schema->children[i];
        tdmi_text_printf(&names, "%s%s (%s)", i == 0 ? "" : ", ", column->name,
                         tdmi_arrow_type_word(column));
    }
    return TDM_FAIL(err, TDM_E_INPUT, "'%s' %s; %s. Its columns: %s", schema->file, why, accepted,
                    tdmi_text_string(&names));
}

static const char images_accepted[] =
    "images are binary, a struct with bytes, Spark's image, or lists of uint8";

/* "image", or "image.bytes" for a field of a struct. */
static tdm_status named_image(const struct tdmi_parquet_schema *schema, const char *name,
                              tdmi_arena *arena, struct tdmi_parquet_columns *columns,
                              tdm_error *err)
{
    const struct ArrowSchema *column = tdmi_arrow_schema_field(schema->schema, name);
    const char *dot = strchr(name, '.'), *field = NULL;
    if (column == NULL && dot != NULL) {
        char *top = tdmi_arena_printf(arena, "%.*s", (int)(dot - name), name);
        TDMI_CHECK_MEMORY(top, err);
        column = tdmi_arrow_schema_field(schema->schema, top);
        field = dot + 1;
        if (column != NULL &&
            (!is_struct(column) || !has_field(column, field, tdmi_arrow_is_binary)))
            column = NULL;
    }
    if (column == NULL || (field == NULL && !can_be_pictures(column))) {
        char *why = tdmi_arena_printf(arena, "has no column '%s' of images", name);
        TDMI_CHECK_MEMORY(why, err);
        return fail_columns(schema, why, images_accepted, err);
    }
    return set_image(column, field, arena, columns, err);
}

static tdm_status find_image(const struct tdmi_parquet_schema *schema, const char *named,
                             tdmi_arena *arena, struct tdmi_parquet_columns *columns,
                             tdm_error *err)
{
    const struct ArrowSchema *only = NULL;
    int n_found = 0;
    if (named != NULL)
        return named_image(schema, named, arena, columns, err);
    for (int64_t i = 0; i < schema->schema->n_children; i++)
        if (can_be_pictures(schema->schema->children[i])) {
            only = schema->schema->children[i];
            n_found++;
        }
    if (n_found == 0)
        return fail_columns(schema, "has no column of images", images_accepted, err);
    if (n_found == 1)
        return set_image(only, NULL, arena, columns, err);
    for (const char *const *name = image_names; *name != NULL; name++)
        for (int64_t i = 0; i < schema->schema->n_children; i++)
            if (strcasecmp(schema->schema->children[i]->name, *name) == 0 &&
                can_be_pictures(schema->schema->children[i]))
                return set_image(schema->schema->children[i], NULL, arena, columns, err);
    return fail_columns(schema, "has several columns that could be images: name one",
                        images_accepted, err);
}

/* ---- the small columns ------------------------------------------------------------------- */

static const char *value_named(const struct tdmi_parquet_schema *schema, const char *name)
{
    for (int i = 0; i < schema->n_values; i++)
        if (strcasecmp(schema->values[i].name, name) == 0)
            return schema->values[i].name;
    return NULL;
}

/* A column of that name (or a value of the member) that fits; its own spelling. */
static const char *column_named(const struct tdmi_parquet_schema *schema, const char *name,
                                column_test fits, const char *taken)
{
    const char *value = value_named(schema, name);
    if (value != NULL)
        return value;
    for (int64_t i = 0; i < schema->schema->n_children; i++) {
        const struct ArrowSchema *column = schema->schema->children[i];
        if (strcasecmp(column->name, name) == 0 && fits(column) && strcmp(column->name, taken) != 0)
            return column->name;
    }
    return NULL;
}

/* Text stored as plain binary, as older writers do, is accepted where the options name it. */
static bool can_be_named_labels(const struct ArrowSchema *column)
{
    return can_be_labels(column) || tdmi_arrow_is_binary(column);
}

static tdm_status find_label(const struct tdmi_parquet_schema *schema, const char *named,
                             struct tdmi_parquet_columns *columns, tdm_error *err)
{
    if (named != NULL) {
        columns->label = column_named(schema, named, can_be_named_labels, columns->image);
        if (columns->label != NULL)
            return TDM_OK;
        char why[160];
        snprintf(why, sizeof why, "has no column '%.120s' of labels", named);
        return fail_columns(schema, why, "labels are integers or text", err);
    }
    for (const char *const *name = label_names; *name != NULL && columns->label == NULL; name++)
        columns->label = column_named(schema, *name, can_be_labels, columns->image);
    if (columns->label == NULL && schema->class_label != NULL)
        columns->label = column_named(schema, schema->class_label, can_be_labels, columns->image);
    if (schema->is_ours && columns->label != NULL && strcmp(columns->label, "label") == 0 &&
        value_named(schema, "label") == NULL)
        columns->class_name = column_named(schema, "class", tdmi_arrow_is_text, columns->image);
    return TDM_OK;
}

tdm_status tdmi_parquet_find_columns(const struct tdmi_parquet_schema *schema,
                                     const struct tdm_source_options *options, tdmi_arena *arena,
                                     struct tdmi_parquet_columns *columns, tdm_error *err)
{
    *columns = (struct tdmi_parquet_columns){0};
    TDMI_TRY(find_image(schema, options->image_column, arena, columns, err));
    TDMI_TRY(find_label(schema, options->label_column, columns, err));
    columns->path = column_named(schema, "path", tdmi_arrow_is_text, columns->image);
    columns->split = column_named(schema, "split", tdmi_arrow_is_text, columns->image);
    if (columns->split == NULL)
        columns->split = value_named(schema, TDMI_PARQUET_SPLIT_OF_NAME);
    if (schema->is_ours) /* others may mean anything by it */
        columns->hash = column_named(schema, "hash", tdmi_arrow_is_text, columns->image);
    const char **const names[] = {&columns->label, &columns->class_name, &columns->path,
                                  &columns->split, &columns->hash};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (*names[i] != NULL) {
            *names[i] = tdmi_arena_copy(arena, *names[i]);
            TDMI_CHECK_MEMORY(*names[i], err);
        }
    return TDM_OK;
}
