/*
 * Softmax and its cross-entropy, on a GPU; formulas and targets: backend/ref/losses.c.
 */
#ifndef TANDEM_BACKEND_CUDA_SOFTMAX_H
#define TANDEM_BACKEND_CUDA_SOFTMAX_H

#include "backend/cuda/kernels/loss/loss.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

int tdmi_cuda_softmax_forward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call);
int tdmi_cuda_softmax_backward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call);

#ifdef __cplusplus
}
#endif

#endif
