/*
 * Local response normalisation, a value a thread. Neighbours come from the cache: kernel reads a
 * value forward, kernel² backward, since each neighbour's own window is added up again. AlexNet has
 * two of them, on its smallest tensors.
 */
#include "backend/cuda/kernels/lrn.h"
#include "backend/cuda/kernels/kernel.cuh"

enum { lrn_threads = 256 };

/* s of a channel. An even kernel has one channel more before than after. */
template <class T>
static __device__ __forceinline__ float size_of(const struct tdmi_cuda_lrn &it, const T *x,
                                                int channel)
{
    const int before = it.kernel / 2, after = (it.kernel - 1) / 2;
    const int first = channel > before ? channel - before : 0;
    const int end = channel + after < it.channels ? channel + after + 1 : it.channels;
    float sum = 0.0f;
    for (int c = first; c < end; c++) {
        const float value = to_float(x[c]);
        sum += value * value;
    }
    return it.offset + it.part * sum;
}

template <class T>
__global__ void __launch_bounds__(lrn_threads)
    lrn_forward(struct tdmi_cuda_lrn it, const T *x, T *y)
{
    const int64_t at = (int64_t)blockIdx.x * lrn_threads + threadIdx.x;
    if (at >= it.pixels * it.channels)
        return;
    const int64_t first = at / it.channels * it.channels;
    const float size = size_of(it, x + first, (int)(at - first));
    y[at] = of_float<T>(to_float(x[at]) * powf(size, -it.beta));
}

template <class T>
__global__ void __launch_bounds__(lrn_threads)
    lrn_backward(struct tdmi_cuda_lrn it, const T *x, const T *dy, T *dx)
{
    const int64_t at = (int64_t)blockIdx.x * lrn_threads + threadIdx.x;
    if (at >= it.pixels * it.channels)
        return;
    const int64_t first = at / it.channels * it.channels;
    const int channel = (int)(at - first);
    /* those in whose windows the channel is: its own window transposed around */
    const int before = (it.kernel - 1) / 2, after = it.kernel / 2;
    const int begin = channel > before ? channel - before : 0;
    const int end = channel + after < it.channels ? channel + after + 1 : it.channels;
    float pull = 0.0f, own = 0.0f;
    for (int c = begin; c < end; c++) {
        const float size = size_of(it, x + first, c), power = powf(size, -it.beta);
        const float gradient = to_float(dy[first + c]) * power;
        pull += gradient * to_float(x[first + c]) / size;
        own = c == channel ? gradient : own;
    }
    dx[at] = of_float<T>(own - 2.0f * it.part * it.beta * to_float(x[at]) * pull);
}

static int64_t blocks_of(const struct tdmi_cuda_lrn &it)
{
    return (it.pixels * it.channels + lrn_threads - 1) / lrn_threads;
}

extern "C" int tdmi_cuda_lrn_forward(struct CUstream_st *queue, const struct tdmi_cuda_lrn *call,
                                     const void *x, void *y)
{
    const struct tdmi_cuda_lrn it = *call;
    if (blocks_of(it) > INT32_MAX)
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(it.type, [=](auto zero) {
        using T = decltype(zero);
        return launch(lrn_forward<T>, dim3((unsigned)blocks_of(it)), dim3(lrn_threads), queue, it,
                      static_cast<const T *>(x), static_cast<T *>(y));
    });
}

extern "C" int tdmi_cuda_lrn_backward(struct CUstream_st *queue, const struct tdmi_cuda_lrn *call,
                                      const void *x, const void *dy, void *dx)
{
    const struct tdmi_cuda_lrn it = *call;
    if (blocks_of(it) > INT32_MAX)
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(it.type, [=](auto zero) {
        using T = decltype(zero);
        return launch(lrn_backward<T>, dim3((unsigned)blocks_of(it)), dim3(lrn_threads), queue, it,
                      static_cast<const T *>(x), static_cast<const T *>(dy), static_cast<T *>(dx));
    });
}
