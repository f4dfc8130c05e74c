/* Activations that bend, on a GPU: hswish and sigmoid. */
#ifndef TANDEM_BACKEND_CUDA_CURVES_H
#define TANDEM_BACKEND_CUDA_CURVES_H

#include "backend/op.h"
#include "tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* y = act(x); n values. act: HSWISH, SIGMOID. */
int tdmi_cuda_curve(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act,
                    const void *x, void *y, int64_t n);
/* dx = dy · slope. kept: hswish: x, sigmoid: y. dx may be dy. */
int tdmi_cuda_curve_gradient(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act,
                             const void *kept, const void *dy, void *dx, int64_t n);

#ifdef __cplusplus
}
#endif

#endif
