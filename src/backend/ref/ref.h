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

/* The kernel of an activation: float value(float x), and float gradient(float dy, float r) with r
 * of `reads`, call->x[0] or call->y. */
#define TDMI_REF_ACTIVATION(name, reads)                                         \
    static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,    \
                        const struct tdmi_op_call *call)                         \
    {                                                                            \
        (void)stream;                                                            \
        int64_t n = call->n * tdmi_shape_values(desc->out);                      \
        for (int64_t i = 0; i < n; i++)                                          \
            call->y[i] = value(call->x[0][i]);                                   \
    }                                                                            \
    static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,   \
                         const struct tdmi_op_call *call)                        \
    {                                                                            \
        (void)stream;                                                            \
        int64_t n = desc->wants_dx ? call->n * tdmi_shape_values(desc->out) : 0; \
        for (int64_t i = 0; i < n; i++)                                          \
            call->dx[0][i] = gradient(call->dy[i], (reads)[i]);                  \
    }                                                                            \
    const struct tdmi_kernel tdmi_ref_##name = {.forward = forward, .backward = backward}

#endif
