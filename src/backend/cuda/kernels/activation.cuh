/* Activations as kernels carry them: what is done to a value, and where a gradient passes. */
#ifndef TANDEM_BACKEND_CUDA_ACTIVATION_CUH
#define TANDEM_BACKEND_CUDA_ACTIVATION_CUH

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

/* body(one of the above): those whose gradient can be told from y. */
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

#endif
