/* Local response normalisation over channels, on a GPU; formulas: backend/ref/lrn.c. */
#pragma once

#include "tensor/dtype.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_lrn {
    enum tdmi_dtype type;
    int64_t pixels;
    int channels, kernel;
    float part, beta, offset; /* part: alpha / kernel */
};
int tdmi_cuda_lrn_forward(struct CUstream_st *queue, const struct tdmi_cuda_lrn *it, const void *x,
                          void *y);
int tdmi_cuda_lrn_backward(struct CUstream_st *queue, const struct tdmi_cuda_lrn *it, const void *x,
                           const void *dy, void *dx);

#ifdef __cplusplus
}
#endif
