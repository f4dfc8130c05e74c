/*
 * Convolutions and dense layers on a GPU, of any shape: the law there, and what runs where a
 * library does not. Weights, (kernel, kernel, in / groups, out) or (in, out), are f32, as
 * parameters are.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stddef.h>

TDMI_C_BEGIN

struct tdmi_cuda_conv {
    enum tdmi_dtype type; /* element type of x, y, dy and dx */
    struct tdmi_shape in, out;
    int n, kernel, stride, dilation, groups, pad_top, pad_left;
};

/* bias NULL: none. */
int tdmi_cuda_conv_forward(struct CUstream_st *queue, const struct tdmi_cuda_conv *it,
                           const void *x, const float *weights, const float *bias, void *y);
/* add: like dx, may be dx; NULL: nothing. dx = gradient + add */
int tdmi_cuda_conv_data_gradient(struct CUstream_st *queue, const struct tdmi_cuda_conv *it,
                                 const void *dy, const float *weights, const void *add, void *dx);
/* dweights are sums over the n images. workspace: of tdmi_cuda_conv_workspace_bytes for no fewer
 * images. */
int tdmi_cuda_conv_weight_gradient(struct CUstream_st *queue, const struct tdmi_cuda_conv *it,
                                   const void *x, const void *dy, float *dweights, void *workspace);
size_t tdmi_cuda_conv_workspace_bytes(const struct tdmi_cuda_conv *it);

/* ---- dense layers: y = x w + b --------------------------------------------------------------- */

struct tdmi_cuda_dense {
    enum tdmi_dtype type; /* element type of x, y, dy and dx */
    int n;
    int64_t in, out;
};

/* bias NULL: none. */
int tdmi_cuda_dense_forward(struct CUstream_st *queue, const struct tdmi_cuda_dense *it,
                            const void *x, const float *weights, const float *bias, void *y);
int tdmi_cuda_dense_data_gradient(struct CUstream_st *queue, const struct tdmi_cuda_dense *it,
                                  const void *dy, const float *weights, void *dx);
/* Sums over the n samples. */
int tdmi_cuda_dense_weight_gradient(struct CUstream_st *queue, const struct tdmi_cuda_dense *it,
                                    const void *x, const void *dy, float *dweights);

/* ---- weights --------------------------------------------------------------------------------- */

/* A matrix of weights: rows are taps and channels in, columns are channels out. */
struct tdmi_cuda_weights {
    enum tdmi_dtype type; /* element type of the transposed weights */
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

TDMI_C_END
