/*
 * Activations and sums of whole tensors. One vector of 16 bytes a thread: what these kernels cost
 * is memory, and enough threads ask for it. Values past the last whole vector, and tensors that do
 * not begin on 16 bytes, go one by one.
 */
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/activation.cuh"
#include "base/hash/rng.h"

enum { block_threads = 256 };

/* body(lanes, first value, values): the whole vectors, then the rest. */
template <class T, class Body>
static int in_vectors(bool is_aligned, int64_t n, Body body)
{
    const int64_t whole = is_aligned ? n / full<T>::lanes * full<T>::lanes : 0;
    int code = 0;
    if (whole > 0)
        code = body(number<full<T>::lanes>(), (int64_t)0, whole);
    if (code == 0 && whole < n)
        code = body(number<1>(), whole, n - whole);
    return code;
}

/* More than 2^31 - 1 blocks are more than 2^39 values: no GPU has memory for them. */
static dim3 blocks_of(int64_t threads)
{
    return dim3((unsigned)((threads + block_threads - 1) / block_threads));
}

/* ---- activations and sums -------------------------------------------------------------------- */

template <class T, class Act, int N>
__global__ void __launch_bounds__(block_threads) apply(const T *x, T *y, int64_t n)
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
__global__ void __launch_bounds__(block_threads) add(const T *a, const T *b, T *y, int64_t n)
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
            return in_vectors<T>(is_aligned, n, [=](auto lanes, int64_t at, int64_t rest) {
                constexpr int N = decltype(lanes)::value;
                return launch(apply<T, decltype(how), N>, blocks_of(rest / N), block_threads, queue,
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
            return launch(add<T, N>, blocks_of(rest / N), block_threads, queue,
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

/* ---- dropout --------------------------------------------------------------------------------- */

/*
 * Dropout. The generator is a function of where a value stands, so nothing is kept from forward to
 * backward: both draw. A thread has a vector of a sample, four or eight values, for which it makes
 * a block or two of four draws; where samples are no whole vectors it makes a block for each value.
 */

struct four {
    uint32_t at[4];
};

/* Philox4x32-10, as base/hash/rng.c has it. */
static __device__ __forceinline__ struct four philox(uint32_t c0, uint32_t c1, uint32_t c2,
                                                     uint32_t c3, uint32_t k0, uint32_t k1)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint64_t left = (uint64_t)0xD2511F53u * c0;
        const uint64_t right = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(right >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(left >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)right;
        c3 = (uint32_t)left;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return four{{c0, c1, c2, c3}};
}

/* The key of a seed, as tdmi_rng_at has it. */
static __device__ __forceinline__ uint64_t key_of(uint64_t seed)
{
    uint64_t bits = seed ^ (uint64_t)TDMI_RNG_DROPOUT << 56;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

/* A block's threads are of one sample: `blocks` blocks for each. */
template <class T, int N>
__global__ void __launch_bounds__(block_threads)
    drop(struct tdmi_cuda_dropout it, unsigned blocks, const T *from, T *to)
{
    const unsigned sample = blockIdx.x / blocks;
    const int64_t first =
        ((int64_t)(blockIdx.x - sample * blocks) * block_threads + threadIdx.x) * N;
    if (first >= it.values)
        return;
    const struct tdmi_draw_key *const key = it.draws.key;
    const uint64_t keys = key_of(key ? key->seed : 0);
    const uint32_t epoch = key ? key->epoch : 0;
    const uint64_t whose =
        (uint64_t)(it.draws.samples ? it.draws.samples[sample] : (int64_t)sample);
    const int64_t at = sample * it.values + first;
    float value[N];
    load<T, N>(from + at, value);
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const struct four draws =
            philox(it.first + (uint32_t)((first + i) / 4), epoch, (uint32_t)whose,
                   (uint32_t)(whose >> 32), (uint32_t)keys, (uint32_t)(keys >> 32));
#pragma unroll
        for (int k = 0; k < 4 && i + k < N; k++) {
            const uint32_t word = N == 1 ? draws.at[first % 4] : draws.at[k];
            const float unit = (float)(word >> 8) * 0x1p-24f;
            value[i + k] = unit >= it.rate ? value[i + k] * it.scale : 0.0f;
        }
    }
    store<T, N>(to + at, value);
}

extern "C" int tdmi_cuda_dropout_apply(struct CUstream_st *queue,
                                       const struct tdmi_cuda_dropout *call, const void *from,
                                       void *to)
{
    const struct tdmi_cuda_dropout it = *call;
    return by_type(it.type, [=](auto zero) {
        using T = decltype(zero);
        constexpr int N = full<T>::lanes;
        const bool is_whole = it.values % N == 0 && lies_on_16(from) && lies_on_16(to);
        const int64_t threads = is_whole ? it.values / N : it.values;
        const int64_t blocks = (threads + block_threads - 1) / block_threads;
        if (blocks * it.n > INT32_MAX)
            return (int)TDMI_CUDA_INVALID_VALUE;
        return launch(is_whole ? drop<T, N> : drop<T, 1>, dim3((unsigned)(blocks * it.n)),
                      dim3(block_threads), queue, it, (unsigned)blocks,
                      static_cast<const T *>(from), static_cast<T *>(to));
    });
}

/* ---- local response normalisation ------------------------------------------------------------ */

/*
 * Local response normalisation, a value a thread. Neighbours come from the cache: kernel reads a
 * value forward, kernel² backward, since each neighbour's own window is added up again. AlexNet has
 * two of them, on its smallest tensors.
 */

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
__global__ void __launch_bounds__(block_threads)
    lrn_forward(struct tdmi_cuda_lrn it, const T *x, T *y)
{
    const int64_t at = (int64_t)blockIdx.x * block_threads + threadIdx.x;
    if (at >= it.pixels * it.channels)
        return;
    const int64_t first = at / it.channels * it.channels;
    const float size = size_of(it, x + first, (int)(at - first));
    y[at] = of_float<T>(to_float(x[at]) * powf(size, -it.beta));
}

template <class T>
__global__ void __launch_bounds__(block_threads)
    lrn_backward(struct tdmi_cuda_lrn it, const T *x, const T *dy, T *dx)
{
    const int64_t at = (int64_t)blockIdx.x * block_threads + threadIdx.x;
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

static int64_t lrn_blocks(const struct tdmi_cuda_lrn &it)
{
    return (it.pixels * it.channels + block_threads - 1) / block_threads;
}

extern "C" int tdmi_cuda_lrn_forward(struct CUstream_st *queue, const struct tdmi_cuda_lrn *call,
                                     const void *x, void *y)
{
    const struct tdmi_cuda_lrn it = *call;
    if (lrn_blocks(it) > INT32_MAX)
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(it.type, [=](auto zero) {
        using T = decltype(zero);
        return launch(lrn_forward<T>, dim3((unsigned)lrn_blocks(it)), dim3(block_threads), queue,
                      it, static_cast<const T *>(x), static_cast<T *>(y));
    });
}

extern "C" int tdmi_cuda_lrn_backward(struct CUstream_st *queue, const struct tdmi_cuda_lrn *call,
                                      const void *x, const void *dy, void *dx)
{
    const struct tdmi_cuda_lrn it = *call;
    if (lrn_blocks(it) > INT32_MAX)
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(it.type, [=](auto zero) {
        using T = decltype(zero);
        return launch(lrn_backward<T>, dim3((unsigned)lrn_blocks(it)), dim3(block_threads), queue,
                      it, static_cast<const T *>(x), static_cast<const T *>(dy),
                      static_cast<T *>(dx));
    });
}
