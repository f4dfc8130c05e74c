/*
 * One pass over a tensor with numbers for each channel: bias, the folded or the training form of a
 * batch norm, residual and activation.
 */
#pragma once

#include "backend/op.h"
#include "tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_channels {
    enum tdmi_dtype type;       /* of x, residual and y */
    enum tdmi_act act;          /* NONE, RELU, RELU6 */
    const void *x, *residual;   /* (pixels, channels); residual NULL: none */
    void *y;                    /* may be x or residual */
    const float *scale, *shift; /* one a channel; scale NULL: 1, shift NULL: 0 */
    int64_t pixels;
    int channels;
};
/* y = act(scale · x + shift + residual) */
int tdmi_cuda_scale_shift(struct CUstream_st *queue, const struct tdmi_cuda_channels *call);

/* sums[c] = Σ over pixels of dy: the gradient of a bias. workspace: of
 * tdmi_cuda_columns_sum_bytes. */
int tdmi_cuda_channel_sum(struct CUstream_st *queue, enum tdmi_dtype type, const void *dy,
                          int64_t pixels, int channels, float *sums, void *workspace);

#ifdef __cplusplus
}
#endif
