/*
 * Included first by every .cu file: CUDA by nvcc, or its shim by any other C++ compiler
 * (tests/backend/cuda/shim/shim.cuh, included before by the build), numbers of three types that
 * arithmetic sees as floats, and vectors of 16 bytes of them.
 *
 * Rules of the folder: offsets are int64_t; shared memory is declared with TDM_SHARED; kernels are
 * started with launch(); sums are taken in an order that the shape alone decides, so no atomics on
 * floats.
 */
#pragma once

#include "tensor/dtype.h"
#include <stdint.h>

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __nv_bfloat16 bf16;
typedef __half f16;

#define TDM_SHARED(type, name, count) __shared__ type name[count]

static __device__ __forceinline__ float to_float(float value)
{
    return value;
}
static __device__ __forceinline__ float to_float(bf16 value)
{
    return __bfloat162float(value);
}
static __device__ __forceinline__ float to_float(f16 value)
{
    return __half2float(value);
}
template <class T>
static __device__ __forceinline__ T of_float(float value);
template <>
__device__ __forceinline__ float of_float<float>(float value)
{
    return value;
}
template <>
__device__ __forceinline__ bf16 of_float<bf16>(float value)
{
    return __float2bfloat16_rn(value);
}
template <>
__device__ __forceinline__ f16 of_float<f16>(float value)
{
    return __float2half_rn(value);
}

static __device__ __forceinline__ float float_of_bits(uint32_t bits)
{
    return __uint_as_float(bits);
}
static __device__ __forceinline__ uint32_t word_of(float low, float high)
{
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&two);
}

/* Returns 0 or CUDA's code; a failure while running shows when the queue is waited for. <<<>>>
 * would leave its code to cudaGetLastError, which also reports earlier failures of the thread. */
template <class... P, class... A>
static inline int launch(void (*kernel)(P...), dim3 grid, dim3 block, struct CUstream_st *queue,
                         A... given)
{
    cudaLaunchConfig_t how = {};
    how.gridDim = grid;
    how.blockDim = block;
    how.stream = queue;
    return (int)cudaLaunchKernelEx(&how, kernel, given...);
}

#elif !defined TANDEM_BACKEND_CUDA_SHIM_CUH
#error "kernels are compiled by nvcc, or by a C++ compiler after the shim (tests/CMakeLists.txt)"
#endif

/* The runtime's code for invalid arguments. */
enum { TDMI_CUDA_INVALID_VALUE = 1 };

/* ---- vectors ---------------------------------------------------------------------------- */

/* N values that are moved as one. */
template <class T, int N>
struct alignas(sizeof(T) * N) vector {
    T at[N];
};
/* Two bf16 to a word: as an array of halves the compiler would move each alone. */
template <int N>
struct alignas(2 * N) vector<bf16, N> {
    uint32_t words[N / 2];
};
template <>
struct vector<bf16, 1> {
    bf16 at[1];
};

/* Number of values of a type in 16 bytes. */
template <class T>
struct full {
    static constexpr int lanes = 16 / (int)sizeof(T);
};

template <class T, int N>
static __device__ __forceinline__ vector<T, N> fetch(const T *from)
{
    return *reinterpret_cast<const vector<T, N> *>(from);
}

/* Zeros where it is not there; `from` may then be NULL. */
template <class T, int N>
static __device__ __forceinline__ vector<T, N> fetch_if(bool is_there, const T *from, int64_t at)
{
    vector<T, N> values = {};
    if (is_there)
        values = fetch<T, N>(from + at);
    return values;
}

template <class T, int N>
static __device__ __forceinline__ void give(const vector<T, N> &values, float (&to)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = to_float(values.at[i]);
}
/* bf16 is the upper half of a float. */
template <int N>
static __device__ __forceinline__ void give(const vector<bf16, N> &values, float (&to)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const uint32_t word = values.words[i / 2];
        to[i] = float_of_bits(i % 2 ? word & 0xffff0000u : word << 16);
    }
}
static __device__ __forceinline__ void give(const vector<bf16, 1> &value, float (&to)[1])
{
    to[0] = to_float(value.at[0]);
}

template <class T, int N>
static __device__ __forceinline__ void load(const T *from, float (&to)[N])
{
    give(fetch<T, N>(from), to);
}

template <class T, int N>
static __device__ __forceinline__ vector<T, N> vector_of(const float (&from)[N], const T *)
{
    vector<T, N> values;
#pragma unroll
    for (int i = 0; i < N; i++)
        values.at[i] = of_float<T>(from[i]);
    return values;
}
template <int N>
static __device__ __forceinline__ vector<bf16, N> vector_of(const float (&from)[N], const bf16 *)
{
    vector<bf16, N> values;
#pragma unroll
    for (int i = 0; i < N; i += 2)
        values.words[i / 2] = word_of(from[i], from[i + 1]);
    return values;
}
static __device__ __forceinline__ vector<bf16, 1> vector_of(const float (&from)[1], const bf16 *)
{
    return {{of_float<bf16>(from[0])}};
}

template <class T, int N>
static __device__ __forceinline__ void store(T *to, const float (&from)[N])
{
    *reinterpret_cast<vector<T, N> *>(to) = vector_of(from, to);
}

/* ---- on the host ------------------------------------------------------------------------ */

static inline bool lies_on_16(const void *memory)
{
    return reinterpret_cast<uintptr_t>(memory) % 16 == 0;
}

/* body(value of the type that dtype names); its return value. */
template <class Body>
static inline int by_type(enum tdmi_dtype dtype, Body body)
{
    switch (dtype) {
    case TDMI_DTYPE_F32:
        return body(float());
    case TDMI_DTYPE_BF16:
        return body(bf16());
    case TDMI_DTYPE_F16:
        return body(f16());
    default:
        return TDMI_CUDA_INVALID_VALUE;
    }
}

/* body(number that is known when compiling); its return value. */
template <int N>
struct number {
    static constexpr int value = N;
};
