/*
 * CUDA's side of C++ for a processor: what the kernels of this folder are written with, so that any
 * C++ compiler makes them run here and tests compare them with ref (docs/design/gpu.md, "Tested
 * without a GPU").
 *
 * Threads of a block take turns on one thread of the processor. Each runs until it ends, or until
 * it has to meet others, at a barrier or in a warp; then the next one runs. A kernel that meets
 * nobody costs a call a thread. Divergence is therefore what it is on a GPU, and what is undefined
 * there (a barrier that some threads miss, a shuffle with lanes that are gone, memory shared before
 * it was written) is an error or a NaN here. Included by kernel.cuh alone, where nvcc is not the
 * compiler.
 */
#ifndef TANDEM_BACKEND_CUDA_SHIM_CUH
#define TANDEM_BACKEND_CUDA_SHIM_CUH

#include "backend/cuda/shim/shim_run.h"
#include "tensor/half.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z)
    {
    }
};

/* ---- numbers ---------------------------------------------------------------------------- */

struct bf16 {
    uint16_t bits;
};
struct f16 {
    uint16_t bits;
};

static inline float to_float(float value)
{
    return value;
}
static inline float to_float(bf16 value)
{
    return tdmi_float_of_bf16(value.bits);
}
static inline float to_float(f16 value)
{
    return tdmi_float_of_f16(value.bits);
}

template <class T>
static inline T of_float(float value);
template <>
inline float of_float<float>(float value)
{
    return value;
}
/* To the nearest, of two equally near the even one, as cvt.rn does. */
template <>
inline bf16 of_float<bf16>(float value)
{
    const uint32_t bits = tdmi_bits_of_float(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return bf16{0x7fff};
    return bf16{(uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
static inline float float_of_bits(uint32_t bits)
{
    return tdmi_float_of_bits(bits);
}
static inline uint32_t word_of(float low, float high)
{
    return of_float<bf16>(low).bits | (uint32_t)of_float<bf16>(high).bits << 16;
}
template <>
inline f16 of_float<f16>(float value)
{
    return f16{tdmi_f16_of_float(value)};
}

/* ---- meeting others --------------------------------------------------------------------- */

#define TDM_SHARED(type, name, count)     \
    static const char mark_of_##name = 0; \
    type *const name = (type *)tdmi_shim_shared(&mark_of_##name, sizeof(type) * (count))

#define __syncthreads() tdmi_shim_sync(__LINE__)

static inline int tdmi_shim_lane(void)
{
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

template <class T>
static inline T tdmi_shim_exchange(uint32_t mask, T value, int from)
{
    static_assert(sizeof(T) <= sizeof(uint64_t) && !__is_class(T), "CUDA shuffles numbers alone");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = tdmi_shim_meet(mask, bits, from);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T>
static inline T __shfl_sync(uint32_t mask, T value, int from)
{
    return tdmi_shim_exchange(mask, value, from & 31);
}
template <class T>
static inline T __shfl_xor_sync(uint32_t mask, T value, int other)
{
    return tdmi_shim_exchange(mask, value, tdmi_shim_lane() ^ other);
}
template <class T>
static inline T __shfl_down_sync(uint32_t mask, T value, unsigned by)
{
    const int lane = tdmi_shim_lane(), from = lane + (int)by;
    return tdmi_shim_exchange(mask, value, from < 32 ? from : lane);
}
static inline unsigned __ballot_sync(uint32_t mask, int is_true)
{
    return (unsigned)tdmi_shim_meet(mask, is_true != 0, -1);
}
static inline void __syncwarp(uint32_t mask = 0xffffffffu)
{
    tdmi_shim_meet(mask, 0, -1);
}

/* Whole numbers only: sums of floats in the order of arrival have other bits on each run. */
static inline unsigned atomicAdd(unsigned *to, unsigned value)
{
    const unsigned before = *to;
    *to += value;
    return before;
}
static inline unsigned atomicMax(unsigned *to, unsigned value)
{
    const unsigned before = *to;
    *to = before > value ? before : value;
    return before;
}
static inline void __threadfence(void)
{
}

/* ---- launching -------------------------------------------------------------------------- */

template <class... P, class... A>
static inline int launch(void (*kernel)(P...), dim3 grid, dim3 block, struct CUstream_st *queue,
                         A... given)
{
    auto body = [=]() { kernel(given...); };
    static_assert(__is_trivially_copyable(decltype(body)), "arguments of kernels are bytes");
    const struct tdmi_shim_launch what = {
        queue,
        {grid.x, grid.y, grid.z},
        {block.x, block.y, block.z},
        [](void *self) { (*static_cast<decltype(body) *>(self))(); },
        &body,
        sizeof body,
        0};
    return tdmi_shim_launch(&what);
}

#endif
