/*
 * Activations and sums of whole tensors, on a GPU. Like all launchers of this folder: pointers of
 * the GPU, work queued on a stream of it, and 0 or the runtime's code returned.
 */
#pragma once

#include "backend/op.h"
#include "tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* CUDA's stream */

/* y = act(x); n values. y may be x. act: NONE, RELU, RELU6, HSWISH, SIGMOID. */
int tdmi_cuda_act(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act, const void *x,
                  void *y, int64_t n);
/* dx, which may be dy: the gradient of act. kept is x of HSWISH, y of the others. */
int tdmi_cuda_act_gradient(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act,
                           const void *kept, const void *dy, void *dx, int64_t n);
/* y = a + b; y may be a or b. */
int tdmi_cuda_sum(struct CUstream_st *queue, enum tdmi_dtype type, const void *a, const void *b,
                  void *y, int64_t n);
/* Values from -1 to 1 that depend only on their index: timing on zeros would show other clocks. */
int tdmi_cuda_fill_random(struct CUstream_st *queue, enum tdmi_dtype type, void *to, int64_t n);

#ifdef __cplusplus
}
#endif
