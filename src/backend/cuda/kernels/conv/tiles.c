/* The geometry of tiles.h. */
#include "backend/cuda/kernels/conv/tiles.h"

enum {
    fewest_rows = 4,          /* of a part: shorter ones read more rows twice than they gain */
    enough_threads = 1 << 18, /* two to four times what a large GPU holds */
    sum_threads = 256,
    widest = 32,      /* vectors of a block of sums: more lines share one set of sums */
    enough_sums = 512 /* blocks of sums: each writes a set */
};

static int64_t over(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

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
