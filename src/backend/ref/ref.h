/*
 * Inside the reference backend: the one matrix product that convolution and dense layers are
 * written with.
 */
#ifndef TANDEM_BACKEND_REF_REF_H
#define TANDEM_BACKEND_REF_REF_H

#include "backend/ref_kernels.h"

/* A matrix product with free strides on the left side:
 *
 *     c[m][n] += sum over k of a[m * a_row + k * a_column] * b[k * b_row + n]
 *
 * for m < rows, n < columns, k < depth. Every c[m][n] is one chain of additions in the order of k,
 * whatever the vector width: the same bits on every machine. */
struct tdmi_product {
    int rows, columns, depth;
    const float *a;
    int64_t a_row, a_column;
    const float *b;
    int64_t b_row;
    float *c;
    int64_t c_row;
};
void tdmi_ref_multiply_add(const struct tdmi_product *product);

/* to[j][i] = from[i][j] for i < rows, j < columns */
void tdmi_ref_transpose(const float *from, int rows, int columns, float *to);

/* How much of sample i belongs to a class: 1 or 0 by its label, parts of 1 where it was mixed, and
 * in training smoothed: (1 - s) of that and s / classes to every class. */
double tdmi_ref_target(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                       int class);
/* 1 unless training is given weights. */
double tdmi_ref_class_weight(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                             int class);

#endif
