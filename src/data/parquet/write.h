/*
 * Prepared images as a Parquet file: columns image, label, class, path, split, width, height,
 * hash, none of them ever null. Every image is a page of its own with a checksum, so that a
 * reader of the offset index reaches each with one read; to every other reader the file is an
 * ordinary one. The same rows and options give the same bytes with the same version of Arrow.
 */
#pragma once

#include "io/arrow/write.h"
#include "data/source/source.h"
#include "image/preprocess.h"

/* The key of the file's metadata under which the shape of raw images stands, as "32x32x3". */
#define TDMI_PARQUET_RAW_SHAPE_KEY "tandem.raw_shape"
/* The key under which the geometry of images in their own size stands: a preprocessing as JSON.
 */
#define TDMI_PARQUET_GEOMETRY_KEY "tandem.geometry"
/* Files of ours carry it; a label of -1 is then an image without label. */
#define TDMI_PARQUET_VERSION_KEY "tandem.format_version"

struct tdmi_parquet_row {
    const void *image;
    size_t image_bytes;
    int32_t label;          /* -1: unlabelled */
    const char *class_name; /* "" where unlabelled */
    const char *path;
    const char *split; /* "train", "val", "test", or "" */
    int32_t width, height;
    uint64_t hash; /* XXH64 of the file that the image was made from; 16 hex digits */
};

struct tdmi_parquet_write_options {
    enum tdmi_arrow_codec image_codec, column_codec;
    struct tdmi_raw_shape raw_shape;        /* of every image; zeroed: encoded images */
    const struct tdmi_preprocess *geometry; /* to apply when loading; NULL: images have it */
    int64_t group_bytes;                    /* a row group ends after so many bytes; 0: 64 MiB */
};

typedef struct tdmi_parquet_writer tdmi_parquet_writer;

/* sink is copied, what it points at must outlive the writer. TDM_E_ABSENT: a build without Arrow.
 */
tdm_status tdmi_parquet_writer_open(const struct tdmi_byte_sink *sink,
                                    const struct tdmi_parquet_write_options *options,
                                    tdmi_parquet_writer **writer, tdm_error *err) TDM_MUST_USE;
/* The row is written or copied. */
tdm_status tdmi_parquet_writer_add(tdmi_parquet_writer *writer, const struct tdmi_parquet_row *row,
                                   tdm_error *err) TDM_MUST_USE;
/* The rest and the footer. Free the writer in any case. */
tdm_status tdmi_parquet_writer_finish(tdmi_parquet_writer *writer, tdm_error *err) TDM_MUST_USE;
int64_t tdmi_parquet_writer_rows(const tdmi_parquet_writer *writer);
/* Accepts NULL; without finish the file is no Parquet file. */
void tdmi_parquet_writer_free(tdmi_parquet_writer *writer);
TDMI_POINTER_RELEASE(tdmi_parquet_writer, tdmi_parquet_writer_free)

/* Whether a file name is that of a part as prepare writes it, with the hash of the file's bytes:
 * "part-00003-0123456789abcdef.parquet". */
bool tdmi_parquet_is_part_name(const char *name);
