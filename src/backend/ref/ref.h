/*
 * Inside the reference backend: the one matrix product that convolution and dense layers are
 * written with.
 */
#pragma once

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
