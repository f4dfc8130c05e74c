/*
 * The work of winograd.c on tiles of 2 × 2 pixels, written once for every instruction set (isa.h).
 * A tile becomes 16 vectors of channels, its positions, which lie in 16 matrices of (tiles,
 * channels):
 *
 *     B = [ 1  .  .  . ]   G = [ 1   .   . ]   A = [ 1  . ]     y  = Aᵀ [(G w Gᵀ) · (Bᵀ x B)] A
 *         [ .  1 -1  1 ]       [ ½   ½   ½ ]       [ 1  1 ]     dw = Gᵀ [(A dy Aᵀ) · (Bᵀ x B)] G
 *         [-1  1  1  . ]       [ ½  -½   ½ ]       [ 1 -1 ]
 *         [ .  .  . -1 ]       [ .   .   1 ]       [ . -1 ]
 *
 * (Winograd's minimal filtering after Lavin and Gray, "Fast algorithms for convolutional neural
 * networks", 2016.) Channels are multiples of TDMI_WINOGRAD_CHANNELS.
 */
#pragma once

#include "backend/cpu/gemm/gemm.h"

enum {
    TDMI_WINOGRAD_POSITIONS = 16,
    TDMI_WINOGRAD_CHANNELS = 32 /* so that all panels of packed weights are two vectors wide */
};

/* Some tiles, counted in rows of a picture, picture after picture. */
struct tdmi_winograd_tiles {
    int64_t first, n;
    int down, across; /* tiles of a picture */
};

/* Positions of tile i, channel c: at[position · position_step + i · tile_step + c] */
struct tdmi_winograd_places {
    float *at;
    int64_t position_step, tile_step;
};

struct tdmi_winograd_read {
    struct tdmi_winograd_tiles tiles;
    const float *from, *y; /* (n, h, w, channels); y: gradient form only */
    int h, w, channels;
    int row, column;                           /* where the first tile's patch begins */
    const struct tdmi_read_form *read;         /* either this */
    const struct tdmi_gradient_form *gradient; /* or that */
    struct tdmi_winograd_places to;
};

struct tdmi_winograd_write {
    struct tdmi_winograd_tiles tiles;
    struct tdmi_winograd_places from;
    int h, w;                         /* of the result, end->columns channels */
    const struct tdmi_gemm_rows *end; /* c, add, x and residual of the first picture's first pixel;
                                       * no matter how rows are cut */
};

/* weights (3, 3, in, out) and their positions, panels of tdmi_gemm_pack behind each other. */
struct tdmi_winograd_pack {
    const float *weights, *scale; /* scale (out), or NULL: 1 */
    int in, out;
    float *packed;
};

struct tdmi_winograd_kernels {
    /* Bᵀ x B of patches of 4 × 4 pixels, zero outside of the picture */
    void (*patches)(const struct tdmi_winograd_read *job);
    /* A dy Aᵀ of 2 × 2 pixels */
    void (*spread)(const struct tdmi_winograd_read *job);
    /* Aᵀ m A, and the end of it */
    void (*finish)(const struct tdmi_winograd_write *job);
    /* G w Gᵀ: depth in, columns out */
    void (*pack)(const struct tdmi_winograd_pack *job);
    /* The same of the weights rotated by 180°: depth out, columns in; no scale. */
    void (*pack_transposed)(const struct tdmi_winograd_pack *job);
    /* dweights = Gᵀ d G, values first to end - 1 of a place of the window: from positions of matrix
     * values each, (in, out) */
    void (*gather)(const float *positions, int64_t matrix, int64_t first, int64_t end,
                   float *dweights);
};

extern const struct tdmi_winograd_kernels tdmi_winograd_scalar, tdmi_winograd_avx2,
    tdmi_winograd_avx512;
