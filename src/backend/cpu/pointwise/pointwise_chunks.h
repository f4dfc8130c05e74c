/*
 * Common parts of both directions of the 1 × 1 convolution of stride 1 (pointwise.c,
 * pointwise_backward.c): pixels are worked off in chunks, and a team computes a stretch of a few
 * chunks between two waits, each member some blocks of them.
 */
#pragma once

#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/conv/conv_sums.h"
#include "backend/cpu/gemm/strassen.h"

#include <string.h>

enum {
    STEP = 14, /* pixels of a block; chunks are whole blocks */
    WIDE = 2
};

/* Pixels of one image. */
static inline int64_t pixels_of(const struct tdmi_conv_gemm *desc)
{
    return (int64_t)desc->in_h * desc->in_w;
}

static inline int64_t chunk_pixels(int64_t row_floats, int64_t bytes, int64_t least, int64_t most)
{
    int64_t n = bytes / (row_floats * (int64_t)sizeof(float)) / STEP * STEP;
    return n < least ? least : n > most ? most : n;
}

static inline int team_of(const struct tdmi_conv_gemm *desc)
{
    return desc->team > 1 ? desc->team : 1;
}

static inline int64_t pieces_floats(const struct tdmi_conv_gemm *desc, int64_t pixels, int channels)
{
    const struct tdmi_gemm_kernels *kernels = tdmi_gemm_kernels_of(desc->isa);
    return tdmi_pieces_floats(desc->trains_split ? tdmi_strassen_pieces(pixels)
                                                 : tdmi_gemm_blocks(kernels, WIDE, pixels),
                              channels);
}

/* Scratch memory of a member, for products of this depth. */
static inline int64_t split_floats(const struct tdmi_conv_gemm *desc, int depth)
{
    return desc->trains_split ? tdmi_strassen_scratch_floats(depth) : 0;
}

/* Whole chunks, at least `least` pixels of them. */
static inline int64_t stretch_of(const struct tdmi_conv_gemm *desc, int64_t chunk, int64_t least)
{
    const int64_t all = desc->max_images * pixels_of(desc);
    const int64_t chunks = (all + chunk - 1) / chunk, wanted = (least + chunk - 1) / chunk;
    return (wanted < chunks ? wanted : chunks) * chunk;
}

/* The part of n pixels that a member computes: whole blocks. */
static inline struct tdmi_share share_pixels(const struct tdmi_member *member, int64_t n)
{
    const struct tdmi_share steps = tdmi_member_share(member, (n + STEP - 1) / STEP);
    return (struct tdmi_share){steps.first * STEP, steps.end * STEP < n ? steps.end * STEP : n};
}

static inline bool is_streamed(const struct tdmi_conv_gemm *desc, int channels, const float *to)
{
    return !desc->trains_split &&
           tdmi_conv_is_streamed(desc, pixels_of(desc) * channels, channels, to);
}

/* Pixels at to at + n of a tensor, as far as it has them. */
static inline struct tdmi_gemm_ahead ahead_of(const float *tensor, int64_t at, int64_t n,
                                              int64_t pixels, int channels)
{
    int64_t left = pixels - at < n ? pixels - at : n;
    if (!tensor || left <= 0)
        return (struct tdmi_gemm_ahead){NULL, 0};
    return (struct tdmi_gemm_ahead){tensor + at * channels, left * channels};
}

/* The product of a chunk of n pixels, those of `part`; job has what is not the chunk's. split:
 * scratch memory of the member. */
static inline void multiply_chunk(const struct tdmi_conv_gemm *desc,
                                  const struct tdmi_gemm_kernels *kernels,
                                  struct tdmi_gemm_rows *job, const float *a, int64_t a_row,
                                  int64_t n, struct tdmi_share part, float *split)
{
    if (desc->trains_split) {
        tdmi_strassen_rows(kernels, job, a, a_row, n, tdmi_strassen_share(part), split);
        return;
    }
    struct tdmi_gemm_segment segment = {a, 0, job->depth};
    job->segments = &segment;
    job->n_segments = 1;
    job->a_row = a_row;
    job->n_images = 1;
    job->n_lines = 1;
    job->n_rows = (int)n;
    job->wide = WIDE;
    job->c_row = job->columns;
    job->from = part.first;
    job->to = part.end;
    kernels->rows(job);
    job->segments = NULL;
}

/* Add up the pieces of n pixels, chunk after chunk. */
static inline void add_pieces(const struct tdmi_conv_gemm *desc,
                              const struct tdmi_gemm_kernels *kernels, struct tdmi_gemm_rows *job,
                              float *pieces, int64_t piece, int64_t n, int64_t chunk,
                              struct tdmi_share columns)
{
    job->n_images = job->n_lines = 1;
    job->wide = WIDE;
    for (int64_t at = 0; at < n; at += chunk) {
        job->n_rows = (int)(n - at < chunk ? n - at : chunk);
        job->pieces = pieces + at / chunk * piece;
        if (desc->trains_split)
            tdmi_strassen_add_pieces(kernels, job, job->n_rows, columns.first, columns.end);
        else
            tdmi_gemm_add_pieces(kernels, job, columns.first, columns.end);
    }
}

/* Floats of workspace behind the sums. */
int64_t tdmi_pointwise_backward_floats(const struct tdmi_conv_gemm *desc);
void tdmi_pointwise_backward(const struct tdmi_conv_gemm *desc,
                             const struct tdmi_conv_backward *call);
