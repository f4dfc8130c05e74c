/*
 * Products of matrices that nobody has written down: a problem says what value stands where, and
 * what becomes of a sum.
 *
 *     float left(group, row, k)       float right(group, k, column)
 *     void put(group, chunk, row, column, double sum)
 *     static constexpr bool left_by_k, right_by_k      neighbours in memory differ in k
 *
 * A block has 32 × 32 sums, 16 of them a thread, and walks down its chunk of k 32 at a time. Every
 * sum is taken in the order of k: 256 products in f32, and those in double; so its bits follow from
 * the shape alone.
 */
#pragma once

#include "backend/cuda/kernels/kernel.cuh"
#include "backend/cuda/kernels/conv/geometry.h"

enum {
    product_side = 32,
    product_depth = 32,
    product_threads = 64,
    product_own = 4,                  /* rows, and columns, of a thread */
    product_pitch = product_side + 1, /* of a tile's rows, so that columns lie apart, too */
    product_loads = product_side * product_depth / product_threads,
    single_products = 256 /* that are added in f32 */
};

template <class Problem>
static __device__ __forceinline__ void
load_tiles(const Problem &it, int group, int64_t row, int64_t column, int64_t k, int64_t end,
           const struct tdmi_cuda_product &of, float *left, float *right)
{
    for (int i = 0; i < product_loads; i++) {
        const int at = i * product_threads + (int)threadIdx.x;
        const int side = Problem::left_by_k ? at / product_depth : at % product_side;
        const int deep = Problem::left_by_k ? at % product_depth : at / product_side;
        left[deep * product_pitch + side] =
            row + side < of.rows && k + deep < end ? it.left(group, row + side, k + deep) : 0.0f;
    }
    for (int i = 0; i < product_loads; i++) {
        const int at = i * product_threads + (int)threadIdx.x;
        const int side = Problem::right_by_k ? at / product_depth : at % product_side;
        const int deep = Problem::right_by_k ? at % product_depth : at / product_side;
        right[deep * product_pitch + side] = column + side < of.columns && k + deep < end
                                                 ? it.right(group, k + deep, column + side)
                                                 : 0.0f;
    }
}

static __device__ __forceinline__ void add_tile(const float *left, const float *right, int row,
                                                int column, float (&few)[product_own][product_own])
{
    for (int k = 0; k < product_depth; k++) {
        float a[product_own], b[product_own];
#pragma unroll
        for (int i = 0; i < product_own; i++) {
            a[i] = left[k * product_pitch + row + i];
            b[i] = right[k * product_pitch + column + i * (product_side / product_own)];
        }
#pragma unroll
        for (int i = 0; i < product_own; i++)
#pragma unroll
            for (int j = 0; j < product_own; j++)
                few[i][j] += a[i] * b[j];
    }
}

static __device__ __forceinline__ void keep_few(float (&few)[product_own][product_own],
                                                double (&sum)[product_own][product_own])
{
#pragma unroll
    for (int i = 0; i < product_own; i++)
#pragma unroll
        for (int j = 0; j < product_own; j++) {
            sum[i][j] += (double)few[i][j];
            few[i][j] = 0.0f;
        }
}

/* Blocks along x: tiles of columns, then of rows, then groups, then chunks. */
template <class Problem>
__global__ void __launch_bounds__(product_threads) multiply(Problem it, struct tdmi_cuda_product of)
{
    TDM_SHARED(float, left, product_depth *product_pitch);
    TDM_SHARED(float, right, product_depth *product_pitch);
    int64_t block = blockIdx.x;
    const int64_t first_column = block % of.column_tiles * product_side;
    block /= of.column_tiles;
    const int64_t first_row = block % of.row_tiles * product_side;
    block /= of.row_tiles;
    const int group = (int)(block % of.groups);
    const int64_t chunk = block / of.groups, begin = chunk * of.chunk;
    const int64_t end = begin + of.chunk < of.depth ? begin + of.chunk : of.depth;
    const int row = (int)threadIdx.x / (product_side / product_own) * product_own;
    const int column = (int)threadIdx.x % (product_side / product_own);
    float few[product_own][product_own] = {};
    double sum[product_own][product_own] = {};
    for (int64_t k = begin; k < end; k += product_depth) {
        load_tiles(it, group, first_row, first_column, k, end, of, left, right);
        __syncthreads();
        add_tile(left, right, row, column, few);
        __syncthreads();
        if ((k - begin) % single_products == single_products - product_depth)
            keep_few(few, sum);
    }
    keep_few(few, sum);
#pragma unroll
    for (int i = 0; i < product_own; i++)
#pragma unroll
        for (int j = 0; j < product_own; j++) {
            const int64_t m = first_row + row + i;
            const int64_t n = first_column + column + j * (product_side / product_own);
            if (m < of.rows && n < of.columns)
                it.put(group, chunk, m, n, sum[i][j]);
        }
}

template <class Problem>
static inline int launch_product(struct CUstream_st *queue, const Problem &it,
                                 const struct tdmi_cuda_product &of)
{
    const int64_t blocks = of.row_tiles * of.column_tiles * of.groups * of.chunks;
    if (blocks > INT32_MAX)
        return TDMI_CUDA_INVALID_VALUE;
    return launch(multiply<Problem>, dim3((unsigned)blocks), dim3(product_threads), queue, it, of);
}
