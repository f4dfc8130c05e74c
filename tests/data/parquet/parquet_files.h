/* Parquet files for the tests, written by our own writer. */
#pragma once

#include "data/sources.h"

#include "data/parquet/write.h"
#include "io/arrow/cell.h"
#include "io/arrow/has_arrow.h"
#include "unit.h"

static inline tdm_status add_to_text(void *self, const void *bytes, size_t n_bytes, tdm_error *err)
{
    (void)err;
    tdmi_text_add(self, bytes, n_bytes);
    return TDM_OK;
}

/* Picture i of a written file: 50 to 149 bytes that depend on i alone. */
static inline size_t picture_of(int i, uint8_t bytes[150])
{
    size_t n = 50 + (size_t)(i * 37 % 100);
    for (size_t b = 0; b < n; b++)
        bytes[b] = (uint8_t)(i * 31 + (int)b * 7);
    return n;
}

struct written {
    int n_rows, n_classes;
    struct tdmi_parquet_write_options options;
};

/* Rows 0 to n_rows - 1: label i % n_classes, class "c<label>", every fifth in val. Raw pictures,
 * where options ask for them, hold the byte i. */
static inline void write_parquet(tdmi_text *file, const struct written *written)
{
    tdm_error err = {0};
    tdmi_parquet_writer *writer = NULL;
    struct tdmi_byte_sink sink = {file, add_to_text};
    assert_ok(tdmi_parquet_writer_open(&sink, &written->options, &writer, &err), &err);
    struct tdmi_raw_shape shape = written->options.raw_shape;
    size_t raw_bytes = (size_t)shape.height * (size_t)shape.width * (size_t)shape.channels;
    uint8_t *raw = calloc(raw_bytes + 1, 1);
    assert_non_null(raw);
    for (int i = 0; i < written->n_rows; i++) {
        uint8_t bytes[150];
        char path[32], class_name[16];
        snprintf(path, sizeof path, "c%d/%d.jpg", i % written->n_classes, i);
        snprintf(class_name, sizeof class_name, "c%d", i % written->n_classes);
        memset(raw, i, raw_bytes);
        struct tdmi_parquet_row row = {.image = raw_bytes > 0 ? raw : bytes,
                                       .image_bytes =
                                           raw_bytes > 0 ? raw_bytes : picture_of(i, bytes),
                                       .label = i % written->n_classes,
                                       .class_name = class_name,
                                       .path = path,
                                       .split = i % 5 == 4 ? "val" : "train",
                                       .width = 10 + i,
                                       .height = 20,
                                       .hash = 0x100u + (unsigned)i};
        assert_ok(tdmi_parquet_writer_add(writer, &row, &err), &err);
    }
    free(raw);
    assert_int_equal(tdmi_parquet_writer_rows(writer), written->n_rows);
    assert_ok(tdmi_parquet_writer_finish(writer, &err), &err);
    tdmi_parquet_writer_free(writer);
    assert_false(file->is_broken);
}

static inline void write_parquet_file(const struct tree *tree, const char *name,
                                      const struct written *written)
{
    tdmi_text file = {0};
    write_parquet(&file, written);
    tree_file(tree, name, file.bytes, file.length_bytes);
    tdmi_text_release(&file);
}

/* Path of a file in tests/fixtures/parquet; valid until the next call. */
static inline const char *parquet_fixture(const char *name)
{
    static char path[1024];
    const char *checkout = getenv("SOURCE");
    snprintf(path, sizeof path, "%s/tests/fixtures/parquet/%s", checkout == NULL ? "." : checkout,
             name);
    return path;
}
