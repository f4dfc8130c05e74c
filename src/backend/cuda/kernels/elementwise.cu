/*
 * Activations and sums of whole tensors. One vector of 16 bytes a thread: what these kernels cost
 * is memory, and enough threads ask for it. Values past the last whole vector, and tensors that do
 * not begin on 16 bytes, go one by one.
 */
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/activation.cuh"
#include "backend/cuda/kernels/vectors.cuh"

/* Calls each thread with its vectors: N values at `at`, or one. */
template <class T, class Act, int N, bool has_second>
__global__ void __launch_bounds__(block_threads) add_act(const T *a, const T *b, T *y, int64_t n)
{
    const int64_t at = ((int64_t)blockIdx.x * block_threads + threadIdx.x) * N;
    if (at >= n)
        return;
    float of_a[N], of_b[N] = {};
    load<T, N>(a + at, of_a);
    if (has_second)
        load<T, N>(b + at, of_b);
#pragma unroll
    for (int i = 0; i < N; i++)
        of_a[i] = Act::of(has_second ? of_a[i] + of_b[i] : of_a[i]);
    store<T, N>(y + at, of_a);
}

template <class T, class Act, int N>
__global__ void __launch_bounds__(block_threads)
    act_gradient(const T *y, const T *dy, T *dx, int64_t n)
{
    const int64_t at = ((int64_t)blockIdx.x * block_threads + threadIdx.x) * N;
    if (at >= n)
        return;
    float of_y[N], of_dy[N];
    load<T, N>(y + at, of_y);
    load<T, N>(dy + at, of_dy);
#pragma unroll
    for (int i = 0; i < N; i++)
        of_dy[i] = Act::gradient(of_y[i], of_dy[i]);
    store<T, N>(dx + at, of_dy);
}

extern "C" int tdmi_cuda_add_act(struct CUstream_st *queue, enum tdmi_dtype type, enum tdmi_act act,
                                 const void *a, const void *b, void *y, int64_t n)
{
    const bool is_aligned = lies_on_16(a) && lies_on_16(b) && lies_on_16(y);
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        return by_act(act, [=](auto how) {
            using Act = decltype(how);
            return in_vectors<T>(is_aligned, n, [=](auto lanes, int64_t at, int64_t rest) {
                constexpr int N = decltype(lanes)::value;
                const T *of_a = static_cast<const T *>(a) + at;
                const T *of_b = b ? static_cast<const T *>(b) + at : nullptr;
                T *of_y = static_cast<T *>(y) + at;
                return launch(b ? add_act<T, Act, N, true> : add_act<T, Act, N, false>,
                              blocks_of(rest / N), block_threads, queue, of_a, of_b, of_y, rest);
            });
        });
    });
}

extern "C" int tdmi_cuda_act_gradient(struct CUstream_st *queue, enum tdmi_dtype type,
                                      enum tdmi_act act, const void *y, const void *dy, void *dx,
                                      int64_t n)
{
    const bool is_aligned = lies_on_16(y) && lies_on_16(dy) && lies_on_16(dx);
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        return by_act(act, [=](auto how) {
            using Act = decltype(how);
            return in_vectors<T>(is_aligned, n, [=](auto lanes, int64_t at, int64_t rest) {
                constexpr int N = decltype(lanes)::value;
                return launch(act_gradient<T, Act, N>, blocks_of(rest / N), block_threads, queue,
                              static_cast<const T *>(y) + at, static_cast<const T *>(dy) + at,
                              static_cast<T *>(dx) + at, rest);
            });
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
