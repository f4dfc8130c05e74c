/*
 * Images in memory: 8-bit RGB, rows top to bottom, no padding between rows.
 * Decoding always ends here: grey, palette, alpha (over white), CMYK and 16-bit files too, with the
 * EXIF orientation applied.
 */
#pragma once

#include "base/text/text.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tdmi_image { /* start from a zeroed object */
    int width, height;
    uint8_t *pixels;       /* (height, width, 3), of tdmi_alloc */
    size_t capacity_bytes; /* decoding into a used image reuses its memory */
} tdmi_image;

void tdmi_image_release(tdmi_image *image);
/* Set the size, growing the memory when needed; pixels are not cleared. */
tdm_status tdmi_image_reshape(tdmi_image *image, int width, int height,
                              tdm_error *err) TDM_MUST_USE;

/* ---- kinds, by content, never by file name ------------------------------------------------ */

enum tdmi_image_format {
    TDMI_IMAGE_UNKNOWN,
#define X(name, extensions, what_brings_it) TDMI_IMAGE_##name,
#include "image/formats/formats.def"
#undef X
    TDMI_IMAGE_FORMATS
};

enum tdmi_image_format tdmi_image_sniff(const void *bytes, size_t length_bytes);
const char *tdmi_image_format_name(enum tdmi_image_format format); /* "JPEG" */
/* The format that a file name's ending promises, whatever the content is. */
enum tdmi_image_format tdmi_image_format_of_name(const char *path);
/* Does the file name end like an image's? */
bool tdmi_image_has_extension(const char *path);
bool tdmi_image_can_decode(enum tdmi_image_format format);
/* The same with the reason: TDM_E_ABSENT names what this build or this machine lacks, and the
 * package that brings it. */
tdm_status tdmi_image_find_decoder(enum tdmi_image_format format, tdm_error *err) TDM_MUST_USE;
/* The Debian package that brings a format's decoder, to a build or to a machine; "": none has to.
 */
const char *tdmi_image_package(enum tdmi_image_format format);
bool tdmi_image_can_encode(enum tdmi_image_format format);
/* Can a build write the format, once its package is there? */
bool tdmi_image_is_written(enum tdmi_image_format format);
/* Appends which libraries decode what, with their versions: "JPEG: libjpeg-turbo 2.1.5 …; PNG: …".
 * Other decoders may make other pixels of the same bytes. Those that are opened at run time only
 * for the formats asked for. */
void tdmi_image_write_decoders(const bool formats[TDMI_IMAGE_FORMATS], tdmi_text *text);

/* Kinds of image files that no build reads, by a file name's ending. */
enum tdmi_image_unread {
#define X(name, words, extensions) TDMI_UNREAD_##name,
#include "image/formats/unread.def"
#undef X
    TDMI_UNREAD_KINDS /* none of them */
};
enum tdmi_image_unread tdmi_image_unread_of_name(const char *path);
const char *tdmi_image_unread_words(enum tdmi_image_unread kind); /* "camera raw files" */

/* ---- decode, encode ------------------------------------------------------------------------ */

enum { TDMI_IMAGE_MOST_PIXELS = 178956970 }; /* as Pillow's bomb check */

struct tdmi_image_limits {
    int64_t max_pixels; /* 0: TDMI_IMAGE_MOST_PIXELS */
    int64_t max_bytes;  /* of the file; 0: 1 GiB */
    int64_t max_ns;     /* for decoding; 0: a minute, which no honest image below 178 million
                           pixels needs */
    /* Refuse also what other programs read with a warning: a JPEG whose coded data lack a piece
     * within a row of blocks, a PNG with a wrong checksum from its pixel data on. */
    bool is_strict;
};

/* name is what messages call the bytes. TDM_E_INPUT: no image, or a damaged, truncated or too
 * large one, or one above a limit (the image's pixels are then undefined); TDM_E_ABSENT: a format
 * this build cannot read. Any thread. */
tdm_status tdmi_image_decode(const void *bytes, size_t length_bytes, const char *name,
                             struct tdmi_image_limits limits, tdmi_image *image,
                             tdm_error *err) TDM_MUST_USE;

/* Appends the file's bytes to out. quality 1–100 for JPEG (4:4:4 with a restart marker
 * a row of blocks from 95 on, else 4:2:0), ignored
 * by the lossless ones. The same image gives the same bytes on every machine (PNG: with the same
 * zlib). */
tdm_status tdmi_image_encode(const tdmi_image *image, enum tdmi_image_format format, int quality,
                             tdmi_text *out, tdm_error *err) TDM_MUST_USE;

/* ---- geometry ------------------------------------------------------------------------------ */

enum tdmi_filter { TDMI_FILTER_LANCZOS, TDMI_FILTER_BICUBIC, TDMI_FILTER_BILINEAR };

/* Antialiased separable resampling in fixed point, equal to Pillow's for the same filter. The box
 * (x, y, width, height in source pixels) is what is scaled to the target's size. target is another
 * object; its memory also holds the workspace, so that a used one allocates nothing. */
struct tdmi_box {
    double x, y, width, height;
};
tdm_status tdmi_image_resize(const tdmi_image *source, struct tdmi_box box, int width, int height,
                             enum tdmi_filter filter, tdmi_image *target,
                             tdm_error *err) TDM_MUST_USE;

/* EXIF orientation 1–8 of a JPEG's, PNG's or WebP's bytes; 1 when there is none. */
int tdmi_exif_orientation(const void *bytes, size_t length_bytes);
/* In place; 5–8 exchange width and height and grow the memory to twice the image. */
tdm_status tdmi_image_orient(tdmi_image *image, int orientation, tdm_error *err) TDM_MUST_USE;
