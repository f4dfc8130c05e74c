/*
 * Pools on a GPU, with ref's rules: padding never wins a maximum and is never added, the first of
 * equals wins, a mean is over the pixels that the window sees or over all it covers. Like all
 * launchers of this folder: pointers of the GPU, work queued on a stream of it, and 0 or the
 * runtime's code returned.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "backend/cuda/kernels/conv/window.h"

TDMI_C_BEGIN

/* winners: which pixel of its window each value of y is, counted row by row; NULL: not written. */
int tdmi_cuda_pool_max(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                       const void *x, void *y, uint8_t *winners);
int tdmi_cuda_pool_max_gradient(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                                const void *dy, const uint8_t *winners, void *dx);
int tdmi_cuda_pool_average(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                           const void *x, void *y);
int tdmi_cuda_pool_average_gradient(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                                    const void *dy, void *dx);

/* y (n, channels): the mean of each channel over the pixels of an image. */
int tdmi_cuda_pool_all(struct CUstream_st *queue, enum tdmi_dtype type, int64_t n, int64_t pixels,
                       int channels, const void *x, void *y);
int tdmi_cuda_pool_all_gradient(struct CUstream_st *queue, enum tdmi_dtype type, int64_t n,
                                int64_t pixels, int channels, const void *dy, void *dx);

TDMI_C_END
