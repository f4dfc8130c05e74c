/*
 * Passes over whole tensors, on a GPU: activations, sums, dropout and local response normalisation.
 * Like all launchers of this folder: pointers of the GPU, work queued on a stream of it, and 0 or
 * the runtime's code returned.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "backend/op.h"
#include "tensor/dtype.h"

TDMI_C_BEGIN

/* y = act(x); n values. y may be x. */
int tdmi_cuda_act(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act, const void *x,
                  void *y, int64_t n);
/* dx = dy · slope of act. kept: y, but x of hswish. dx may be dy. */
int tdmi_cuda_act_gradient(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act,
                           const void *kept, const void *dy, void *dx, int64_t n);
/* y = a + b; y may be a or b. */
int tdmi_cuda_sum(struct CUstream_st *queue, enum tdmi_dtype type, const void *a, const void *b,
                  void *y, int64_t n);
/* Values from -1 to 1 that depend only on their index: timing on zeros would show other clocks. */
int tdmi_cuda_fill_random(struct CUstream_st *queue, enum tdmi_dtype type, void *to, int64_t n);

/* The draws of backend/ref/dropout.c. */
struct tdmi_cuda_dropout {
    enum tdmi_dtype type;
    int n;                   /* samples */
    int64_t values;          /* of a sample */
    struct tdmi_draws draws; /* of the generator (base/hash/rng.h) */
    uint32_t first;          /* number of the first four draws */
    float rate, scale;       /* a value stays when its draw is at least the rate, and is scaled */
};
/* to = from where it stays, else 0; from: x or dy. to may be from. */
int tdmi_cuda_dropout_apply(struct CUstream_st *queue, const struct tdmi_cuda_dropout *it,
                            const void *from, void *to);

/* Over channels; formulas: backend/ref/lrn.c. */
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

TDMI_C_END
