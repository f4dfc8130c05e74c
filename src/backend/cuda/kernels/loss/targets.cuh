/* Targets of the losses, as in backend/ref/losses.c. */
#pragma once

#include "backend/cuda/kernels/kernel.cuh"
#include "backend/cuda/kernels/loss/loss.h"

/* How much of sample i belongs to a class. */
static __device__ __forceinline__ double target_of(const struct tdmi_cuda_loss &it, int i, int c)
{
    const double weight = it.mixed ? (double)it.mixed[i].weight : 1.0;
    double target = it.labels[i] == c ? weight : 0.0;
    if (weight < 1.0 && it.mixed[i].other == c)
        target += 1.0 - weight;
    if (it.smoothing > 0.0)
        target = (1.0 - it.smoothing) * target + it.smoothing / it.classes;
    return target;
}

static __device__ __forceinline__ double class_weight(const struct tdmi_cuda_loss &it, int c)
{
    return it.class_weights ? (double)it.class_weights[c] : 1.0;
}

static __device__ __forceinline__ double weighted_target(const struct tdmi_cuda_loss &it, int i,
                                                         int c)
{
    return target_of(it, i, c) * class_weight(it, c);
}
