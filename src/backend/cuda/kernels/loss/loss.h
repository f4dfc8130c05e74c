/*
 * What a loss is handed on a GPU: logits, what they are compared with, and where what comes of it
 * goes. softmax.h and logistic.h have what is computed of it.
 */
#ifndef TANDEM_BACKEND_CUDA_LOSS_H
#define TANDEM_BACKEND_CUDA_LOSS_H

#include "backend/op.h"
#include "backend/update.h"
#include "tensor/dtype.h"

struct tdmi_cuda_loss {
    enum tdmi_dtype type; /* of x and dx */
    const void *x;        /* (n, logits) */
    float *y;             /* (n, classes) probabilities, f32 always; backward reads them */
    void *dx;
    int n, logits, classes; /* logits: classes; of logistic, or one that decides between two */
    const int32_t *labels;  /* NULL: only y is wanted */
    const struct tdmi_mixed_label *mixed; /* NULL: none is */
    const float *class_weights;           /* NULL: all 1 */
    double smoothing;
    struct tdmi_judgement *judgements;        /* n of them, where there are labels */
    const struct tdmi_loss_scale *loss_scale; /* dx is multiplied by its scale; NULL: by 1 */
};

#endif
