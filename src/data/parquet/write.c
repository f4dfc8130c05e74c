/* Rows of prepared images: the image is written at once, the rest waits for the end of its row
 * group. */
#include "data/parquet/write.h"

#include "base/text/json.h"
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { GROUP_BYTES = 64 * 1024 * 1024, LARGEST_GROUP_ROWS = 1 << 20 };

/* In the order of the file. */
enum column { LABEL, CLASS, PATH, SPLIT, WIDTH, HEIGHT, HASH, COLUMNS };
static const struct tdmi_arrow_column columns[COLUMNS] = {
    {"label", TDMI_ARROW_INT32, false}, {"class", TDMI_ARROW_TEXT, false},
    {"path", TDMI_ARROW_TEXT, true},    {"split", TDMI_ARROW_TEXT, false},
    {"width", TDMI_ARROW_INT32, false}, {"height", TDMI_ARROW_INT32, false},
    {"hash", TDMI_ARROW_TEXT, true}};

struct tdmi_parquet_writer {
    tdmi_arrow_writer *file;
    struct tdmi_parquet_write_options options;
    tdmi_arena texts; /* of the row group */
    void *values[COLUMNS];
    int64_t n_rows, capacity, group_bytes; /* of the row group */
    int64_t n_rows_before;
};

static size_t value_bytes(int column)
{
    return columns[column].type == TDMI_ARROW_INT32 ? sizeof(int32_t) : sizeof(const char *);
}

/* json owns the text of the geometry. */
static tdm_status open_file(const struct tdmi_byte_sink *sink,
                            const struct tdmi_parquet_write_options *options, tdm_json_writer *json,
                            tdmi_arrow_writer **file, tdm_error *err)
{
    char shape[64];
    const char *keys[3] = {TDMI_PARQUET_VERSION_KEY}, *values[3] = {"1"};
    struct tdmi_arrow_write_options below = {.columns = columns,
                                             .n_columns = COLUMNS,
                                             .keys = keys,
                                             .values = values,
                                             .n_keys = 1,
                                             .picture_codec = options->image_codec,
                                             .column_codec = options->column_codec};
    if (options->raw_shape.channels > 0) {
        snprintf(shape, sizeof shape, "%dx%dx%d", options->raw_shape.height,
                 options->raw_shape.width, options->raw_shape.channels);
        keys[below.n_keys] = TDMI_PARQUET_RAW_SHAPE_KEY;
        values[below.n_keys++] = shape;
    }
    if (options->geometry != NULL) {
        tdmi_preprocess_to_json(options->geometry, json, NULL);
        keys[below.n_keys] = TDMI_PARQUET_GEOMETRY_KEY;
        TDMI_TRY(tdm_json_finish(json, &values[below.n_keys++], NULL, err));
    }
    return tdmi_arrow_writer_open(sink, &below, file, err);
}

tdm_status tdmi_parquet_writer_open(const struct tdmi_byte_sink *sink,
                                    const struct tdmi_parquet_write_options *options,
                                    tdmi_parquet_writer **writer, tdm_error *err)
{
    TDMI_AT_END(tdmi_parquet_writer_free_at) tdmi_parquet_writer *opened = NULL;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *json = tdm_json_writer_new(0);
    *writer = NULL;
    TDMI_TRY(TDMI_NEW(opened, 1, err));
    opened->options = *options;
    if (opened->options.group_bytes <= 0)
        opened->options.group_bytes = GROUP_BYTES;
    opened->options.geometry = NULL; /* is the caller's */
    TDMI_TRY(open_file(sink, options, json, &opened->file, err));
    *writer = tdmi_take(&opened);
    return TDM_OK;
}

static tdm_status make_room(tdmi_parquet_writer *writer, tdm_error *err)
{
    if (writer->n_rows < writer->capacity)
        return TDM_OK;
    int64_t capacity = writer->capacity == 0 ? 1024 : 2 * writer->capacity;
    for (int c = 0; c < COLUMNS; c++) {
        void *grown = tdmi_realloc(writer->values[c], (size_t)capacity, value_bytes(c));
        TDMI_CHECK_MEMORY(grown, err);
        writer->values[c] = grown;
    }
    writer->capacity = capacity;
    return TDM_OK;
}

static tdm_status end_group(tdmi_parquet_writer *writer, tdm_error *err)
{
    TDM_TRY(tdmi_arrow_writer_end_group(writer->file, writer->values, err), err,
            "cannot write the row group that ends with row %lld",
            (long long)(writer->n_rows_before + writer->n_rows - 1));
    writer->n_rows_before += writer->n_rows;
    writer->n_rows = writer->group_bytes = 0;
    tdmi_arena_release(&writer->texts);
    return TDM_OK;
}

static tdm_status set_text(tdmi_parquet_writer *writer, enum column column, const char *text,
                           tdm_error *err)
{
    const char *copy = tdmi_arena_copy(&writer->texts, text);
    TDMI_CHECK_MEMORY(copy, err);
    ((const char **)writer->values[column])[writer->n_rows] = copy;
    return TDM_OK;
}

static void set_number(tdmi_parquet_writer *writer, enum column column, int32_t number)
{
    ((int32_t *)writer->values[column])[writer->n_rows] = number;
}

static tdm_status add_row(tdmi_parquet_writer *writer, const struct tdmi_parquet_row *row,
                          tdm_error *err)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, row->hash);
    TDMI_TRY(make_room(writer, err));
    TDMI_TRY(set_text(writer, CLASS, row->class_name, err));
    TDMI_TRY(set_text(writer, PATH, row->path, err));
    TDMI_TRY(set_text(writer, SPLIT, row->split, err));
    TDMI_TRY(set_text(writer, HASH, hash, err));
    set_number(writer, LABEL, row->label);
    set_number(writer, WIDTH, row->width);
    set_number(writer, HEIGHT, row->height);
    return tdmi_arrow_writer_picture(writer->file, row->image, row->image_bytes, err);
}

tdm_status tdmi_parquet_writer_add(tdmi_parquet_writer *writer, const struct tdmi_parquet_row *row,
                                   tdm_error *err)
{
    const struct tdmi_raw_shape *shape = &writer->options.raw_shape;
    assert(shape->channels == 0 || row->image_bytes == (size_t)shape->height *
                                                           (size_t)shape->width *
                                                           (size_t)shape->channels);
    (void)shape;
    TDM_TRY(add_row(writer, row, err), err, "cannot write '%s'", row->path);
    writer->n_rows++;
    writer->group_bytes += (int64_t)row->image_bytes;
    if (writer->group_bytes >= writer->options.group_bytes || writer->n_rows == LARGEST_GROUP_ROWS)
        return end_group(writer, err);
    return TDM_OK;
}

tdm_status tdmi_parquet_writer_finish(tdmi_parquet_writer *writer, tdm_error *err)
{
    if (writer->n_rows > 0)
        TDMI_TRY(end_group(writer, err));
    return tdmi_arrow_writer_finish(writer->file, err);
}

int64_t tdmi_parquet_writer_rows(const tdmi_parquet_writer *writer)
{
    return writer->n_rows_before + writer->n_rows;
}

void tdmi_parquet_writer_free(tdmi_parquet_writer *writer)
{
    if (writer == NULL)
        return;
    tdmi_arrow_writer_free(writer->file);
    for (int c = 0; c < COLUMNS; c++)
        tdmi_free(writer->values[c]);
    tdmi_arena_release(&writer->texts);
    tdmi_free(writer);
}

bool tdmi_parquet_is_part_name(const char *name)
{
    int n_digits = 0, n_hex = 0;
    if (strncmp(name, "part-", 5) != 0)
        return false;
    for (name += 5; isdigit((unsigned char)*name); name++)
        n_digits++;
    if (n_digits < 5 || *name++ != '-')
        return false;
    for (; isxdigit((unsigned char)*name) && !isupper((unsigned char)*name); name++)
        n_hex++;
    return n_hex == 16 && strcmp(name, ".parquet") == 0;
}
