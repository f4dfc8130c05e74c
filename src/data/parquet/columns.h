/*
 * Which column of a Parquet file is what: the images, their labels, paths, parts and hashes.
 * Found by name and type, or named by the caller.
 */
#pragma once

#include "base/arena.h"
#include "data/parquet/table.h"

/* The value of a member by which its name says the part; a column `split` comes before it. */
#define TDMI_PARQUET_SPLIT_OF_NAME "(the file's name)"

enum tdmi_picture_form {
    TDMI_PICTURE_BYTES, /* a file, or raw pixels where a shape is known */
    TDMI_PICTURE_SPARK  /* a struct of height, width, nChannels, mode, data (BGR) */
};

struct tdmi_parquet_columns {
    enum tdmi_picture_form form;
    const char *image;       /* the column */
    const char *image_field; /* of a struct, the one with the bytes; else NULL */
    const char *image_read;  /* what a stream of the images asks for: "image", "image.bytes" */
    const char *image_leaf;  /* the same as one leaf with a value a row; NULL for lists */
    /* NULL where there is none. A value of the member, the same in all its rows, counts as column.
     */
    const char *label, *class_name, *path, *split, *hash;
};

/* file names the file in messages, table names the whole. Strings of columns are in the arena.
 * is_ours: the file was written by parquet/write.h. class_label: the column that a data set of
 * Hugging Face declares to be one of classes, or NULL. */
struct tdmi_parquet_schema {
    const char *file;
    const struct ArrowSchema *schema;
    const struct tdmi_parquet_value *values;
    int n_values;
    bool is_ours;
    const char *class_label;
};
tdm_status tdmi_parquet_find_columns(const struct tdmi_parquet_schema *schema,
                                     const struct tdm_source_options *options, tdmi_arena *arena,
                                     struct tdmi_parquet_columns *columns,
                                     tdm_error *err) TDM_MUST_USE;
