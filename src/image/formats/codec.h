/*
 * The interface between an image format and the registry in formats.c. A codec fills a tdmi_image
 * from bytes in memory, or appends a file's bytes to a text; it knows nothing of names, orientation
 * or preprocessing. Its messages state the fault inside the file; formats.c adds the file's name.
 */
#pragma once

#include "image/image.h"

struct tdmi_image_facts;

/* A consumer of rows as they are decoded, instead of a whole image afterwards. */
struct tdmi_row_sink {
    void *self;
    /* NULL, or called by a decoder that can leave detail out, whether it hands out rows or not: how
     * many times smaller may this image be, 1, 2, 4 or 8? width and height are the upright image's,
     * orientation is the one to be applied. Sides are then divided and rounded up. */
    int (*divisor)(void *self, int width, int height, int orientation);
    /* The header is read; the size is that of the rows. Set *is_wanted to false to have the whole
     * image decoded as usual. Only for upright images. Called again when one decoder passes a file
     * to another after some rows: decoding then starts over. */
    tdm_status (*begin)(void *self, int width, int height, bool *is_wanted, tdm_error *err);
    /* n rows of RGB from row first on, in order. n and first are multiples of 4, n but for the last
     * ones. Bytes from rows to end can be read. */
    void (*feed)(void *self, const uint8_t *rows, size_t stride_bytes, const uint8_t *end,
                 int first, int n);
};

struct tdmi_codec_source {
    const uint8_t *bytes;
    size_t length_bytes;
    int64_t max_pixels;               /* above it an image is refused before memory is taken */
    int64_t deadline_ns;              /* of tdmi_clock_ns(): later it is refused */
    int64_t max_ns;                   /* the time it was given, for messages */
    const struct tdmi_row_sink *sink; /* NULL, or an offer that a decoder may leave alone */
    int orientation;                  /* EXIF orientation that will be applied; 1 is upright */
    bool is_strict;  /* of the limits: damaged images are refused though they are complete */
    bool by_library; /* JPEG: not by our own decoder, for tests that compare the two */
};

typedef tdm_status tdmi_codec_decode(const struct tdmi_codec_source *source, tdmi_image *image,
                                     tdm_error *err);
typedef tdm_status tdmi_codec_encode(const tdmi_image *image, int quality, tdmi_text *out,
                                     tdm_error *err);
/* Fills what facts.h asks for without decoding. */
typedef tdm_status tdmi_codec_describe(const uint8_t *bytes, size_t length_bytes,
                                       struct tdmi_image_facts *facts, tdm_error *err);
/* The TIFF block of the file's EXIF data, NULL when there is none. */
typedef const uint8_t *tdmi_codec_find_exif(const uint8_t *bytes, size_t length_bytes,
                                            size_t *exif_bytes);
/* Appends the decoder's name and version: "libwebp 1.2.4". */
typedef void tdmi_codec_write_decoder(tdmi_text *text);
/* Opens the decoder's library on this machine. TDM_E_ABSENT: it is not installed. */
typedef tdm_status tdmi_codec_open(tdm_error *err);

struct tdmi_codec {
    const char *name;
    tdmi_codec_decode *decode;               /* NULL where the build cannot */
    tdmi_codec_encode *encode;               /* NULL where the build cannot */
    tdmi_codec_describe *describe;           /* never NULL but for the unknown format */
    tdmi_codec_find_exif *find_exif;         /* NULL for formats without */
    tdmi_codec_write_decoder *write_decoder; /* NULL: ours, which tandem's version identifies */
    tdmi_codec_open *open;                   /* NULL: nothing has to be opened */
};

const struct tdmi_codec *tdmi_codec_of(enum tdmi_image_format format);
/* Report what a file of no known format is, or its first bytes (stranger.c). */
tdm_status tdmi_codec_refuse_unknown(const uint8_t *bytes, size_t length_bytes,
                                     tdm_error *err) TDM_MUST_USE;

/* Check a header's size against the limit … */
tdm_status tdmi_codec_check_shape(const struct tdmi_codec_source *source, int64_t width,
                                  int64_t height, tdm_error *err) TDM_MUST_USE;
/* … then make the image that large. */
tdm_status tdmi_codec_shape(const struct tdmi_codec_source *source, int64_t width, int64_t height,
                            tdmi_image *image, tdm_error *err) TDM_MUST_USE;

/* TDM_E_INPUT once the deadline has passed; cheap enough for every row. */
tdm_status tdmi_codec_check_time(const struct tdmi_codec_source *source,
                                 tdm_error *err) TDM_MUST_USE;

/* A byte of colour over white, rounded. */
static inline uint8_t tdmi_codec_over_white(unsigned colour, unsigned alpha)
{
    return (uint8_t)((colour * alpha + 255 * (255 - alpha) + 127) / 255);
}

/* As tdmi_image_decode, but a decoder that can hand out rows passes those of an upright image to
 * the sink; image is then only working memory. */
tdm_status tdmi_image_decode_rows(const void *bytes, size_t length_bytes, const char *name,
                                  struct tdmi_image_limits limits, const struct tdmi_row_sink *sink,
                                  tdmi_image *image, tdm_error *err) TDM_MUST_USE;

/* At least this much memory behind image->pixels, whatever its size (room for a workspace). */
tdm_status tdmi_image_reserve(tdmi_image *image, size_t bytes, tdm_error *err) TDM_MUST_USE;

tdmi_codec_decode tdmi_jpeg_decode, tdmi_png_decode, tdmi_bmp_decode, tdmi_ppm_decode,
    tdmi_gif_decode, tdmi_webp_decode, tdmi_tiff_decode, tdmi_heif_decode, tdmi_jxl_decode;
tdmi_codec_encode tdmi_jpeg_encode, tdmi_png_encode, tdmi_bmp_encode, tdmi_ppm_encode;
tdmi_codec_describe tdmi_jpeg_describe, tdmi_png_describe, tdmi_gif_describe, tdmi_webp_describe,
    tdmi_bmp_describe, tdmi_ppm_describe, tdmi_tiff_describe, tdmi_heif_describe, tdmi_jxl_describe;
/* The version linked at run time, not the one of the build. */
tdmi_codec_write_decoder tdmi_jpeg_write_decoder, tdmi_png_write_decoder, tdmi_gif_write_decoder,
    tdmi_webp_write_decoder, tdmi_tiff_write_decoder, tdmi_heif_write_decoder,
    tdmi_jxl_write_decoder;
tdmi_codec_open tdmi_tiff_open, tdmi_heif_open, tdmi_jxl_open;
/* Always built: these only walk bytes. */
tdmi_codec_find_exif tdmi_exif_in_webp, tdmi_exif_in_jpeg, tdmi_exif_in_png, tdmi_exif_in_tiff;

/* How many passes over the image the JPEG file announces; it walks the whole file. */
int64_t tdmi_jpeg_count_scans(const uint8_t *bytes, size_t length_bytes);
/* The orientation tag of a TIFF block; 1 when it has none or is damaged. */
int tdmi_exif_orientation_in(const uint8_t *tiff, size_t length_bytes);
