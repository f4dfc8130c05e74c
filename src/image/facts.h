/*
 * Facts of an image file, read by walking its bytes without decoding: for every format and in every
 * build. Together with decoding they give a verdict: a file that decodes is sound; one that does
 * not is truncated when is_cut, else damaged. ICC profiles are reported and ignored: pixels are
 * taken as sRGB, as other readers of data sets do.
 */
#pragma once

#include "image/image.h"

enum tdmi_colours { /* as stored; YCbCr counts as RGB */
                    TDMI_COLOURS_UNKNOWN,
                    TDMI_COLOURS_GREY,
                    TDMI_COLOURS_RGB,
                    TDMI_COLOURS_PALETTE,
                    TDMI_COLOURS_CMYK,
                    TDMI_COLOURS_YCCK,
};

struct tdmi_image_facts {
    enum tdmi_image_format format;
    int64_t width, height; /* as stored: orientations 5 to 8 exchange them when decoding */
    int64_t coded_pixels;  /* pixels that a decoder unpacks at once, where they may be more than the
                              image has: a whole tile, an image before cropping; else 0 */
    int orientation;       /* 1 to 8 */
    enum tdmi_colours colours;
    int bits;         /* of a channel (the widest), or of an index into the palette */
    int64_t n_frames; /* more than one: animated, and only the first is decoded */
    bool has_alpha;   /* a channel, or a transparent colour */
    bool has_icc;
    bool is_layered; /* progressive or interlaced */
    bool is_cut;     /* the bytes end before the image does, or its end mark is missing */
};

/* TDM_E_INPUT: no image, or a header without a size; format, is_cut and the other facts found are
 * set then too. Allocates nothing. name is used in messages. Any thread. */
tdm_status tdmi_image_describe(const void *bytes, size_t length_bytes, const char *name,
                               struct tdmi_image_facts *facts, tdm_error *err) TDM_MUST_USE;

/* Is this a JPEG whose header gives this size, as stored? Reads no further than that, so it is
 * cheap. */
bool tdmi_image_is_jpeg_of(const void *bytes, size_t length_bytes, int width, int height);
