/*
 * Weights as libraries want them: (out, …) of the tensors' type in place of (…, out) in f32, with a
 * batch norm folded in; and a gradient of theirs transposed back.
 */
#pragma once

#include "tensor/dtype.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* A matrix of weights: rows are taps and channels in, columns are channels out. */
struct tdmi_cuda_weights {
    enum tdmi_dtype type; /* of the transposed ones */
    int64_t rows;
    int columns;
};

/* transposed[column][row] = weights[row][column] · factor[column]; factor NULL: 1 */
int tdmi_cuda_weights_transpose(struct CUstream_st *queue, const struct tdmi_cuda_weights *it,
                                const float *weights, const float *factor, void *transposed);
/* weights[row][column] = transposed[column][row] */
int tdmi_cuda_weights_transpose_back(struct CUstream_st *queue, const struct tdmi_cuda_weights *it,
                                     const void *transposed, float *weights);

/* y = factor · x + bias is batch norm of x + old_bias, channel by channel. */
struct tdmi_cuda_weights_fold {
    int channels;
    const float *old_bias;                        /* NULL: none */
    const float *scale, *shift, *mean, *variance; /* all NULL: no norm, only a bias */
    double epsilon;
    float *factor, *bias;
};
int tdmi_cuda_weights_fold(struct CUstream_st *queue, const struct tdmi_cuda_weights_fold *it);

#ifdef __cplusplus
}
#endif
