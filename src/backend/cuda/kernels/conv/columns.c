/* The geometry of columns.h. */
#include "backend/cuda/kernels/conv/columns.h"

enum { block_threads = 256, usual_depth = 8 /* pixels of a thread */ };

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
    if (most_chunks > 0 && over(pixels, it.rows * depth) > most_chunks)
        depth = over(pixels, it.rows * most_chunks);
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
