/*
 * Matrix products by oneDNN, for dense layers: any number of rows without preparation. All matrices
 * are stored row by row.
 */
#pragma once

#include "backend/cpu/onednn/primitive.h"

#include <stdatomic.h>
#include <stdint.h>

/* c (rows × columns) = a (rows × depth) · b (depth × columns), or c += … */
struct tdmi_onednn_product {
    int rows, columns, depth;
    bool is_a_transposed, is_b_transposed; /* a is stored (depth × rows), b (columns × depth) */
    bool adds;
    bool goes_by_row; /* each row of c is a product of its own; a is not transposed */
    const float *a, *b;
    float *c;
    tdmi_stream *stream; /* its next wait reports a failure; NULL: none does */
    /* Sizes of the last product, which any thread may write: oneDNN then has kernels for them and
     * needs little memory. 0 at first; NULL: not remembered. */
    _Atomic int64_t *made_for;
};

/* On the calling thread alone. Where oneDNN refuses, or has no room, c is NaN and the stream's next
 * wait fails. */
void tdmi_onednn_multiply(struct tdmi_onednn_threads threads,
                          const struct tdmi_onednn_product *product);
