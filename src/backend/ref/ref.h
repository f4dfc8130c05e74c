/*
 * Inside the reference backend: the one matrix product that convolution and dense layers are
 * written with, and the kernels by name.
 */
#ifndef TANDEM_BACKEND_REF_REF_H
#define TANDEM_BACKEND_REF_REF_H

#include "backend/backend.h"

#define X(name, NAME, inputs) extern const struct tdmi_kernel tdmi_ref_##name;
#include "backend/ops.def"
#undef X

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

void tdmi_ref_sgd(tdmi_stream *stream, const struct tdmi_update_call *call);
void tdmi_ref_blend(tdmi_stream *stream, float *states, const float *sums, int64_t n, float scale,
                    float momentum);

#endif
