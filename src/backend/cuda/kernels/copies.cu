/*
 * Concat and pad. A thread keeps its channels, a vector of them where both tensors allow it, and
 * goes down a chunk of pixels (geometry.h); where a pixel stands in its image is worked out once
 * and then counted on, since dividing offsets of 64 bits would cost more than the copy.
 */
#include "backend/cuda/kernels/copies.h"
#include "backend/cuda/kernels/conv/geometry.h"
#include "backend/cuda/kernels/kernel.cuh"

enum { copy_threads = 256 };

/* This thread's first channel and the pixels it has; false: none. */
struct share {
    int channel;
    int64_t pixel, end;
};

template <int N>
static __device__ __forceinline__ bool find_share(const struct tdmi_cuda_columns &it,
                                                  struct share &share)
{
    share.channel = (int)(blockIdx.y * it.width + threadIdx.x) * N;
    share.pixel = blockIdx.x * it.chunk + threadIdx.y;
    share.end = blockIdx.x * it.chunk + it.chunk;
    if (share.end > it.pixels)
        share.end = it.pixels;
    return share.channel < it.channels;
}

template <class T, int N>
static __device__ __forceinline__ void move(const T *from, T *to)
{
    *reinterpret_cast<vector<T, N> *>(to) = *reinterpret_cast<const vector<T, N> *>(from);
}

template <class T, int N>
__global__ void __launch_bounds__(copy_threads)
    copy_channels(struct tdmi_cuda_columns it, int from_channels, int to_channels, const T *from,
                  T *to)
{
    struct share share;
    if (!find_share<N>(it, share))
        return;
    for (int64_t pixel = share.pixel; pixel < share.end; pixel += it.rows)
        move<T, N>(from + pixel * from_channels + share.channel,
                   to + pixel * to_channels + share.channel);
}

/* Do vectors of `lanes` begin on 16 bytes wherever one of these counts is added up? */
static bool are_whole(int lanes, int a, int b, int c)
{
    return a % lanes == 0 && b % lanes == 0 && c % lanes == 0;
}

extern "C" int tdmi_cuda_copy_channels(struct CUstream_st *queue,
                                       const struct tdmi_cuda_channels_copy *call, const void *from,
                                       void *to)
{
    const struct tdmi_cuda_channels_copy given = *call;
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        constexpr int N = full<T>::lanes;
        const T *first = static_cast<const T *>(from) + given.from_first;
        T *begin = static_cast<T *>(to) + given.to_first;
        const bool is_aligned = lies_on_16(first) && lies_on_16(begin) &&
                                are_whole(N, given.from_channels, given.to_channels, 0);
        const struct tdmi_cuda_columns it =
            tdmi_cuda_columns_of(given.pixels, given.channels, N, is_aligned, 0);
        return launch(it.lanes == N ? copy_channels<T, N> : copy_channels<T, 1>,
                      dim3((unsigned)it.chunks, (unsigned)it.parts),
                      dim3((unsigned)it.width, (unsigned)it.rows), queue, it, given.from_channels,
                      given.to_channels, first, begin);
    });
}

/* ---- frames ----------------------------------------------------------------------------- */

/* How far `rows` pixels are, in images, rows and columns. */
struct stride {
    int pictures, rows, columns;
};

static struct stride stride_of(int pixels, int h, int w)
{
    return stride{pixels / w / h, pixels / w % h, pixels % w};
}

struct place {
    int64_t picture;
    int row, column;
};

static __device__ __forceinline__ void go_on(struct place &place, const struct stride &by, int h,
                                             int w)
{
    place.column += by.columns;
    place.row += by.rows;
    place.picture += by.pictures;
    if (place.column >= w) {
        place.column -= w;
        place.row++;
    }
    if (place.row >= h) {
        place.row -= h;
        place.picture++;
    }
}

/* Over the pixels of y (is_put), or of x. */
template <class T, int N, bool is_put>
__global__ void __launch_bounds__(copy_threads)
    frame(struct tdmi_cuda_frame it, struct tdmi_cuda_columns over, struct stride by, const T *from,
          T *to)
{
    struct share share;
    if (!find_share<N>(over, share))
        return;
    const int h = is_put ? it.out_h : it.h, w = is_put ? it.out_w : it.w;
    const int inside = is_put ? share.channel - it.front : share.channel + it.front;
    const int64_t line = share.pixel / w;
    struct place at = {line / h, (int)(line % h), (int)(share.pixel - line * w)};
    for (int64_t pixel = share.pixel; pixel < share.end; pixel += over.rows) {
        if (is_put) {
            const int row = at.row - it.top, column = at.column - it.left;
            const float none[N] = {};
            T *const y = to + pixel * it.out_channels + share.channel;
            if (row >= 0 && row < it.h && column >= 0 && column < it.w && inside >= 0 &&
                inside < it.channels)
                move<T, N>(
                    from + ((at.picture * it.h + row) * it.w + column) * it.channels + inside, y);
            else
                store<T, N>(y, none);
        } else {
            const int64_t row = at.picture * it.out_h + at.row + it.top;
            move<T, N>(from + (row * it.out_w + at.column + it.left) * it.out_channels + inside,
                       to + pixel * it.channels + share.channel);
        }
        go_on(at, by, h, w);
    }
}

template <bool is_put>
static int run_frame(struct CUstream_st *queue, const struct tdmi_cuda_frame &it, const void *from,
                     void *to)
{
    return by_type(it.type, [=](auto zero) {
        using T = decltype(zero);
        constexpr int N = full<T>::lanes;
        const int h = is_put ? it.out_h : it.h, w = is_put ? it.out_w : it.w;
        const bool is_aligned = lies_on_16(from) && lies_on_16(to) &&
                                are_whole(N, it.channels, it.out_channels, it.front);
        const struct tdmi_cuda_columns over = tdmi_cuda_columns_of(
            it.n * h * w, is_put ? it.out_channels : it.channels, N, is_aligned, 0);
        return launch(over.lanes == N ? frame<T, N, is_put> : frame<T, 1, is_put>,
                      dim3((unsigned)over.chunks, (unsigned)over.parts),
                      dim3((unsigned)over.width, (unsigned)over.rows), queue, it, over,
                      stride_of(over.rows, h, w), static_cast<const T *>(from),
                      static_cast<T *>(to));
    });
}

extern "C" int tdmi_cuda_frame_put(struct CUstream_st *queue, const struct tdmi_cuda_frame *it,
                                   const void *x, void *y)
{
    return run_frame<true>(queue, *it, x, y);
}

extern "C" int tdmi_cuda_frame_take(struct CUstream_st *queue, const struct tdmi_cuda_frame *it,
                                    const void *y, void *x)
{
    return run_frame<false>(queue, *it, y, x);
}
