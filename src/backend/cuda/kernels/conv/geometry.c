/* The geometry of geometry.h. */
#include "backend/cuda/kernels/conv/geometry.h"

/* ---- columns --------------------------------------------------------------------------------- */

enum {
    block_threads = 256,
    usual_depth = 8, /* pixels of a thread */
    sum_depth = 32,  /* the most where a block writes sums, which others read again */
    sum_blocks = 512 /* a thread of sums takes fewer pixels where there would be fewer blocks */
};

static int64_t over(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

struct tdmi_cuda_columns tdmi_cuda_columns_of(int64_t pixels, int channels, int lanes,
                                              int is_aligned, int64_t most_chunks)
{
    struct tdmi_cuda_columns it = {.pixels = pixels, .channels = channels};
    it.lanes = is_aligned && channels % lanes == 0 ? lanes : 1;
    const int vectors = channels / it.lanes;
    it.parts = (int)over(vectors, block_threads);
    it.width = (int)over(vectors, it.parts);
    it.rows = block_threads / it.width;
    int64_t depth = usual_depth;
    if (most_chunks > 0) {
        const int64_t wanted = pixels * it.parts / ((int64_t)it.rows * sum_blocks);
        depth = wanted < usual_depth ? usual_depth : wanted > sum_depth ? sum_depth : wanted;
        if (over(pixels, it.rows * depth) > most_chunks)
            depth = over(pixels, it.rows * most_chunks);
    }
    it.chunk = it.rows * depth;
    it.chunks = over(pixels, it.chunk);
    return it;
}

size_t tdmi_cuda_columns_sum_bytes(int64_t pixels, int channels)
{
    /* Without vectors there are fewest rows a block, and most chunks. */
    int64_t chunks = tdmi_cuda_columns_of(pixels, channels, 1, 1, 0).chunks;
    if (chunks > TDMI_CUDA_SUM_CHUNKS)
        chunks = TDMI_CUDA_SUM_CHUNKS;
    return (size_t)chunks * 2 * (size_t)channels * sizeof(double);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

enum {
    fewest_rows = 4, /* rows of a part: shorter parts read more rows twice than they gain */
    enough_threads = 1 << 17, /* twice what a large GPU runs at once of depthwise kernels */
    sum_threads = 256,
    widest = 32,      /* vectors of a block of sums: more lines share one set of sums */
    enough_sums = 512 /* blocks of sums: each writes a set */
};

struct tdmi_cuda_tiles tdmi_cuda_tiles_of(int64_t n, int h, int w, int vectors, int columns,
                                          int most_rows)
{
    struct tdmi_cuda_tiles it = {.columns = columns, .vectors = vectors};
    it.strips = (int)over(w, columns);
    it.rows = (int)over(h, over(h, most_rows));
    const int64_t row_of_cells = (int64_t)it.strips * vectors;
    while (it.rows > fewest_rows && n * row_of_cells * over(h, it.rows) < enough_threads)
        it.rows = (it.rows + 1) / 2;
    it.parts = (int)over(h, it.rows);
    it.threads = row_of_cells * it.parts;
    it.blocks = over(it.threads, TDMI_CUDA_TILE_THREADS);
    it.all_blocks = n * it.blocks;
    it.is_for_one_launch = it.threads <= INT32_MAX && it.all_blocks <= INT32_MAX;
    return it;
}

struct tdmi_cuda_sum_tiles tdmi_cuda_sum_tiles_of(int64_t n, int h, int w, int vectors, int columns,
                                                  int most_rows, int most_pixels)
{
    struct tdmi_cuda_sum_tiles it = {.cells =
                                         tdmi_cuda_tiles_of(n, h, w, vectors, columns, most_rows)};
    it.n_cells = n * it.cells.strips * it.cells.parts;
    it.beside = (int)over(vectors, widest);
    it.width = (int)over(vectors, it.beside);
    it.lines = sum_threads / it.width;
    const int64_t most = most_pixels / (it.cells.columns * it.cells.rows);
    int64_t depth = over(it.n_cells * it.beside, (int64_t)it.lines * enough_sums);
    depth = depth > most ? most : depth;
    it.depth = (int)(depth > 1 ? depth : 1);
    it.chunks = over(it.n_cells, (int64_t)it.lines * it.depth);
    return it;
}

/* ---- products -------------------------------------------------------------------------------- */

/* A block's tile and step; enough blocks for any GPU; what a chunk is worth at least. */
enum { side = 32, step = 32, enough_blocks = 4096, least_depth = 256 };

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
