/* Activations as kernels carry them: what is done to a value, and where a gradient passes. */
#pragma once

#include "backend/cuda/kernels/kernel.cuh"
#include "backend/op.h"

struct no_act {
    static __device__ __forceinline__ float of(float x)
    {
        return x;
    }
    static __device__ __forceinline__ float gradient(float y, float dy)
    {
        (void)y;
        return dy;
    }
};

struct relu_act {
    static __device__ __forceinline__ float of(float x)
    {
        return x > 0.0f ? x : 0.0f;
    }
    static __device__ __forceinline__ float gradient(float y, float dy)
    {
        return y > 0.0f ? dy : 0.0f;
    }
};

struct relu6_act {
    static __device__ __forceinline__ float of(float x)
    {
        const float above = x > 0.0f ? x : 0.0f;
        return above < 6.0f ? above : 6.0f;
    }
    static __device__ __forceinline__ float gradient(float y, float dy)
    {
        return y > 0.0f && y < 6.0f ? dy : 0.0f;
    }
};

/* Formulas of backend/ref/activations.c, in f32. The gradient of hswish is computed from
 * x, not from y. */
struct hswish_act {
    static __device__ __forceinline__ float of(float x)
    {
        if (x <= -3.0f)
            return 0.0f;
        return x >= 3.0f ? x : x * (x + 3.0f) / 6.0f;
    }
    static __device__ __forceinline__ float gradient(float x, float dy)
    {
        return dy * (x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : (2.0f * x + 3.0f) / 6.0f);
    }
};

struct sigmoid_act {
    static __device__ __forceinline__ float of(float x)
    {
        return 1.0f / (1.0f + expf(-x)); /* far below 0 the sum is infinite, and this 0 */
    }
    static __device__ __forceinline__ float gradient(float y, float dy)
    {
        return dy * (y * (1.0f - y));
    }
};

/* body(NONE, RELU or RELU6): what other kernels apply to the values they write. */
template <class Body>
static inline int by_act(enum tdmi_act act, Body body)
{
    switch (act) {
    case TDMI_ACT_NONE:
        return body(no_act());
    case TDMI_ACT_RELU:
        return body(relu_act());
    case TDMI_ACT_RELU6:
        return body(relu6_act());
    default:
        return TDMI_CUDA_INVALID_VALUE;
    }
}
