/*
 * Parquet files as prepare writes them, through Arrow: a column of images in which every image
 * is a page of its own, and small columns beside it. parquet/write.h is what other files use.
 */
#pragma once

#include "io/arrow/bridge.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tdmi_arrow_codec { TDMI_ARROW_NONE, TDMI_ARROW_SNAPPY, TDMI_ARROW_ZSTD };

/* Receives the bytes of a file, in order. */
struct tdmi_byte_sink {
    void *self;
    tdm_status (*write)(void *self, const void *bytes, size_t n_bytes, tdm_error *err);
};

enum tdmi_arrow_type { TDMI_ARROW_INT32, TDMI_ARROW_TEXT };

/* A required column that is held until its row group ends. */
struct tdmi_arrow_column {
    const char *name;
    enum tdmi_arrow_type type;
    bool is_distinct; /* hardly a value occurs twice: no dictionary */
};

/* The column of images is called "image". */
struct tdmi_arrow_write_options {
    const struct tdmi_arrow_column *columns;
    int n_columns;
    const char *const *keys, *const *values; /* metadata of the file */
    int n_keys;
    enum tdmi_arrow_codec picture_codec, column_codec;
};

typedef struct tdmi_arrow_writer tdmi_arrow_writer;

/* sink is copied; what its self points at must outlive the writer. */
tdm_status tdmi_arrow_writer_open(const struct tdmi_byte_sink *sink,
                                  const struct tdmi_arrow_write_options *options,
                                  tdmi_arrow_writer **writer, tdm_error *err) TDM_MUST_USE;
/* The next row's image, written at once; the first one begins a row group. */
tdm_status tdmi_arrow_writer_picture(tdmi_arrow_writer *writer, const void *bytes, size_t n_bytes,
                                     tdm_error *err) TDM_MUST_USE;
/* Ends the row group. columns: the values of the small columns, INT32 as int32_t[] and TEXT as
 * const char *[], as many as images were given since the last one. */
tdm_status tdmi_arrow_writer_end_group(tdmi_arrow_writer *writer, void *const *columns,
                                       tdm_error *err) TDM_MUST_USE;
/* Writes the footer. Free the writer in any case. */
tdm_status tdmi_arrow_writer_finish(tdmi_arrow_writer *writer, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL; without finish the file is no Parquet file. */
void tdmi_arrow_writer_free(tdmi_arrow_writer *writer);

#ifdef __cplusplus
}
#endif
