/* hswish and sigmoid, forward and backward: formulas of backend/ref/activations.c, in f32.
 */
#include "backend/cuda/kernels/curves.h"
#include "backend/cuda/kernels/vectors.cuh"

struct hswish {
    static __device__ __forceinline__ float of(float x)
    {
        if (x <= -3.0f)
            return 0.0f;
        return x >= 3.0f ? x : x * (x + 3.0f) / 6.0f;
    }
    static __device__ __forceinline__ float slope(float x)
    {
        if (x <= -3.0f)
            return 0.0f;
        return x >= 3.0f ? 1.0f : (2.0f * x + 3.0f) / 6.0f;
    }
};

struct sigmoid {
    static __device__ __forceinline__ float of(float x)
    {
        return 1.0f / (1.0f + expf(-x)); /* far below 0 the sum is infinite, and this 0 */
    }
    static __device__ __forceinline__ float slope(float y)
    {
        return y * (1.0f - y);
    }
};

template <class T, class Curve, int N>
__global__ void __launch_bounds__(block_threads) bend(const T *x, T *y, int64_t n)
{
    const int64_t at = ((int64_t)blockIdx.x * block_threads + threadIdx.x) * N;
    if (at >= n)
        return;
    float value[N];
    load<T, N>(x + at, value);
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = Curve::of(value[i]);
    store<T, N>(y + at, value);
}

template <class T, class Curve, int N>
__global__ void __launch_bounds__(block_threads)
    bend_gradient(const T *kept, const T *dy, T *dx, int64_t n)
{
    const int64_t at = ((int64_t)blockIdx.x * block_threads + threadIdx.x) * N;
    if (at >= n)
        return;
    float of_kept[N], of_dy[N];
    load<T, N>(kept + at, of_kept);
    load<T, N>(dy + at, of_dy);
#pragma unroll
    for (int i = 0; i < N; i++)
        of_dy[i] *= Curve::slope(of_kept[i]);
    store<T, N>(dx + at, of_dy);
}

template <class Body>
static int by_curve(enum tdmi_act act, Body body)
{
    return act == TDMI_ACT_HSWISH    ? body(hswish())
           : act == TDMI_ACT_SIGMOID ? body(sigmoid())
                                     : TDMI_CUDA_INVALID_VALUE;
}

extern "C" int tdmi_cuda_curve(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act,
                               const void *x, void *y, int64_t n)
{
    const bool is_aligned = lies_on_16(x) && lies_on_16(y);
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        return by_curve(act, [=](auto how) {
            using Curve = decltype(how);
            return in_vectors<T>(is_aligned, n, [=](auto lanes, int64_t at, int64_t rest) {
                constexpr int N = decltype(lanes)::value;
                return launch(bend<T, Curve, N>, blocks_of(rest / N), block_threads, queue,
                              static_cast<const T *>(x) + at, static_cast<T *>(y) + at, rest);
            });
        });
    });
}

extern "C" int tdmi_cuda_curve_gradient(struct CUstream_st *queue, enum tdmi_dtype type,
                                        enum tdmi_act act, const void *kept, const void *dy,
                                        void *dx, int64_t n)
{
    const bool is_aligned = lies_on_16(kept) && lies_on_16(dy) && lies_on_16(dx);
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        return by_curve(act, [=](auto how) {
            using Curve = decltype(how);
            return in_vectors<T>(is_aligned, n, [=](auto lanes, int64_t at, int64_t rest) {
                constexpr int N = decltype(lanes)::value;
                return launch(bend_gradient<T, Curve, N>, blocks_of(rest / N), block_threads, queue,
                              static_cast<const T *>(kept) + at, static_cast<const T *>(dy) + at,
                              static_cast<T *>(dx) + at, rest);
            });
        });
    });
}
