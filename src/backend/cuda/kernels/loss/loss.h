/*
 * Losses on a GPU: softmax and the logistic function, each with its cross-entropy (formulas and
 * targets: backend/ref/losses.c), and their sums over a group.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "backend/op.h"
#include "backend/update.h"
#include "tensor/dtype.h"
#include <stdbool.h>

TDMI_C_BEGIN

struct tdmi_cuda_loss {
    enum tdmi_dtype type; /* of x and dx */
    bool is_logistic;     /* else softmax */
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

int tdmi_cuda_loss_forward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call);
int tdmi_cuda_loss_backward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call);

/* As update->tail of backend/backend.h. */
int tdmi_cuda_tail(struct CUstream_st *queue, const struct tdmi_judgement *judgements,
                   const int32_t *labels, const struct tdmi_mixed_label *mixed, int n, float *tail);

TDMI_C_END
