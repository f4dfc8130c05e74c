/*
 * Pools. Forward, a thread makes a vector of y of the window that it sees; backward, a vector of dx
 * of all windows that see it, in ref's order, so that nothing is added by two threads. Windows that
 * overlap find their pixels in the caches: what lies beside each other is worked on together.
 */
#include "backend/cuda/kernels/pooling.h"
#include "backend/cuda/kernels/cells.cuh"
#include "backend/cuda/kernels/conv/column_sums.cuh"

/* begin <= at < end */
struct span {
    int begin, end;
};

static __device__ __forceinline__ struct span between(int begin, int end, int size)
{
    return {begin > 0 ? begin : 0, end < size ? end : size};
}

/* Range of the `size` pixels that window `at` sees. */
static __device__ __forceinline__ struct span seen_by(const struct tdmi_cuda_window &it, int at,
                                                      int before, int size)
{
    const int begin = at * it.stride - before;
    return between(begin, begin + it.kernel, size);
}

/* Range of the `size` windows that see pixel `at`. */
static __device__ __forceinline__ struct span seeing(const struct tdmi_cuda_window &it, int at,
                                                     int before, int size)
{
    const int last = (at + before) / it.stride, past = at + before - it.kernel;
    return between(past < 0 ? 0 : past / it.stride + 1, last + 1, size);
}

template <class T, int N>
__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS)
    max_pool(struct tdmi_cuda_window it, struct tdmi_cuda_tiles tiles, const T *x, T *y,
             uint8_t *winners)
{
    struct cell cell;
    if (!find_cell<N>(tiles, it.out_h, cell))
        return;
    const struct span rows = seen_by(it, cell.first, it.top, it.h);
    const struct span columns = seen_by(it, cell.column, it.left, it.w);
    const int first_row = cell.first * it.stride - it.top;
    const int first_column = cell.column * it.stride - it.left;
    float best[N] = {};
    vector<uint8_t, N> winner = {};
    bool is_first = true;
    for (int row = rows.begin; row < rows.end; row++)
        for (int column = columns.begin; column < columns.end; column++) {
            float value[N];
            load<T, N>(x + ((cell.picture * it.h + row) * it.w + column) * it.channels +
                           cell.channel,
                       value);
            const int tap = (row - first_row) * it.kernel + column - first_column;
#pragma unroll
            for (int i = 0; i < N; i++)
                if (is_first || value[i] > best[i]) {
                    best[i] = value[i];
                    winner.at[i] = (uint8_t)tap;
                }
            is_first = false;
        }
    const int64_t at =
        ((cell.picture * it.out_h + cell.first) * it.out_w + cell.column) * it.channels +
        cell.channel;
    store<T, N>(y + at, best);
    if (winners)
        *reinterpret_cast<vector<uint8_t, N> *>(winners + at) = winner;
}

template <class T, int N>
__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS)
    max_pool_gradient(struct tdmi_cuda_window it, struct tdmi_cuda_tiles tiles, const T *dy,
                      const uint8_t *winners, T *dx)
{
    struct cell cell;
    if (!find_cell<N>(tiles, it.h, cell))
        return;
    const struct span rows = seeing(it, cell.first, it.top, it.out_h);
    const struct span columns = seeing(it, cell.column, it.left, it.out_w);
    float sum[N] = {};
    for (int row = rows.begin; row < rows.end; row++)
        for (int column = columns.begin; column < columns.end; column++) {
            const int64_t at =
                ((cell.picture * it.out_h + row) * it.out_w + column) * it.channels + cell.channel;
            const int tap = (cell.first + it.top - row * it.stride) * it.kernel + cell.column +
                            it.left - column * it.stride;
            const vector<uint8_t, N> winner =
                *reinterpret_cast<const vector<uint8_t, N> *>(winners + at);
            float value[N];
            load<T, N>(dy + at, value);
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[i] += winner.at[i] == tap ? value[i] : 0.0f;
        }
    store<T, N>(dx + ((cell.picture * it.h + cell.first) * it.w + cell.column) * it.channels +
                    cell.channel,
                sum);
}

/* Factor that makes a window's sum its mean. */
static __device__ __forceinline__ float
weight_of(const struct tdmi_cuda_window &it, const struct span &rows, const struct span &columns)
{
    const int seen = (rows.end - rows.begin) * (columns.end - columns.begin);
    return 1.0f / (float)(it.counts_padding ? it.kernel * it.kernel : seen);
}

template <class T, int N>
__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS)
    average_pool(struct tdmi_cuda_window it, struct tdmi_cuda_tiles tiles, const T *x, T *y)
{
    struct cell cell;
    if (!find_cell<N>(tiles, it.out_h, cell))
        return;
    const struct span rows = seen_by(it, cell.first, it.top, it.h);
    const struct span columns = seen_by(it, cell.column, it.left, it.w);
    const float weight = weight_of(it, rows, columns);
    float sum[N] = {};
    for (int row = rows.begin; row < rows.end; row++)
        for (int column = columns.begin; column < columns.end; column++) {
            float value[N];
            load<T, N>(x + ((cell.picture * it.h + row) * it.w + column) * it.channels +
                           cell.channel,
                       value);
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[i] += value[i];
        }
#pragma unroll
    for (int i = 0; i < N; i++)
        sum[i] *= weight;
    store<T, N>(
        y + ((cell.picture * it.out_h + cell.first) * it.out_w + cell.column) * it.channels +
            cell.channel,
        sum);
}

template <class T, int N>
__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS)
    average_pool_gradient(struct tdmi_cuda_window it, struct tdmi_cuda_tiles tiles, const T *dy,
                          T *dx)
{
    struct cell cell;
    if (!find_cell<N>(tiles, it.h, cell))
        return;
    const struct span rows = seeing(it, cell.first, it.top, it.out_h);
    const struct span columns = seeing(it, cell.column, it.left, it.out_w);
    float sum[N] = {};
    for (int row = rows.begin; row < rows.end; row++)
        for (int column = columns.begin; column < columns.end; column++) {
            const float weight =
                weight_of(it, seen_by(it, row, it.top, it.h), seen_by(it, column, it.left, it.w));
            float value[N];
            load<T, N>(dy + ((cell.picture * it.out_h + row) * it.out_w + column) * it.channels +
                           cell.channel,
                       value);
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[i] += value[i] * weight;
        }
    store<T, N>(dx + ((cell.picture * it.h + cell.first) * it.w + cell.column) * it.channels +
                    cell.channel,
                sum);
}

/* ---- the whole image ---------------------------------------------------------------------- */

/* A block an image and part of its channels: geometry.h with one chunk. */
template <class T, int N>
__global__ void __launch_bounds__(column_threads)
    global_pool(const T *x, T *y, struct tdmi_cuda_columns it)
{
    TDM_SHARED(double, room, column_threads *N);
    const int vector_at = (int)(blockIdx.y * it.width + threadIdx.x);
    const bool is_inside = vector_at * N < it.channels;
    const int channel = is_inside ? vector_at * N : 0;
    const int plane = it.width * it.rows, own = (int)(threadIdx.y * it.width + threadIdx.x);
    const T *const picture = x + (int64_t)blockIdx.x * it.pixels * it.channels + channel;
    double sum[N] = {};
    for (int64_t pixel = threadIdx.y; pixel < it.pixels && is_inside;) {
        float few[N] = {};
        for (int k = 0; k < single_pixels && pixel < it.pixels; k++, pixel += it.rows) {
            float value[N];
            load<T, N>(picture + pixel * it.channels, value);
#pragma unroll
            for (int i = 0; i < N; i++)
                few[i] += value[i];
        }
#pragma unroll
        for (int i = 0; i < N; i++)
            sum[i] += (double)few[i];
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        room[i * plane + own] = sum[i];
    add_rows<N>(room, it.width, it.rows);
    if (threadIdx.y > 0 || !is_inside)
        return;
    float mean[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        mean[i] = (float)(room[i * plane + own] / (double)it.pixels);
    store<T, N>(y + (int64_t)blockIdx.x * it.channels + channel, mean);
}

/* An image is a column of pixels here: each thread writes some below each other. */
template <class T, int N>
__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS)
    global_pool_gradient(struct tdmi_cuda_tiles tiles, const T *dy, T *dx, int pixels, int channels)
{
    struct cell cell;
    if (!find_cell<N>(tiles, pixels, cell))
        return;
    float value[N];
    load<T, N>(dy + cell.picture * channels + cell.channel, value);
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] /= (float)pixels;
    for (int pixel = cell.first; pixel < cell.last; pixel++)
        store<T, N>(dx + (cell.picture * pixels + pixel) * channels + cell.channel, value);
}

/* ---- launching ------------------------------------------------------------------------------ */

/* body(value of the type, lanes): 16 bytes where channels and memory allow it, else one by one. */
template <class Body>
static int by_vectors(enum tdmi_dtype type, int channels, bool is_aligned, Body body)
{
    return by_type(type, [=](auto zero) {
        constexpr int lanes = full<decltype(zero)>::lanes;
        return is_aligned && channels % lanes == 0 ? body(zero, number<lanes>())
                                                   : body(zero, number<1>());
    });
}

template <class... P, class... A>
static int start(struct CUstream_st *queue, void (*kernel)(P...),
                 const struct tdmi_cuda_tiles &tiles, A... given)
{
    if (!tiles.is_for_one_launch)
        return TDMI_CUDA_INVALID_VALUE;
    return launch(kernel, dim3((unsigned)tiles.all_blocks), dim3(TDMI_CUDA_TILE_THREADS), queue,
                  given...);
}

extern "C" int tdmi_cuda_pool_max(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                                  const void *x, void *y, uint8_t *winners)
{
    const struct tdmi_cuda_window it = *shape;
    const bool is_aligned = lies_on_16(x) && lies_on_16(y) && lies_on_16(winners);
    return by_vectors(it.type, it.channels, is_aligned, [=](auto zero, auto lanes) {
        using T = decltype(zero);
        constexpr int N = decltype(lanes)::value;
        const struct tdmi_cuda_tiles tiles =
            tdmi_cuda_tiles_of(it.n, it.out_h, it.out_w, it.channels / N, 1, 1);
        return start(queue, max_pool<T, N>, tiles, it, tiles, static_cast<const T *>(x),
                     static_cast<T *>(y), winners);
    });
}

extern "C" int tdmi_cuda_pool_max_gradient(struct CUstream_st *queue,
                                           const struct tdmi_cuda_window *shape, const void *dy,
                                           const uint8_t *winners, void *dx)
{
    const struct tdmi_cuda_window it = *shape;
    const bool is_aligned = lies_on_16(dy) && lies_on_16(dx) && lies_on_16(winners);
    return by_vectors(it.type, it.channels, is_aligned, [=](auto zero, auto lanes) {
        using T = decltype(zero);
        constexpr int N = decltype(lanes)::value;
        const struct tdmi_cuda_tiles tiles =
            tdmi_cuda_tiles_of(it.n, it.h, it.w, it.channels / N, 1, 1);
        return start(queue, max_pool_gradient<T, N>, tiles, it, tiles, static_cast<const T *>(dy),
                     winners, static_cast<T *>(dx));
    });
}

extern "C" int tdmi_cuda_pool_average(struct CUstream_st *queue,
                                      const struct tdmi_cuda_window *shape, const void *x, void *y)
{
    const struct tdmi_cuda_window it = *shape;
    const bool is_aligned = lies_on_16(x) && lies_on_16(y);
    return by_vectors(it.type, it.channels, is_aligned, [=](auto zero, auto lanes) {
        using T = decltype(zero);
        constexpr int N = decltype(lanes)::value;
        const struct tdmi_cuda_tiles tiles =
            tdmi_cuda_tiles_of(it.n, it.out_h, it.out_w, it.channels / N, 1, 1);
        return start(queue, average_pool<T, N>, tiles, it, tiles, static_cast<const T *>(x),
                     static_cast<T *>(y));
    });
}

extern "C" int tdmi_cuda_pool_average_gradient(struct CUstream_st *queue,
                                               const struct tdmi_cuda_window *shape, const void *dy,
                                               void *dx)
{
    const struct tdmi_cuda_window it = *shape;
    const bool is_aligned = lies_on_16(dy) && lies_on_16(dx);
    return by_vectors(it.type, it.channels, is_aligned, [=](auto zero, auto lanes) {
        using T = decltype(zero);
        constexpr int N = decltype(lanes)::value;
        const struct tdmi_cuda_tiles tiles =
            tdmi_cuda_tiles_of(it.n, it.h, it.w, it.channels / N, 1, 1);
        return start(queue, average_pool_gradient<T, N>, tiles, it, tiles,
                     static_cast<const T *>(dy), static_cast<T *>(dx));
    });
}

extern "C" int tdmi_cuda_pool_all(struct CUstream_st *queue, enum tdmi_dtype type, int64_t n,
                                  int64_t pixels, int channels, const void *x, void *y)
{
    const bool is_aligned = lies_on_16(x) && lies_on_16(y);
    if (n > INT32_MAX)
        return TDMI_CUDA_INVALID_VALUE;
    return by_vectors(type, channels, is_aligned, [=](auto zero, auto lanes) {
        using T = decltype(zero);
        constexpr int N = decltype(lanes)::value;
        const struct tdmi_cuda_columns it = tdmi_cuda_columns_of(pixels, channels, N, 1, 1);
        return launch(global_pool<T, N>, dim3((unsigned)n, (unsigned)it.parts), block_of(it), queue,
                      static_cast<const T *>(x), static_cast<T *>(y), it);
    });
}

extern "C" int tdmi_cuda_pool_all_gradient(struct CUstream_st *queue, enum tdmi_dtype type,
                                           int64_t n, int64_t pixels, int channels, const void *dy,
                                           void *dx)
{
    enum { most_rows = 16 };
    const bool is_aligned = lies_on_16(dy) && lies_on_16(dx);
    if (pixels > INT32_MAX)
        return TDMI_CUDA_INVALID_VALUE;
    return by_vectors(type, channels, is_aligned, [=](auto zero, auto lanes) {
        using T = decltype(zero);
        constexpr int N = decltype(lanes)::value;
        const struct tdmi_cuda_tiles tiles =
            tdmi_cuda_tiles_of(n, (int)pixels, 1, channels / N, 1, most_rows);
        return start(queue, global_pool_gradient<T, N>, tiles, tiles, static_cast<const T *>(dy),
                     static_cast<T *>(dx), (int)pixels, channels);
    });
}
