/*
 * Dense layers on a GPU, of any shape: the law there, and what runs where a library does not.
 * y = x w + b; weights (in, out) are f32, as parameters are.
 */
#pragma once

#include "tensor/dtype.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_dense {
    enum tdmi_dtype type; /* of x, y, dy and dx */
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

#ifdef __cplusplus
}
#endif
