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

/* Number of values of a type in 16 bytes. */
template <class T>
struct full {
    static constexpr int lanes = 16 / (int)sizeof(T);
};

template <class T, int N>
static __device__ __forceinline__ void load(const T *from, float (&to)[N])
{
    const vector<T, N> values = *reinterpret_cast<const vector<T, N> *>(from);
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = to_float(values.at[i]);
}

template <class T, int N>
static __device__ __forceinline__ void store(T *to, const float (&from)[N])
{
    vector<T, N> values;
#pragma unroll
    for (int i = 0; i < N; i++)
        values.at[i] = of_float<T>(from[i]);
    *reinterpret_cast<vector<T, N> *>(to) = values;
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
