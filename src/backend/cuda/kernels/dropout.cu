/*
 * Dropout. The generator is a function of where a value stands, so nothing is kept from forward to
 * backward: both draw. A thread has a vector of a sample, four or eight values, for which it makes
 * a block or two of four draws; where samples are no whole vectors it makes a block for each value.
 */
#include "backend/cuda/kernels/dropout.h"
#include "backend/cuda/kernels/kernel.cuh"
#include "base/hash/rng.h"

enum { drop_threads = 256 };

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
__global__ void __launch_bounds__(drop_threads)
    drop(struct tdmi_cuda_dropout it, unsigned blocks, const T *from, T *to)
{
    const unsigned sample = blockIdx.x / blocks;
    const int64_t first =
        ((int64_t)(blockIdx.x - sample * blocks) * drop_threads + threadIdx.x) * N;
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
        const int64_t blocks = (threads + drop_threads - 1) / drop_threads;
        if (blocks * it.n > INT32_MAX)
            return (int)TDMI_CUDA_INVALID_VALUE;
        return launch(is_whole ? drop<T, N> : drop<T, 1>, dim3((unsigned)(blocks * it.n)),
                      dim3(drop_threads), queue, it, (unsigned)blocks, static_cast<const T *>(from),
                      static_cast<T *>(to));
    });
}
