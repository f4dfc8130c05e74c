/*
 * Images on a GPU: rows of a table by their numbers, bytes to numbers with what augmentation does
 * to pixels one by one, planes of a JPEG file to RGB, and resizing.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "image/preprocess.h"
#include "image/resize/weights.h"
#include "tensor/dtype.h"
#include <stddef.h>

TDMI_C_BEGIN

/* ---- rows ------------------------------------------------------------------------------------ */

/* Row i of `to` becomes row numbers[i] of the table, for i from 0 to n - 1; nothing for n of 0. All
 * three lie on the GPU. */
int tdmi_cuda_gather(struct CUstream_st *queue, const void *table, size_t row_bytes,
                     const int64_t *numbers, int n, void *to);

/* ---- input ----------------------------------------------------------------------------------- */

/*
 * Bytes of images become numbers; and on the way there, what augmentation does to pixels one by one
 * (image/augment/augment.h): a pixel of y is one pixel of the image, or two where images are mixed.
 */

struct tdmi_cuda_input {
    enum tdmi_dtype type; /* of y */
    int n, h, w, channels;
    struct tdmi_normal normal[3]; /* of channel c: c % 3 */
};
/* pixels: n images, pointers and bytes on the GPU. */
int tdmi_cuda_input_forward(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                            const uint8_t *const *pixels, void *y);

/* The changes of one image, as the GPU reads them. */
struct tdmi_cuda_change {
    int32_t dx, dy, fill, is_flipped;
    int32_t n_colours;
    struct {
        int32_t kind;   /* enum tdmi_augment_colour */
        int32_t factor; /* in 65536ths */
        float turn;     /* of hue: in sixths of the circle, 0 to 6 */
    } colours[4];
    int32_t cut_left, cut_top, cut_right, cut_bottom, cut_fill;
    /* then mixed: with whom (its own number: with nobody), its own part in 256ths, or 256 and the
     * pixels that are the other's */
    int32_t partner, blend, left, top, right, bottom;
};
/* n ints, the mean luma of each image where jitter's contrast asks for it; one or three channels.
 */
int tdmi_cuda_input_means(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                          const uint8_t *const *pixels, const struct tdmi_cuda_change *changes,
                          int32_t *means);
/* As forward, of changed images; means may be NULL where no change has a contrast. */
int tdmi_cuda_input_changed(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                            const uint8_t *const *pixels, const struct tdmi_cuda_change *changes,
                            const int32_t *means, void *y);

/* ---- planes ---------------------------------------------------------------------------------- */

/*
 * Planes of a decoded JPEG file become RGB, upright: colours that have half the samples are widened
 * as libjpeg-turbo's "fancy" upsampling does it, and mixed by its whole numbers (image/
 * jpeg/kernels.h), so that the host's decoder makes the same bytes of the same planes.
 */
struct tdmi_cuda_planes {
    int width, height;         /* as stored */
    int n_components;          /* 1 or 3 */
    int across, down;          /* samples of luma for one of a colour: 1 x 1, 2 x 1 or 2 x 2 */
    int orientation;           /* EXIF's, 1 to 8 */
    const uint8_t *samples[3]; /* luma, blue, red; colours have their sides halved, rounded up */
    int64_t stride_bytes[3];
};

/* pixels: (height, width, 3), sides exchanged by orientations from 5 on. */
int tdmi_cuda_planes_mix(struct CUstream_st *queue, const struct tdmi_cuda_planes *it,
                         uint8_t *pixels);

/* ---- resizing -------------------------------------------------------------------------------- */

/*
 * The passes of a resize by the host's weights and its rounding (image/resize/kernels.h), on rows
 * of RGB: the host's bytes.
 */
/* One dimension; arrays lie on the GPU. */
struct tdmi_cuda_resize {
    int n_outputs, n_taps, n_inputs;
    const struct tdmi_span *spans; /* (n_outputs): where an output's inputs begin */
    const int32_t *taps;           /* (n_outputs, n_taps) */
};

/* Rows that are given begin with column `first` of the inputs, n_rows of (n_columns, 3); to
 * (n_rows, n_outputs, 3). */
int tdmi_cuda_resize_across(struct CUstream_st *queue, const struct tdmi_cuda_resize *it,
                            const uint8_t *rows, int first, int n_columns, int n_rows, uint8_t *to);
/* … begin with row `first`, stride_bytes apart; row_bytes of each, to (n_outputs, row_bytes). */
int tdmi_cuda_resize_down(struct CUstream_st *queue, const struct tdmi_cuda_resize *it,
                          const uint8_t *rows, int first, int64_t stride_bytes, int row_bytes,
                          uint8_t *to);
/* n_rows rows, stride_bytes apart; row_bytes of each, to (n_rows, row_bytes). */
int tdmi_cuda_resize_part(struct CUstream_st *queue, const uint8_t *rows, int64_t stride_bytes,
                          int row_bytes, int n_rows, uint8_t *to);

TDMI_C_END
