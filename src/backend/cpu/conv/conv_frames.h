/*
 * The frames of a convolution with any window (conv_plan.h) in one direction of a call: where its
 * chunks lie, how a team fills their frames, and the window as segments over one.
 */
#pragma once

#include "backend/cpu/conv/conv_plan.h"

/* The tensor that frames are filled from, through its gradient form, or the read form where that is
 * NULL. */
struct tdmi_conv_source {
    const float *from, *y; /* y: of the gradient form, or NULL */
    const struct tdmi_read_form *read;
    const struct tdmi_gradient_form *gradient;
};

/* A call at work in one direction. */
struct tdmi_conv_work {
    const struct tdmi_conv_gemm *desc;
    const struct tdmi_gemm_kernels *kernels;
    const struct tdmi_member *member;
    bool is_input; /* the gradient of the input, from frames of dy; else frames of x */
    struct tdmi_conv_stretch stretch;
    struct tdmi_conv_scratch scratch;
    struct tdmi_conv_source source;
    int n;                       /* images */
    int first_row, rows;         /* rows computed in each image */
    int image_rows, width, step; /* size of the result; pixels from one of a phase to the next */
};

/* Images and rows of a call that make up a chunk. */
struct tdmi_conv_place {
    int image, images; /* first, how many */
    int row, rows;
};

/* Forward; callers change what differs. The source is not set. */
struct tdmi_conv_work tdmi_conv_work_of(const struct tdmi_conv_gemm *desc,
                                        const struct tdmi_member *member, int n,
                                        const struct tdmi_conv_stretch *stretch, void *workspace);

int64_t tdmi_conv_all_chunks(const struct tdmi_conv_work *work);
struct tdmi_conv_place tdmi_conv_place_of(const struct tdmi_conv_work *work, int64_t chunk);

/* Fill the member's part of the frames of n chunks, a stretch. */
void tdmi_conv_fill_frames(const struct tdmi_conv_work *work, int64_t begin, int64_t n);
static inline float *tdmi_conv_frames_of(const struct tdmi_conv_work *work,
                                         int64_t chunk_of_stretch)
{
    return work->scratch.frames + chunk_of_stretch * work->stretch.frames;
}

/* The window's segments over frames of x, into the scratch memory; returns how many. */
int tdmi_conv_window(const struct tdmi_conv_work *work, const float *frames);
/* The same of the taps that reach the phase of the stride that begins at (row, column) of a place,
 * over frames of dy. */
int tdmi_conv_phase_window(const struct tdmi_conv_work *work, const struct tdmi_conv_place *place,
                           int row, int column, const float *frames);
