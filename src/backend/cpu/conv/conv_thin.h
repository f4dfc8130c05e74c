/*
 * Convolutions of a few channels on small pictures in training: vectors of channels would be mostly
 * empty, so each lane of a vector is another picture of the shard. Pictures are turned into frames
 * (row, column, channel, picture) in scratch memory, small enough for the second cache, and results
 * are turned back row by row. Stride and dilation are 1. One call is one thread's; packed weights
 * are shared.
 *
 * Every value is one chain of additions in the order of the window; gradients of weights are added
 * up picture by picture of a vector, then over the lanes in a fixed tree.
 */
#pragma once

#include "backend/cpu/conv/conv_call.h"
#include "backend/cpu/isa.h"

#include <stddef.h>

struct tdmi_conv_thin {
    int h, w, in, out_h, out_w, out;
    int kernel, top, left; /* padding */
    bool wants_dx;
    /* Applied as y is written: act, NONE or RELU, then the maximum over windows of pool × pool
     * pixels; 0: neither. */
    int pool;
    enum tdmi_act act;
    enum tdmi_isa isa;
};

/* Lanes of a vector: pictures that are worked on at a time. */
int tdmi_conv_thin_lanes(enum tdmi_isa isa);
/* Bytes of frames for one call: they should fit the second cache. */
size_t tdmi_conv_thin_workspace_bytes(const struct tdmi_conv_thin *desc);

size_t tdmi_conv_thin_packed_bytes(const struct tdmi_conv_thin *desc);
/* weights: (kernel, kernel, in, out) */
void tdmi_conv_thin_pack(const struct tdmi_conv_thin *desc, enum tdmi_conv_direction direction,
                         const float *weights, float *packed);

/* ---- what the instruction sets share -------------------------------------------------------- */

/* A correlation over a frame: out channels in groups of wide, pixels in blocks. */
struct tdmi_thin_walk {
    int h, w, in;          /* of what is read */
    int out_h, out_w, out; /* of what is written */
    int kernel, top, left;
    int frame_w; /* out_w + kernel - 1: columns of padding included, rows not */
    int wide;    /* divides out */
};

struct tdmi_thin_walk tdmi_conv_thin_walk(const struct tdmi_conv_thin *desc,
                                          enum tdmi_conv_direction direction);

/* The layout of the workspace, in floats. */
struct tdmi_thin_scratch {
    float *x;      /* frame of x */
    float *dy;     /* frame of dy; without dx only some rows, unpadded */
    float *row;    /* of results, as many as the pool takes */
    float *pooled; /* a row of the pool's, and of its winners */
    float *sums;   /* of the weights' gradient, a vector each; then of the bias' */
    int64_t total; /* floats */
};

struct tdmi_thin_scratch tdmi_conv_thin_scratch(const struct tdmi_conv_thin *desc, void *workspace);
/* Rows of dy that the weights' gradient takes at a time. */
int tdmi_conv_thin_rows(const struct tdmi_conv_thin *desc);

/* Without forms and sums. forward reads of its call n, x, packed, bias, y and workspace; backward
 * n, x, g, packed, dweights, dbias, dx (NULL: not computed) and workspace. With a pool y is its
 * result, and winners as many bytes: the number of the pixel in the window, or pool · pool where
 * act cut it off; the gradients are then those of conv_winners.h. */
struct tdmi_conv_thin_kernels {
    int lanes;
    void (*forward)(const struct tdmi_conv_thin *desc, const struct tdmi_conv_forward *call,
                    uint8_t *winners);
    void (*backward)(const struct tdmi_conv_thin *desc, const struct tdmi_conv_backward *call);
};

extern const struct tdmi_conv_thin_kernels tdmi_conv_thin_scalar, tdmi_conv_thin_avx2,
    tdmi_conv_thin_avx512;
