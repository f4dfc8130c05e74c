/* Values that only move, on a GPU: concat and pad, forward and backward. */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "tensor/dtype.h"
#include <stdint.h>

TDMI_C_BEGIN

/* Some channels of all pixels of one tensor become some of another's. */
struct tdmi_cuda_channels_copy {
    enum tdmi_dtype type;
    int64_t pixels;
    int channels;                   /* that are copied */
    int from_channels, to_channels; /* of a whole pixel */
    int from_first, to_first;       /* the first that is copied, and what it becomes */
};
int tdmi_cuda_copy_channels(struct CUstream_st *queue, const struct tdmi_cuda_channels_copy *it,
                            const void *from, void *to);

/* An image of (h, w, channels) inside one of (out_h, out_w, out_channels). */
struct tdmi_cuda_frame {
    enum tdmi_dtype type;
    int64_t n; /* images */
    int h, w, channels, out_h, out_w, out_channels;
    int top, left, front; /* where its first value lies */
};
/* y: zeros around x. */
int tdmi_cuda_frame_put(struct CUstream_st *queue, const struct tdmi_cuda_frame *it, const void *x,
                        void *y);
/* x: the inside of y. */
int tdmi_cuda_frame_take(struct CUstream_st *queue, const struct tdmi_cuda_frame *it, const void *y,
                         void *x);

TDMI_C_END
