/*
 * Transposing matrices, tile by tile through shared memory so that reads and writes are both whole
 * lines; and the two numbers a channel that a batch norm with running statistics comes down to.
 */
#include "backend/cuda/kernels/conv/conv.h"
#include "backend/cuda/kernels/kernel.cuh"

enum { tile = 32, tile_rows = 8, fold_threads = 128 };

/* from (rows, columns) to (columns, rows) */
template <class From, class To>
__global__ void __launch_bounds__(tile *tile_rows)
    transpose(const From *from, const float *factor, To *to, int64_t rows, int64_t columns)
{
    TDM_SHARED(float, values, tile *(tile + 1)); /* one more: a column lies in 32 banks */
    const int64_t across = (columns + tile - 1) / tile;
    const int64_t row = blockIdx.x / across * tile, column = blockIdx.x % across * tile;
    const int x = (int)threadIdx.x;
    for (int y = (int)threadIdx.y; y < tile; y += tile_rows) {
        if (row + y >= rows || column + x >= columns)
            continue;
        const float value = to_float(from[(row + y) * columns + column + x]);
        values[y * (tile + 1) + x] = factor ? value * factor[column + x] : value;
    }
    __syncthreads();
    for (int y = (int)threadIdx.y; y < tile; y += tile_rows)
        if (column + y < columns && row + x < rows)
            to[(column + y) * rows + row + x] = of_float<To>(values[x * (tile + 1) + y]);
}

template <class From, class To>
static int launch_transpose(struct CUstream_st *queue, const From *from, const float *factor,
                            To *to, int64_t rows, int64_t columns)
{
    const int64_t tiles = (rows + tile - 1) / tile * ((columns + tile - 1) / tile);
    return launch(transpose<From, To>, dim3((unsigned)tiles), dim3(tile, tile_rows), queue, from,
                  factor, to, rows, columns);
}

extern "C" int tdmi_cuda_weights_transpose(struct CUstream_st *queue,
                                           const struct tdmi_cuda_weights *it, const float *weights,
                                           const float *factor, void *transposed)
{
    const struct tdmi_cuda_weights given = *it;
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        return launch_transpose(queue, weights, factor, static_cast<T *>(transposed), given.rows,
                                given.columns);
    });
}

extern "C" int tdmi_cuda_weights_transpose_back(struct CUstream_st *queue,
                                                const struct tdmi_cuda_weights *it,
                                                const void *transposed, float *weights)
{
    const struct tdmi_cuda_weights given = *it;
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        return launch_transpose(queue, static_cast<const T *>(transposed),
                                static_cast<const float *>(NULL), weights, (int64_t)given.columns,
                                given.rows);
    });
}

__global__ void __launch_bounds__(fold_threads) fold(struct tdmi_cuda_weights_fold it)
{
    const int channel = (int)(blockIdx.x * fold_threads + threadIdx.x);
    if (channel >= it.channels)
        return;
    const double old = it.old_bias ? (double)it.old_bias[channel] : 0.0;
    double factor = 1.0, bias = old;
    if (it.scale) {
        factor = (double)it.scale[channel] / sqrt((double)it.variance[channel] + it.epsilon);
        bias = (old - (double)it.mean[channel]) * factor + (double)it.shift[channel];
    }
    it.factor[channel] = (float)factor;
    it.bias[channel] = (float)bias;
}

extern "C" int tdmi_cuda_weights_fold(struct CUstream_st *queue,
                                      const struct tdmi_cuda_weights_fold *it)
{
    const int blocks = (it->channels + fold_threads - 1) / fold_threads;
    return launch(fold, dim3((unsigned)blocks), dim3(fold_threads), queue, *it);
}
