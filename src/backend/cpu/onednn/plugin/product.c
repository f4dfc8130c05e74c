/*
 * oneDNN's plain f32 product. Its matmul primitive wants the number of rows when it is made, so
 * that every ragged group would need one of its own; it was not faster at the sizes of
 * classifiers (8 × 1280 · 1280 × 1000: both 110 GF/s; 8 × 2048 · 2048 × 512: 72 against 111).
 */
#include "backend/cpu/onednn/plugin/primitive.h"
#include "base/memory.h"

#include <math.h>

static dnnl_status_t multiply(const struct tdmi_onednn_product *product, int first, int n)
{
    const int columns = product->columns, depth = product->depth;
    return dnnl_sgemm(product->is_a_transposed ? 'T' : 'N', product->is_b_transposed ? 'T' : 'N', n,
                      columns, depth, 1.0f, product->a + (int64_t)first * depth,
                      product->is_a_transposed ? n : depth, product->b,
                      product->is_b_transposed ? depth : columns, product->adds ? 1.0f : 0.0f,
                      product->c + (int64_t)first * columns, columns);
}

static dnnl_status_t multiply_all(const struct tdmi_onednn_product *product)
{
    const int step = product->goes_by_row ? 1 : product->rows;
    const int64_t sizes = (int64_t)step << 32 | product->depth; /* a product has its columns */
    const bool is_made =
        product->made_for && atomic_load_explicit(product->made_for, memory_order_relaxed) == sizes;
    if (!tdmi_memory_has_room(is_made ? TDMI_ONEDNN_ROOM_TO_RUN : TDMI_ONEDNN_ROOM_TO_MAKE))
        return dnnl_out_of_memory;
    dnnl_status_t code = dnnl_success;
    const struct tdmi_onednn_before before = tdmi_onednn_enter();
    for (int i = 0; i < product->rows && code == dnnl_success; i += step)
        code = multiply(product, i, step);
    tdmi_onednn_leave(&before);
    if (code == dnnl_success && product->made_for && !is_made)
        atomic_store_explicit(product->made_for, sizes, memory_order_relaxed);
    return code;
}

bool tdmi_onednn_multiply(const struct tdmi_onednn_product *product)
{
    if (multiply_all(product) == dnnl_success)
        return true;
    for (int64_t i = 0; i < (int64_t)product->rows * product->columns; i++)
        product->c[i] = NAN;
    return false;
}
