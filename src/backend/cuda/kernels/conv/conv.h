/*
 * Convolution on a GPU, of any shape: the law there, and what runs where a library does not.
 * Weights (kernel, kernel, in / groups, out) are f32, as parameters are.
 */
#pragma once

#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_conv {
    enum tdmi_dtype type; /* of x, y, dy and dx */
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

#ifdef __cplusplus
}
#endif
