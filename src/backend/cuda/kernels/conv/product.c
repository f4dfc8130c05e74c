/* The geometry of product.h. */
#include "backend/cuda/kernels/conv/product.h"

/* A block's tile and step; enough blocks for any GPU; what a chunk is worth at least. */
enum { side = 32, step = 32, enough_blocks = 4096, least_depth = 256 };

static int64_t over(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

int64_t tdmi_cuda_product_most_chunks(const struct tdmi_cuda_product *product)
{
    const int64_t tiles = product->row_tiles * product->column_tiles * product->groups;
    const int64_t wanted = enough_blocks / tiles, most = over(product->depth, least_depth);
    const int64_t chunks = wanted < most ? wanted : most;
    return chunks > 1 ? chunks : 1;
}

struct tdmi_cuda_product tdmi_cuda_product_of(int64_t rows, int64_t columns, int64_t depth,
                                              int groups, int has_chunks)
{
    struct tdmi_cuda_product it = {
        .rows = rows,
        .columns = columns,
        .depth = depth,
        .row_tiles = over(rows, side),
        .column_tiles = over(columns, side),
        .groups = groups,
    };
    const int64_t chunks = has_chunks ? tdmi_cuda_product_most_chunks(&it) : 1;
    it.chunk = over(over(depth, chunks), step) * step;
    it.chunks = over(depth, it.chunk);
    return it;
}
