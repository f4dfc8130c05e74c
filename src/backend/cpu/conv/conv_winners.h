/*
 * Gradients of a thin convolution (conv_thin.h) of which only the winners of a max pool are seen:
 * windows side by side, so one value of each has a gradient and all others have none. Of a pool of
 * 2 × 2 that is a quarter of the products. A winner's gradient times the window of x that it saw
 * goes into the weights' gradient, and times the weights into that of the input.
 *
 * Winners differ from picture to picture, so here a picture is worked on alone, and lanes are
 * values of a window's row: pixels lie in a frame 1, 2, 4 or 8 floats apart, whatever the channels.
 *
 * Gradients of weights are one chain of additions a picture, and one over the pictures.
 */
#pragma once

#include "backend/cpu/conv/conv_thin.h"

/* Kernels of 3 and 5, up to 8 channels in, pools of 2 to 4. */
bool tdmi_conv_winners_can(const struct tdmi_conv_thin *desc);
size_t tdmi_conv_winners_workspace_bytes(const struct tdmi_conv_thin *desc);
size_t tdmi_conv_winners_packed_bytes(const struct tdmi_conv_thin *desc);
/* weights: (kernel, kernel, in, out) */
void tdmi_conv_winners_pack(const struct tdmi_conv_thin *desc, const float *weights, float *packed);
/* Reads from the call n, x, g (the pool's gradient), packed, dweights, dbias, dx and workspace, but
 * no forms and sums. winners: as forward wrote them. */
void tdmi_conv_winners_backward(const struct tdmi_conv_thin *desc,
                                const struct tdmi_conv_backward *call, const uint8_t *winners);

/* ---- what the instruction sets share -------------------------------------------------------- */

enum { TDMI_WINNERS_LANES = 8, TDMI_WINNERS_MOST_POOL = 4 };

/* All in floats. */
struct tdmi_winners_frame {
    int rows, columns; /* padding included */
    int pixel;         /* from one to the next */
    int vectors;       /* that a row of the window spans */
    int64_t values;    /* and what a vector at the end reads beyond */
    int64_t channel;   /* weights of one output channel: kernel · vectors · 8 */
    int pooled_h, pooled_w;
    int no_one;     /* the number that says so: pool · pool */
    int64_t length; /* of a list of winners: as many vectors as hold them */
    float *x, *dx;  /* frames of one picture */
    /* Lists of one image, one a channel: the offset in the frame of the window of the convolution
     * that won, and its gradient. */
    int32_t *at;
    float *g;
    int *counts;
    int32_t *starts, *taps; /* that the lists are made of: conv_winners_list_body.h */
    float *sums, *bias;     /* out · channel, out · 8 */
    int64_t total;
};

struct tdmi_winners_frame tdmi_conv_winners_frame(const struct tdmi_conv_thin *desc,
                                                  void *workspace);

struct tdmi_conv_winners_kernels {
    void (*backward)(const struct tdmi_conv_thin *desc, const struct tdmi_conv_backward *call,
                     const uint8_t *winners);
};

extern const struct tdmi_conv_winners_kernels tdmi_conv_winners_scalar, tdmi_conv_winners_avx2,
    tdmi_conv_winners_avx512;
