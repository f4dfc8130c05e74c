/*
 * Softmax of one row of logits, and its gradient, in the instruction sets of this CPU; the bits are
 * those of backend ref, whose losses.c has the formulas.
 */
#pragma once

#include "backend/cpu/isa.h"

/* dx[c] = y[c] · weight - target · class_weights[c], for classes with the same target. */
struct tdmi_softmax_gradient {
    int classes;
    const float *y;
    double weight;              /* of the sample */
    double target;              /* the same for every class */
    const float *class_weights; /* NULL: all 1 */
    float *dx;
};

struct tdmi_softmax_kernels {
    /* Write the probabilities; return the lowest index among the largest logits, and the sum of the
     * powers that the probabilities are parts of. */
    int (*forward)(const float *x, int classes, float *y, double *sum);
    void (*backward)(const struct tdmi_softmax_gradient *call);
};

/* For isa up to tdmi_isa_best(). */
const struct tdmi_softmax_kernels *tdmi_softmax_kernels(enum tdmi_isa isa);

extern const struct tdmi_softmax_kernels tdmi_softmax_scalar, tdmi_softmax_avx2,
    tdmi_softmax_avx512;
