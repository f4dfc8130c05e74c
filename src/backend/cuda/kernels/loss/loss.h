/*
 * Losses on a GPU: softmax with its cross-entropy, and the logistic function with its binary
 * cross-entropy; formulas and targets are those of backend/ref/losses.c.
 */
#pragma once

#include "backend/op.h"
#include "backend/update.h"
#include "tensor/dtype.h"

struct tdmi_cuda_loss {
    enum tdmi_dtype type; /* of x and dx */
    const void *x;        /* (n, logits) */
    float *y;             /* (n, classes) probabilities, f32 always; backward reads them */
    void *dx;
    int n, logits, classes; /* logits: classes; of logistic, or one that decides between two */
    const int32_t *labels;  /* NULL: only y is computed */
    const struct tdmi_mixed_label *mixed; /* NULL: no mixed labels */
    const float *class_weights;           /* NULL: all 1 */
    double smoothing;
    struct tdmi_judgement *judgements;        /* n of them, where there are labels */
    const struct tdmi_loss_scale *loss_scale; /* dx is multiplied by its scale; NULL: by 1 */
};

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

int tdmi_cuda_softmax_forward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call);
int tdmi_cuda_softmax_backward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call);
int tdmi_cuda_logistic_forward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call);
int tdmi_cuda_logistic_backward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call);

#ifdef __cplusplus
}
#endif
