/*
 * The small columns, read once when a table is opened: every row becomes an item with its label,
 * part and path.
 */
#include "data/parquet/member.h"

#include "base/memory.h"
#include "io/arrow/cell.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Name that Hive and Spark give to the folder of rows without a value. */
#define NULL_PARTITION "__HIVE_DEFAULT_PARTITION__"
enum { COLUMNS_AT_MOST = 8, LARGEST_PATH_BYTES = 16 * 1024 };

/* A small column of one file: a column of the stream, or one value for all rows. */
struct small {
    const char *name;  /* NULL: there is none */
    const char *value; /* of all rows, where is_constant; NULL: null */
    bool is_constant;
};

struct rows {
    struct tdmi_parquet_opening *opening;
    const struct tdmi_parquet_file *file;
    struct small label, class_name, path, split, hash;
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

/* The value as text: integers and whole numbers in their only form. *text NULL: null. buffer holds
 * numbers. */
static tdm_status text_of(const struct rows *rows, const struct small *small,
                          struct tdmi_arrow_cell row, char buffer[32], const char **text,
                          size_t *n_bytes, tdm_error *err)
{
    struct tdmi_arrow_cell cell;
    const uint8_t *bytes;
    int64_t integer, n;
    double number;
    *text = NULL;
    *n_bytes = 0;
    if (small->name == NULL)
        return TDM_OK;
    if (small->is_constant) {
        *text = small->value;
        *n_bytes = small->value == NULL ? 0 : strlen(small->value);
        return TDM_OK;
    }
    if (!tdmi_arrow_cell_field(row, small->name, &cell))
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' has no column '%s'", rows->file->path, small->name);
    if (tdmi_arrow_cell_is_null(cell))
        return TDM_OK;
    if (tdmi_arrow_cell_bytes(cell, &bytes, &n)) {
        *text = (const char *)bytes;
        *n_bytes = (size_t)n;
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
    snprintf(buffer, 32, "%lld", (long long)integer);
    *text = buffer;
    *n_bytes = strlen(buffer);
    return TDM_OK;
}

static tdm_status take_label(struct rows *rows, struct tdmi_arrow_cell row, int *label,
                             tdm_error *err)
{
    struct tdmi_parquet_opening *opening = rows->opening;
    char buffer[32];
    const char *text;
    size_t n_bytes;
    *label = -1;
    TDM_TRY(text_of(rows, &rows->label, row, buffer, &text, &n_bytes, err), err,
            "cannot read a label");
    bool is_unlabelled = opening->is_ours && n_bytes == 2 && memcmp(text, "-1", 2) == 0;
    if (text == NULL || is_unlabelled)
        return TDM_OK;
    TDM_TRY(tdmi_parquet_labels_add(&opening->labels, text, n_bytes, label, err), err,
            "cannot use the labels of '%s'", rows->file->path);
    TDM_TRY(text_of(rows, &rows->class_name, row, buffer, &text, &n_bytes, err), err,
            "cannot read a class");
    if (text != NULL)
        TDM_TRY(tdmi_parquet_labels_name(&opening->labels, *label, text, n_bytes, err), err,
                "cannot use the classes of '%s'", rows->file->path);
    return TDM_OK;
}

static tdm_status take_part(struct rows *rows, struct tdmi_arrow_cell row, enum tdmi_part *part,
                            tdm_error *err)
{
    static const struct {
        const char *name;
        enum tdmi_part part;
    } known[] = {{"train", TDMI_PART_TRAIN},    {"val", TDMI_PART_VAL},   {"valid", TDMI_PART_VAL},
                 {"validation", TDMI_PART_VAL}, {"test", TDMI_PART_TEST}, {"", TDMI_PART_NONE}};
    char buffer[32];
    const char *text;
    size_t n_bytes;
    *part = TDMI_PART_NONE;
    TDM_TRY(text_of(rows, &rows->split, row, buffer, &text, &n_bytes, err), err,
            "cannot read a part");
    if (text == NULL)
        return TDM_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].name) == n_bytes && strncasecmp(known[i].name, text, n_bytes) == 0) {
            *part = known[i].part;
            return TDM_OK;
        }
    rows->opening->n_unknown_splits++;
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

static tdm_status grow_extras(struct rows *rows, tdm_error *err)
{
    struct tdmi_parquet_table *table = rows->opening->table;
    bool is_spark = table->columns.form == TDMI_PICTURE_SPARK;
    if (table->listing.n_items < table->extra_capacity)
        return TDM_OK;
    int64_t capacity = table->extra_capacity == 0 ? 256 : 2 * table->extra_capacity;
    if (table->columns.hash != NULL) {
        void *grown = tdmi_realloc(table->hashes, (size_t)capacity, sizeof *table->hashes);
        if (grown == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the hashes of '%s'", table->path);
        table->hashes = grown;
    }
    if (is_spark) {
        void *grown =
            tdmi_realloc(table->spark_shapes, (size_t)capacity, sizeof *table->spark_shapes);
        if (grown == NULL)
            return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the shapes of '%s'", table->path);
        table->spark_shapes = grown;
    }
    table->extra_capacity = capacity;
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

/* A null picture gets zeros and is refused when it is read. */
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
    char buffer[32];
    const char *text;
    size_t n_bytes;
    TDM_TRY(text_of(rows, &rows->path, row, buffer, &text, &n_bytes, err), err,
            "cannot read a path");
    if (text != NULL && n_bytes > 0)
        snprintf(path, LARGEST_PATH_BYTES, "%.*s", (int)(n_bytes < 16000 ? n_bytes : 16000), text);
    else
        snprintf(path, LARGEST_PATH_BYTES, "%.16000s#%lld", rows->file->name,
                 (long long)rows->n_rows);
    return TDM_OK;
}

static tdm_status take_row(struct rows *rows, struct tdmi_arrow_cell row, tdm_error *err)
{
    struct tdmi_parquet_table *table = rows->opening->table;
    int64_t index = table->listing.n_items;
    char path[LARGEST_PATH_BYTES], buffer[32];
    enum tdmi_part part;
    int label;
    TDM_TRY(take_label(rows, row, &label, err), err, "cannot list row %lld",
            (long long)rows->n_rows);
    TDM_TRY(take_part(rows, row, &part, err), err, "cannot list row %lld", (long long)rows->n_rows);
    TDM_TRY(take_path(rows, row, path, err), err, "cannot list row %lld", (long long)rows->n_rows);
    TDM_TRY(grow_extras(rows, err), err, "cannot list row %lld", (long long)rows->n_rows);
    const struct tdmi_item item = {.path = path, .label = label, .part = part};
    TDM_TRY(tdmi_listing_add_item(&table->listing, item, err), err, "cannot list row %lld",
            (long long)rows->n_rows);
    if (table->hashes != NULL) {
        const char *text;
        size_t n_bytes;
        TDM_TRY(text_of(rows, &rows->hash, row, buffer, &text, &n_bytes, err), err,
                "cannot read a hash");
        table->hashes[index] = hash_of(text, n_bytes);
    }
    if (table->spark_shapes != NULL)
        table->spark_shapes[index] = spark_shape(rows, row);
    if (label < 0 && rows->label.name != NULL && rows->opening->n_null_labels++ == 0)
        rows->opening->null_label_at = table->listing.items[index].path;
    rows->n_rows++;
    return TDM_OK;
}

static void want(const char *columns[], int *n, const struct small *small)
{
    if (small->name == NULL || small->is_constant)
        return;
    for (int i = 0; i < *n; i++)
        if (strcmp(columns[i], small->name) == 0)
            return;
    columns[(*n)++] = small->name;
}

static tdm_status drain(struct rows *rows, struct ArrowArrayStream *stream, tdm_error *err)
{
    struct ArrowSchema schema = {0};
    if (stream->get_schema(stream, &schema) != 0)
        return TDM_FAIL(err, TDM_E_INPUT, "cannot read the schema of '%s'", rows->file->path);
    tdm_status status = TDM_OK;
    for (bool is_end = false; !is_end && status == TDM_OK;) {
        struct ArrowArray batch;
        status = tdmi_arrow_stream_next(stream, rows->file->path, &batch, err);
        is_end = status == TDM_OK && batch.release == NULL;
        for (int64_t r = 0; status == TDM_OK && !is_end && r < batch.length; r++)
            status = take_row(rows, tdmi_arrow_cell_at(&schema, &batch, r), err);
        tdmi_arrow_array_release(&batch);
    }
    tdmi_arrow_schema_release(&schema);
    return status;
}

/* Nothing is read of the rows, so their number must be believed: no picture takes less than a bit,
 * many times over. */
static tdm_status take_bare_rows(struct rows *rows, tdm_error *err)
{
    const struct tdmi_parquet_file *file = rows->file;
    int64_t n_bytes = tdmi_arrow_file_bytes(file->arrow);
    if (file->n_rows / 4096 > n_bytes)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' is said to have %lld rows in %lld bytes",
                        file->path, (long long)file->n_rows, (long long)n_bytes);
    struct tdmi_arrow_cell none = {0};
    while (rows->n_rows < file->n_rows)
        TDM_TRY(take_row(rows, none, err), err, "cannot list the rows of '%s'", file->path);
    return TDM_OK;
}

tdm_status tdmi_parquet_list_rows(struct tdmi_parquet_opening *opening,
                                  const struct tdmi_parquet_member *member,
                                  const struct tdmi_parquet_file *file, tdm_error *err)
{
    const struct tdmi_parquet_columns *found = &opening->table->columns;
    struct rows rows = {.opening = opening,
                        .file = file,
                        .label = small_named(member, found->label),
                        .class_name = small_named(member, found->class_name),
                        .path = small_named(member, found->path),
                        .split = small_named(member, found->split),
                        .hash = small_named(member, found->hash)};
    const char *columns[COLUMNS_AT_MOST];
    int n = 0;
    want(columns, &n, &rows.label);
    want(columns, &n, &rows.class_name);
    want(columns, &n, &rows.path);
    want(columns, &n, &rows.split);
    want(columns, &n, &rows.hash);
    char shape[3][512];
    static const char *const fields[] = {"height", "width", "nChannels"};
    for (int i = 0; found->form == TDMI_PICTURE_SPARK && i < 3; i++) {
        snprintf(shape[i], sizeof shape[i], "%.490s.%s", found->image, fields[i]);
        columns[n++] = shape[i];
    }
    if (n == 0)
        return take_bare_rows(&rows, err);
    struct ArrowArrayStream stream = {0};
    TDM_TRY(tdmi_arrow_file_stream(file->arrow, columns, n, 0, -1, &stream, err), err,
            "cannot list the rows of '%s'", file->path);
    tdm_status status =
        TDM_WRAP(err, drain(&rows, &stream, err), "cannot list the rows of '%s'", file->path);
    tdmi_arrow_stream_release(&stream);
    if (status == TDM_OK && rows.n_rows != file->n_rows)
        return TDM_FAIL(err, TDM_E_INPUT, "'%s' has %lld rows; its footer says %lld", file->path,
                        (long long)rows.n_rows, (long long)file->n_rows);
    return status;
}
