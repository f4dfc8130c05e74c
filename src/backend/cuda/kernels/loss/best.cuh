/* The largest of a block's values, and where it stands. */
#pragma once

#include "backend/cuda/kernels/reduce.cuh"

struct best {
    float value;
    int at;
};

/* The larger value; of equal ones that which comes first. */
static __device__ __forceinline__ struct best better(struct best a, struct best b)
{
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

static __device__ __forceinline__ struct best of_lane(uint32_t mask, struct best value, int other)
{
    return best{__shfl_xor_sync(mask, value.value, other), __shfl_xor_sync(mask, value.at, other)};
}

struct better_of {
    __device__ __forceinline__ struct best operator()(struct best a, struct best b) const
    {
        return better(a, b);
    }
};
