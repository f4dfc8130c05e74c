/*
 * Resampling with all its choices, for callers that want a part of the result: a centre crop costs
 * only the pixels it keeps and equals the same crop of the whole result bit by bit. And resampling
 * of rows as they come, for a decoder whose image need never be whole in memory.
 */
#pragma once

#include "image/image.h"
#include "image/resize/kernels.h"

struct tdmi_resize {
    struct tdmi_box box; /* of the source, in source pixels */
    int width, height;   /* what the box becomes */
    enum tdmi_filter filter;
    int part_x, part_y, part_width, part_height; /* part of the result to compute */
    int reduce_x, reduce_y; /* 2 and more: before, the means of so many pixels replace them */
    const struct tdmi_resize_kernels *kernels; /* NULL: the best of this machine */
};

struct tdmi_rows { /* rows of RGB in somebody's memory */
    uint8_t *pixels;
    size_t stride_bytes;
};

/* target takes the part's size and must be another object than source. */
tdm_status tdmi_image_resize_part(const tdmi_image *source, const struct tdmi_resize *how,
                                  tdmi_image *target, tdm_error *err) TDM_MUST_USE;
/* The same into part_height rows elsewhere; only memory of room is used, its image is lost. */
tdm_status tdmi_image_resize_into(const tdmi_image *source, const struct tdmi_resize *how,
                                  struct tdmi_rows target, tdmi_image *room,
                                  tdm_error *err) TDM_MUST_USE;

/* Rounded means of blocks of factor_x x factor_y pixels, fewer at the right and the bottom, as
 * Pillow's reduce(): (ceil(height / factor_y), ceil(width / factor_x), 3) at target. Factors are 1
 * to 65535. */
void tdmi_image_reduce(const tdmi_image *source, int factor_x, int factor_y, uint8_t *target);

/* Passes of a resize, for decoders that do them elsewhere: which there are, their order, and their
 * axes. With a reduction, they refer to the reduced image. */
struct tdmi_resize_passes {
    bool has_across, has_down; /* neither: the part as it is */
    bool is_transposed;        /* down before across */
    struct tdmi_axis across, down;
};
tdm_status tdmi_resize_passes_of(int width, int height, const struct tdmi_resize *how,
                                 struct tdmi_resize_passes *passes, tdm_error *err) TDM_MUST_USE;

/* ---- rows as they come ----------------------------------------------------------------------- */

struct tdmi_resampler {
    const struct tdmi_resize_kernels *kernels;
    bool has_across, has_down; /* what changes at all */
    bool is_transposed;        /* down before across, as Pillow does it where that is cheaper */
    int source_width, source_height;
    struct tdmi_resize_weights across, down;
    struct tdmi_span columns, rows; /* of the source, that are needed: first and how many */
    uint8_t *quads;                 /* those rows, woven; as wide as the target, or a stretch */
    uint8_t *strip;                 /* a few quads on their way to rows */
    uint8_t *spare;                 /* a few source rows with slack */
    uint8_t *between;               /* with the vertical pass first: its output */
    size_t quad_bytes, strip_bytes; /* from one quad to the next */
    struct tdmi_rows target;        /* of rows that are fed … */
    int n_done;                     /* … and how many of the target's are made */
};

/* Plans for a source of this size, which is not reduced before; memory is room's, which must stay
 * as it is until the end. */
tdm_status tdmi_resampler_begin(struct tdmi_resampler *resampler, int width, int height,
                                const struct tdmi_resize *how, tdmi_image *room,
                                tdm_error *err) TDM_MUST_USE;
/* Can it be fed? Otherwise the whole image is needed at once. Set its target before. */
bool tdmi_resampler_takes_rows(const struct tdmi_resampler *resampler);
/* n source rows from first on, a multiple of 4; n is one too, but for the last rows. The bytes at
 * rows and behind, up to end, can be read. Rows of the target are written as soon as they can be;
 * after the last source row all are. */
void tdmi_resampler_feed(struct tdmi_resampler *resampler, const uint8_t *rows, size_t stride_bytes,
                         const uint8_t *end, int first, int n);
