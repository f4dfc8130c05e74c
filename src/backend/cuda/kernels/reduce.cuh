/*
 * Sums of the threads of a block, in an order that the number of threads alone decides: halves are
 * added to halves. Each returns its result to every thread.
 */
#pragma once

#include "backend/cuda/kernels/kernel.cuh"

/* The value of the lane whose number differs by the bits of other. CUDA moves numbers; a struct
 * brings an overload of its own. */
template <class Value>
static __device__ __forceinline__ Value of_lane(uint32_t mask, Value value, int other)
{
    return __shfl_xor_sync(mask, value, other);
}

/* of(a, b) of all threads of a block of `threads`, a power of two from 32 to 1024 in one row. of
 * must not depend on the order of its two. room: 33 values that the block shares; it may be used
 * again at once. */
template <int threads, class Value, class Of>
static __device__ __forceinline__ Value over_block(Value value, Value *room, Of of)
{
    constexpr int warps = threads / 32;
    static_assert(warps >= 1 && warps <= 32 && (warps & (warps - 1)) == 0, "a power of two");
#pragma unroll
    for (int other = 16; other > 0; other /= 2)
        value = of(value, of_lane(0xffffffffu, value, other));
    if (warps == 1)
        return value;
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < warps) {
        value = room[threadIdx.x];
        const uint32_t mask = (uint32_t)(((uint64_t)1 << warps) - 1);
#pragma unroll
        for (int other = warps / 2; other > 0; other /= 2)
            value = of(value, of_lane(mask, value, other));
        if (threadIdx.x == 0)
            room[32] = value;
    }
    __syncthreads();
    value = room[32];
    __syncthreads();
    return value;
}

struct plus {
    template <class Value>
    __device__ __forceinline__ Value operator()(Value a, Value b) const
    {
        return a + b;
    }
};

/* room[plane][row][x] of all rows is added up into row 0; threads (x, y) of a block, y < rows.
 * Every thread calls it after it has written its own, and finds the sums after it. */
template <int planes, class Value>
static __device__ __forceinline__ void add_rows(Value *room, int width, int rows)
{
    const int at = (int)(threadIdx.y * width + threadIdx.x), y = (int)threadIdx.y;
    __syncthreads();
    for (int n = rows; n > 1;) {
        const int half = (n + 1) / 2;
#pragma unroll
        for (int k = 0; k < planes; k++)
            if (y + half < n)
                room[k * width * rows + at] += room[k * width * rows + at + half * width];
        n = half;
        __syncthreads();
    }
}
