/*
 * How conv_gemm.h cuts a convolution: frames, chunks and what they need of the workspace. A rule of
 * the shape alone, but for the number of images, so that bits do not depend on anything else.
 */
#pragma once

#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/gemm/gemm.h"

/* A piece of a padded picture in scratch memory. */
struct tdmi_conv_frame {
    int h, w;      /* pixels, borders included, of a chunk */
    int64_t pixel; /* floats from one pixel to the next */
    int step;      /* of the window in pixels of the frame: 1 where only sampled pixels are in it */
    int take;      /* pixels of the picture from one of the frame to the next */
};

/* Work is done by whole images, or by some rows of one. */
struct tdmi_conv_chunk {
    int images, rows; /* images > 1 only with all rows */
    struct tdmi_conv_frame frame;
};

static inline int64_t tdmi_conv_frame_floats(const struct tdmi_conv_frame *frame)
{
    return (int64_t)frame->h * frame->w * frame->pixel;
}

/* Is the row of a window contiguous in the frame, so that it is one segment? */
bool tdmi_conv_has_long_rows(const struct tdmi_conv_gemm *desc);
/* The chunk of output rows, over a frame of x. */
struct tdmi_conv_chunk tdmi_conv_chunk_forward(const struct tdmi_conv_gemm *desc);
/* The chunk of input rows, a multiple of the stride (or all), over a frame of dy. */
struct tdmi_conv_chunk tdmi_conv_chunk_input(const struct tdmi_conv_gemm *desc);

/* First row (or column) of the frame of dy: the lowest output that reads input row `first`. */
int tdmi_conv_first_output(int first, int pad, int kernel, int dilation, int stride);
/* The highest output that reads it, or would if there were so many. */
int tdmi_conv_last_output(int last, int pad, int stride);

/* Vectors of a panel for lines of so many pixels. */
int tdmi_conv_wide(int pixels);

/* The chunks that a team computes between two waits, each member a part of all. One thread computes
 * one at a time. */
struct tdmi_conv_stretch {
    struct tdmi_conv_chunk chunk;
    int64_t chunks; /* at most */
    int64_t frames; /* floats of a chunk's frames … */
    int64_t rest;   /* … and of the pieces of its sums, or of its dy */
};

struct tdmi_conv_stretch tdmi_conv_stretch_forward(const struct tdmi_conv_gemm *desc);
struct tdmi_conv_stretch tdmi_conv_stretch_weights(const struct tdmi_conv_gemm *desc);
struct tdmi_conv_stretch tdmi_conv_stretch_input(const struct tdmi_conv_gemm *desc);

struct tdmi_conv_scratch {
    double *sum, *square, *dbias;
    struct tdmi_gemm_segment *segments; /* the member's own */
    float *frames, *rest;               /* frames and dy of all chunks of a stretch */
};

struct tdmi_conv_scratch tdmi_conv_scratch_of(const struct tdmi_conv_gemm *desc,
                                              const struct tdmi_conv_stretch *stretch,
                                              const struct tdmi_member *member, void *workspace);
int64_t tdmi_conv_workspace_floats(const struct tdmi_conv_gemm *desc);
