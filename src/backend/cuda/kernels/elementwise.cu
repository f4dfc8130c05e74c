/*
 * Activations and sums of whole tensors. One vector of 16 bytes a thread: what these kernels cost
 * is memory, and enough threads ask for it. Values past the last whole vector, and tensors that do
 * not begin on 16 bytes, go one by one.
 */
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/activation.cuh"
#include "backend/cuda/kernels/vectors.cuh"

/* Each thread has N values at `at`, or one. */
template <class T, class Act, int N>
__global__ void __launch_bounds__(block_threads) act_of(const T *x, T *y, int64_t n)
{
    const int64_t at = ((int64_t)blockIdx.x * block_threads + threadIdx.x) * N;
    if (at >= n)
        return;
    float value[N];
    load<T, N>(x + at, value);
#pragma unroll
    for (int i = 0; i < N; i++)
        value[i] = Act::of(value[i]);
    store<T, N>(y + at, value);
}

template <class T, class Act, int N>
__global__ void __launch_bounds__(block_threads)
    act_gradient(const T *kept, const T *dy, T *dx, int64_t n)
{
    const int64_t at = ((int64_t)blockIdx.x * block_threads + threadIdx.x) * N;
    if (at >= n)
        return;
    float of_kept[N], of_dy[N];
    load<T, N>(kept + at, of_kept);
    load<T, N>(dy + at, of_dy);
#pragma unroll
    for (int i = 0; i < N; i++)
        of_dy[i] = Act::gradient(of_kept[i], of_dy[i]);
    store<T, N>(dx + at, of_dy);
}

template <class T, int N>
__global__ void __launch_bounds__(block_threads) sum(const T *a, const T *b, T *y, int64_t n)
{
    const int64_t at = ((int64_t)blockIdx.x * block_threads + threadIdx.x) * N;
    if (at >= n)
        return;
    float of_a[N], of_b[N];
    load<T, N>(a + at, of_a);
    load<T, N>(b + at, of_b);
#pragma unroll
    for (int i = 0; i < N; i++)
        of_a[i] += of_b[i];
    store<T, N>(y + at, of_a);
}

template <class Body>
static int by_any_act(enum tdmi_act act, Body body)
{
    return act == TDMI_ACT_HSWISH    ? body(hswish_act())
           : act == TDMI_ACT_SIGMOID ? body(sigmoid_act())
                                     : by_act(act, body);
}

extern "C" int tdmi_cuda_act(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act,
                             const void *x, void *y, int64_t n)
{
    const bool is_aligned = lies_on_16(x) && lies_on_16(y);
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        return by_any_act(act, [=](auto how) {
            using Act = decltype(how);
            return in_vectors<T>(is_aligned, n, [=](auto lanes, int64_t at, int64_t rest) {
                constexpr int N = decltype(lanes)::value;
                return launch(act_of<T, Act, N>, blocks_of(rest / N), block_threads, queue,
                              static_cast<const T *>(x) + at, static_cast<T *>(y) + at, rest);
            });
        });
    });
}

extern "C" int tdmi_cuda_act_gradient(struct CUstream_st *queue, enum tdmi_dtype type,
                                      enum tdmi_act act, const void *kept, const void *dy, void *dx,
                                      int64_t n)
{
    const bool is_aligned = lies_on_16(kept) && lies_on_16(dy) && lies_on_16(dx);
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        return by_any_act(act, [=](auto how) {
            using Act = decltype(how);
            return in_vectors<T>(is_aligned, n, [=](auto lanes, int64_t at, int64_t rest) {
                constexpr int N = decltype(lanes)::value;
                return launch(act_gradient<T, Act, N>, blocks_of(rest / N), block_threads, queue,
                              static_cast<const T *>(kept) + at, static_cast<const T *>(dy) + at,
                              static_cast<T *>(dx) + at, rest);
            });
        });
    });
}

extern "C" int tdmi_cuda_sum(struct CUstream_st *queue, enum tdmi_dtype type, const void *a,
                             const void *b, void *y, int64_t n)
{
    const bool is_aligned = lies_on_16(a) && lies_on_16(b) && lies_on_16(y);
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        return in_vectors<T>(is_aligned, n, [=](auto lanes, int64_t at, int64_t rest) {
            constexpr int N = decltype(lanes)::value;
            return launch(sum<T, N>, blocks_of(rest / N), block_threads, queue,
                          static_cast<const T *>(a) + at, static_cast<const T *>(b) + at,
                          static_cast<T *>(y) + at, rest);
        });
    });
}

template <class T>
__global__ void __launch_bounds__(block_threads) fill_random(T *to, int64_t n)
{
    const int64_t at = (int64_t)blockIdx.x * block_threads + threadIdx.x;
    if (at >= n)
        return;
    uint32_t bits = (uint32_t)at * 0x9e3779b9u; /* Wang's mixing of an integer's bits */
    bits = (bits ^ bits >> 16) * 0x7feb352du;
    bits = (bits ^ bits >> 15) * 0x846ca68bu;
    to[at] = of_float<T>((float)(bits >> 8) * 0x1p-23f - 1.0f);
}

extern "C" int tdmi_cuda_fill_random(struct CUstream_st *queue, enum tdmi_dtype type, void *to,
                                     int64_t n)
{
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        return launch(fill_random<T>, blocks_of(n), block_threads, queue, static_cast<T *>(to), n);
    });
}
