/*
 * Two sums a channel over all pixels, in two passes: blocks add up their chunks (geometry.h), then
 * the chunks are added up. Threads add a few pixels in f32, everything else is double; what is
 * added to what follows from the shape.
 */
#pragma once

#include "backend/cuda/kernels/conv/geometry.h"
#include "backend/cuda/kernels/reduce.cuh"

enum {
    column_threads = 256,
    single_pixels = 16, /* that are added in f32 */
    asked_pixels = 4    /* that are loaded before the first is added */
};

/* Values of a vector for sums: two doubles of each leave no registers for more. */
enum { sum_lanes = 4 };

template <int N, class Read>
static __device__ __forceinline__ void
add_pixel(const Read &read, const typename Read::pixel &pixel, float (&few)[2][N])
{
    float a[N], b[N];
    read.terms(pixel, a, b);
#pragma unroll
    for (int i = 0; i < N; i++) {
        few[0][i] += a[i];
        few[1][i] += b[i];
    }
}

/* partial[chunk][sum][channel]. Read::fetch(offset) loads a pixel; Read::terms(pixel, a, b)
 * computes the two terms of the sums. */
template <int N, class Read>
__global__ void __launch_bounds__(column_threads)
    sum_chunks(Read read, struct tdmi_cuda_columns it, double *partial)
{
    TDM_SHARED(double, room, column_threads *N);
    const int vector_at = (int)(blockIdx.y * it.width + threadIdx.x);
    const bool is_inside = vector_at * N < it.channels;
    const int channel = is_inside ? vector_at * N : 0;
    const int64_t begin = blockIdx.x * it.chunk;
    const int64_t end = begin + it.chunk < it.pixels ? begin + it.chunk : it.pixels;
    const int64_t down = (int64_t)it.rows * it.channels;
    int64_t left = is_inside ? (end - begin - threadIdx.y + it.rows - 1) / it.rows : 0;
    int64_t at = (begin + threadIdx.y) * it.channels + channel;
    double sum[2][N] = {};
    read.prepare(channel);
    while (left > 0) {
        float few[2][N] = {};
        int k = 0;
        for (; k < single_pixels && left >= asked_pixels; k += asked_pixels) {
            typename Read::pixel asked[asked_pixels];
#pragma unroll
            for (int p = 0; p < asked_pixels; p++)
                asked[p] = read.fetch(at + p * down);
#pragma unroll
            for (int p = 0; p < asked_pixels; p++)
                add_pixel<N>(read, asked[p], few);
            at += asked_pixels * down;
            left -= asked_pixels;
        }
        for (; k < single_pixels && left > 0; k++) {
            add_pixel<N>(read, read.fetch(at), few);
            at += down;
            left--;
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            sum[0][i] += (double)few[0][i];
            sum[1][i] += (double)few[1][i];
        }
    }
    double *const mine = partial + (int64_t)blockIdx.x * 2 * it.channels + channel;
    const int own = (int)(threadIdx.y * it.width + threadIdx.x), plane = it.width * it.rows;
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
        for (int i = 0; i < N; i++)
            room[i * plane + own] = sum[k][i];
        add_rows<N>(room, it.width, it.rows);
        for (int i = 0; i < N && threadIdx.y == 0 && is_inside; i++)
            mine[(int64_t)k * it.channels + i] = room[i * plane + own];
        __syncthreads();
    }
}

/*
 * sums[k] = Σ over chunks of partial[chunk · stride + k], k < n. Threads (x, y) of a block: x is a
 * sum, y a row of chunks.
 */
template <class Sum>
__global__ void __launch_bounds__(column_threads)
    add_chunks(const double *partial, int64_t chunks, int64_t stride, int64_t n, int width,
               int rows, Sum *sums)
{
    TDM_SHARED(double, room, column_threads);
    const int64_t k = (int64_t)blockIdx.x * width + threadIdx.x;
    double sum = 0.0;
    for (int64_t chunk = threadIdx.y; chunk < chunks && k < n; chunk += rows)
        sum += partial[chunk * stride + k];
    room[threadIdx.y * width + threadIdx.x] = sum;
    add_rows<1>(room, width, rows);
    if (threadIdx.y == 0 && k < n)
        sums[k] = (Sum)room[threadIdx.x];
}

/*
 * A block adds 32 sums of few chunks, and down to 4 (32 bytes, the least that memory reads) of
 * many, so that a few channels still give work to many blocks. The number of chunks alone decides,
 * and with it the order of the sums.
 */
template <class Sum>
static inline int launch_add_chunks(struct CUstream_st *queue, const double *partial,
                                    int64_t chunks, int64_t stride, int64_t n, Sum *sums)
{
    enum { widest = 32, narrowest = 4, chunks_of_thread = 16 };
    int width = widest;
    while (width > narrowest && chunks > chunks_of_thread * (column_threads / width))
        width /= 2;
    const int rows = column_threads / width;
    return launch(add_chunks<Sum>, dim3((unsigned)((n + width - 1) / width)),
                  dim3((unsigned)width, (unsigned)rows), queue, partial, chunks, stride, n, width,
                  rows, sums);
}

static inline dim3 grid_of(const struct tdmi_cuda_columns &it)
{
    return dim3((unsigned)it.chunks, (unsigned)it.parts);
}

static inline dim3 block_of(const struct tdmi_cuda_columns &it)
{
    return dim3((unsigned)it.width, (unsigned)it.rows);
}

/* body(lanes) for the vectors that the geometry has. */
template <class T, class Body>
static inline int by_lanes(const struct tdmi_cuda_columns &it, Body body)
{
    return it.lanes == 1 ? body(number<1>()) : body(number<full<T>::lanes>());
}
template <class Body>
static inline int by_sum_lanes(const struct tdmi_cuda_columns &it, Body body)
{
    return it.lanes == 1 ? body(number<1>()) : body(number<sum_lanes>());
}
