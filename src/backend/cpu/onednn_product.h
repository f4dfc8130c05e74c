/*
 * Matrix products by oneDNN, for dense layers: any number of rows without preparation. All matrices
 * are stored row by row.
 */
#ifndef TANDEM_BACKEND_CPU_ONEDNN_PRODUCT_H
#define TANDEM_BACKEND_CPU_ONEDNN_PRODUCT_H

#include "backend/cpu/onednn_primitive.h"

/* c (rows × columns) = a (rows × depth) · b (depth × columns), or c += … */
struct tdmi_onednn_product {
    int rows, columns, depth;
    bool is_a_transposed, is_b_transposed; /* a is stored (depth × rows), b (columns × depth) */
    bool adds;
    const float *a, *b;
    float *c;
};

/* On the calling thread alone. NaN in c when oneDNN refuses, which it has no reason to. */
void tdmi_onednn_multiply(struct tdmi_onednn_threads threads,
                          const struct tdmi_onednn_product *product);

#endif
