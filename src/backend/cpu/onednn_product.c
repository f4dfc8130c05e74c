/*
 * oneDNN's plain f32 product. Its matmul primitive wants the number of rows when it is made, so
 * that every ragged shard would need one of its own; it was not faster at the sizes of
 * classifiers (8 × 1280 · 1280 × 1000: both 110 GF/s; 8 × 2048 · 2048 × 512: 72 against 111).
 */
#include "backend/cpu/onednn_product.h"

#include <math.h>

void tdmi_onednn_multiply(struct tdmi_onednn_threads threads,
                          const struct tdmi_onednn_product *product)
{
    const int rows = product->rows, columns = product->columns, depth = product->depth;
    int before = tdmi_onednn_threads_enter(threads);
    dnnl_status_t code =
        dnnl_sgemm(product->is_a_transposed ? 'T' : 'N', product->is_b_transposed ? 'T' : 'N', rows,
                   columns, depth, 1.0f, product->a, product->is_a_transposed ? rows : depth,
                   product->b, product->is_b_transposed ? depth : columns,
                   product->adds ? 1.0f : 0.0f, product->c, columns);
    tdmi_onednn_threads_leave(threads, before);
    for (long i = 0; code != dnnl_success && i < (long)rows * columns; i++)
        product->c[i] = NAN;
}
