/*
 * The small columns, read once when a table is opened: every row becomes an item with its label,
 * part and path.
 */
#include "data/parquet/member.h"

#include "io/arrow/cell.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name that Hive and Spark give to the folder of rows without a value. */
#define NULL_PARTITION "__HIVE_DEFAULT_PARTITION__"
enum { COLUMNS_AT_MOST = 8, LARGEST_PATH_BYTES = 16 * 1024, LARGEST_CLASSES = 1 << 20 };

/* A small column of one file: a column of the stream, or one value for all rows. */
struct small {
    const char *name;  /* NULL: there is none */
    const char *value; /* of all rows, where is_constant; NULL: null */
    bool is_constant;
};

enum { LABEL, CLASS_NAME, PATH, SPLIT, HASH, SMALLS };

struct rows {
    struct tdmi_parquet_opening *opening;
    const struct tdmi_parquet_file *file;
    struct small smalls[SMALLS];
    int64_t n_rows; /* read so far, of the file */
};

static struct small small_named(const struct tdmi_parquet_member *member, const char *name)
{
    struct small small = {.name = name};
    for (int i = 0; name != NULL && i < member->n_values; i++)
        if (strcmp(member->values[i].name, name) == 0) {
            small.is_constant = true;
            small.value = member->values[i].value;
            if (small.value != NULL && strcmp(small.value, NULL_PARTITION) == 0)
                small.value = NULL;
        }
    return small;
}

/* ---- cells ------------------------------------------------------------------------------- */

/* A value as text: integers and whole numbers in their only form, in digits. */
struct value {
    const char *text; /* NULL: null */
    size_t n_bytes;
    char digits[32];
};

static tdm_status value_of(const struct rows *rows, int column, struct tdmi_arrow_cell row,
                           struct value *value, tdm_error *err)
{
    const struct small *small = &rows->smalls[column];
    struct tdmi_arrow_cell cell;
    const uint8_t *bytes;
    int64_t integer, n;
    double number;
    value->text = small->is_constant ? small->value : NULL;
    value->n_bytes = value->text == NULL ? 0 : strlen(value->text);
    if (small->name == NULL || small->is_constant)
        return TDM_OK;
    if (!tdmi_arrow_cell_field(row, small->name, &cell))
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' has no column '%s'", rows->file->path, small->name);
    if (tdmi_arrow_cell_is_null(cell))
        return TDM_OK;
    if (tdmi_arrow_cell_bytes(cell, &bytes, &n)) {
        value->text = (const char *)bytes;
        value->n_bytes = (size_t)n;
        return TDM_OK;
    }
    if (!tdmi_arrow_cell_integer(cell, &integer)) {
        if (!tdmi_arrow_cell_number(cell, &number) || !(fabs(number) < 9e15) ||
            floor(number) != number)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "row %lld of '%s' has something in column '%s' that is neither an "
                            "integer nor text",
                            (long long)rows->n_rows, rows->file->path, small->name);
        integer = (int64_t)number;
    }
    value->text = value->digits;
    value->n_bytes =
        (size_t)snprintf(value->digits, sizeof value->digits, "%lld", (long long)integer);
    return TDM_OK;
}

static tdm_status take_label(struct rows *rows, struct tdmi_arrow_cell row, int *label,
                             tdm_error *err)
{
    struct tdmi_parquet_opening *opening = rows->opening;
    struct value value;
    *label = -1;
    TDMI_TRY(value_of(rows, LABEL, row, &value, err));
    bool is_unlabelled = opening->is_ours && value.n_bytes == 2 && memcmp(value.text, "-1", 2) == 0;
    if (value.text == NULL || is_unlabelled)
        return TDM_OK;
    TDMI_TRY(tdmi_labels_number(opening->labels, value.text, value.n_bytes, label, err));
    if (opening->labels->n > LARGEST_CLASSES)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the column of labels has more than %d different values, which cannot be "
                        "classes: name another column",
                        LARGEST_CLASSES);
    TDMI_TRY(value_of(rows, CLASS_NAME, row, &value, err));
    if (value.text != NULL)
        TDMI_TRY(tdmi_parquet_labels_name(opening->labels, *label, value.text, value.n_bytes, err));
    return TDM_OK;
}

static tdm_status take_part(struct rows *rows, struct tdmi_arrow_cell row, enum tdmi_part *part,
                            tdm_error *err)
{
    char word[16] = "";
    struct value value;
    *part = TDMI_PART_NONE;
    TDMI_TRY(value_of(rows, SPLIT, row, &value, err));
    if (value.n_bytes == 0)
        return TDM_OK;
    if (value.n_bytes < sizeof word)
        memcpy(word, value.text, value.n_bytes);
    if (strlen(word) == value.n_bytes)
        *part = tdmi_part_named(word);
    rows->opening->n_unknown_splits += *part == TDMI_PART_NONE;
    return TDM_OK;
}

/* 16 hex digits, as our writer makes them; anything else is no hash of ours. */
static uint64_t hash_of(const char *text, size_t n_bytes)
{
    char digits[17] = {0}, *end;
    if (text == NULL || n_bytes != 16)
        return 0;
    memcpy(digits, text, 16);
    uint64_t hash = strtoull(digits, &end, 16);
    return *end == '\0' && digits[0] != '-' && digits[0] != '+' && digits[0] != ' ' ? hash : 0;
}

/* ---- hashes and shapes ---------------------------------------------------------- */

static tdm_status make_room(struct rows *rows, tdm_error *err)
{
    struct tdmi_parquet_table *table = rows->opening->table;
    const int64_t n = table->listing.n_items;
    if (table->columns.hash != NULL)
        TDMI_TRY(TDMI_MAKE_ROOM(table->hashes, table->hash_capacity, n, err));
    if (table->columns.form == TDMI_PICTURE_SPARK)
        TDMI_TRY(TDMI_MAKE_ROOM(table->spark_shapes, table->shape_capacity, n, err));
    return TDM_OK;
}

static int32_t number_in(struct tdmi_arrow_cell image, const char *name)
{
    struct tdmi_arrow_cell cell;
    int64_t value;
    bool is_there = tdmi_arrow_cell_field(image, name, &cell) && !tdmi_arrow_cell_is_null(cell) &&
                    tdmi_arrow_cell_integer(cell, &value);
    return is_there && value >= 0 && value <= INT32_MAX ? (int32_t)value : 0;
}

/* A null image gets zeros and is refused when it is read. */
static struct tdmi_spark_shape spark_shape(const struct rows *rows, struct tdmi_arrow_cell row)
{
    struct tdmi_arrow_cell image;
    if (!tdmi_arrow_cell_field(row, rows->opening->table->columns.image, &image) ||
        tdmi_arrow_cell_is_null(image))
        return (struct tdmi_spark_shape){0};
    return (struct tdmi_spark_shape){number_in(image, "height"), number_in(image, "width"),
                                     number_in(image, "nChannels")};
}

/* ---- rows -------------------------------------------------------------------------------- */

static tdm_status take_path(struct rows *rows, struct tdmi_arrow_cell row,
                            char path[LARGEST_PATH_BYTES], tdm_error *err)
{
    struct value value;
    TDMI_TRY(value_of(rows, PATH, row, &value, err));
    if (value.n_bytes > 0)
        snprintf(path, LARGEST_PATH_BYTES, "%.*s",
                 (int)(value.n_bytes < 16000 ? value.n_bytes : 16000), value.text);
    else
        snprintf(path, LARGEST_PATH_BYTES, "%.16000s#%lld", rows->file->name,
                 (long long)rows->n_rows);
    return TDM_OK;
}

static tdm_status list_row(struct rows *rows, struct tdmi_arrow_cell row, tdm_error *err)
{
    struct tdmi_parquet_table *table = rows->opening->table;
    int64_t index = table->listing.n_items;
    char path[LARGEST_PATH_BYTES];
    struct tdmi_item item = {.path = path};
    struct value hash;
    TDMI_TRY(take_label(rows, row, &item.label, err));
    TDMI_TRY(take_part(rows, row, &item.part, err));
    TDMI_TRY(take_path(rows, row, path, err));
    TDMI_TRY(make_room(rows, err));
    TDMI_TRY(tdmi_listing_add_item(&table->listing, item, err));
    if (table->hashes != NULL) {
        TDMI_TRY(value_of(rows, HASH, row, &hash, err));
        table->hashes[index] = hash_of(hash.text, hash.n_bytes);
    }
    if (table->spark_shapes != NULL)
        table->spark_shapes[index] = spark_shape(rows, row);
    if (item.label < 0 && rows->smalls[LABEL].name != NULL && rows->opening->n_null_labels++ == 0)
        rows->opening->null_label_at = table->listing.items[index].path;
    return TDM_OK;
}

static tdm_status take_row(void *self, struct tdmi_arrow_cell row, tdm_error *err)
{
    struct rows *rows = self;
    TDM_TRY(list_row(rows, row, err), err, "cannot list row %lld", (long long)rows->n_rows);
    rows->n_rows++;
    return TDM_OK;
}

/* No column of the rows is read, so their number is only claimed: refuse what the file is far too
 * small for. */
static tdm_status take_bare_rows(struct rows *rows, tdm_error *err)
{
    const struct tdmi_parquet_file *file = rows->file;
    int64_t n_bytes = tdmi_arrow_file_bytes(file->arrow);
    if (file->n_rows / 4096 > n_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is said to have %lld rows in %lld bytes",
                        file->path, (long long)file->n_rows, (long long)n_bytes);
    struct tdmi_arrow_cell none = {0};
    while (rows->n_rows < file->n_rows)
        TDMI_TRY(take_row(rows, none, err));
    return TDM_OK;
}

static tdm_status list_rows(struct rows *rows, tdm_error *err)
{
    static const char *const fields[] = {"height", "width", "nChannels"};
    const struct tdmi_parquet_columns *found = &rows->opening->table->columns;
    const struct tdmi_parquet_file *file = rows->file;
    const char *columns[COLUMNS_AT_MOST];
    char shape[3][512];
    int n = 0;
    for (int i = 0; i < SMALLS; i++)
        if (rows->smalls[i].name != NULL && !rows->smalls[i].is_constant)
            columns[n++] = rows->smalls[i].name;
    for (int i = 0; found->form == TDMI_PICTURE_SPARK && i < 3; i++) {
        snprintf(shape[i], sizeof shape[i], "%.490s.%s", found->image, fields[i]);
        columns[n++] = shape[i];
    }
    if (n == 0)
        return take_bare_rows(rows, err);
    TDMI_TRY(tdmi_arrow_each_row(file->arrow, file->path, columns, n, take_row, rows, err));
    if (rows->n_rows != file->n_rows)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' has %lld rows; its footer says %lld", file->path,
                        (long long)rows->n_rows, (long long)file->n_rows);
    return TDM_OK;
}

tdm_status tdmi_parquet_list_rows(struct tdmi_parquet_opening *opening,
                                  const struct tdmi_parquet_member *member,
                                  const struct tdmi_parquet_file *file, tdm_error *err)
{
    const struct tdmi_parquet_columns *found = &opening->table->columns;
    struct rows rows = {.opening = opening,
                        .file = file,
                        .smalls = {[LABEL] = small_named(member, found->label),
                                   [CLASS_NAME] = small_named(member, found->class_name),
                                   [PATH] = small_named(member, found->path),
                                   [SPLIT] = small_named(member, found->split),
                                   [HASH] = small_named(member, found->hash)}};
    return TDM_WRAP(err, list_rows(&rows, err), "cannot list the rows of '%s'", file->path);
}
