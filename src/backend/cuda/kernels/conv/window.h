/* How a window goes over images, for depthwise convolutions and pools. */
#pragma once

#include "backend/op.h"
#include "tensor/dtype.h"
#include <stdbool.h>

/* Padding at the bottom and on the right is whatever out_h and out_w need. */
struct tdmi_cuda_window {
    enum tdmi_dtype type; /* of all tensors that have pixels */
    int64_t n;            /* images */
    int h, w, channels;
    int out_h, out_w;
    int kernel, stride, dilation; /* of pools: 1 */
    int top, left;                /* padding */
    bool counts_padding;          /* of means: they divide by kernel² at the border too */
};

static inline struct tdmi_cuda_window tdmi_cuda_window_of(const struct tdmi_op_desc *desc, int n)
{
    const struct tdmi_op_attrs *a = &desc->attrs;
    struct tdmi_cuda_window it;
    it.type = desc->storage;
    it.n = n;
    it.h = desc->in[0].h;
    it.w = desc->in[0].w;
    it.channels = desc->out.c;
    it.out_h = desc->out.h;
    it.out_w = desc->out.w;
    it.kernel = a->kernel;
    it.stride = a->stride;
    it.dilation = a->dilation;
    it.top = a->pad_top;
    it.left = a->pad_left;
    it.counts_padding = a->counts_padding;
    return it;
}
