/*
 * The logistic function and its binary cross-entropy, on a card; formulas: backend/ref/logistic.c.
 */
#ifndef TANDEM_BACKEND_CUDA_LOGISTIC_H
#define TANDEM_BACKEND_CUDA_LOGISTIC_H

#include "backend/op.h"
#include "backend/update.h"
#include "tensor/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

struct tdmi_cuda_logistic {
    enum tdmi_dtype type; /* of x and dx */
    const void *x;        /* (n, logits) */
    float *y;             /* (n, classes) probabilities, f32 always; backward reads them */
    void *dx;
    int n, logits, classes;               /* logits: classes, or one that decides between two */
    const int32_t *labels;                /* NULL: only y is wanted */
    const struct tdmi_mixed_label *mixed; /* NULL: none is */
    const float *class_weights;           /* NULL: all 1 */
    double smoothing;
    struct tdmi_judgement *judgements;        /* n of them, where there are labels */
    const struct tdmi_loss_scale *loss_scale; /* dx is multiplied by its scale; NULL: by 1 */
};
int tdmi_cuda_logistic_forward(struct CUstream_st *queue, const struct tdmi_cuda_logistic *call);
int tdmi_cuda_logistic_backward(struct CUstream_st *queue, const struct tdmi_cuda_logistic *call);

#ifdef __cplusplus
}
#endif

#endif
