/* Loading rows of pixels into registers, for all kernels of depthwise convolutions. */
#pragma once

#include "backend/cuda/kernels/conv/depthwise.h"
#include "backend/cuda/kernels/kernel.cuh"
#include "backend/cuda/kernels/conv/geometry.h"

/* Images that are read; the pointer is that of the first one's channels at hand. */
template <class T>
struct pictures {
    const T *values;
    int h, w, channels;
};

/* A row as it lies in memory: asked for early, made numbers when it is worked on. Of what lies
 * outside the image, zeros. */
template <class T, int N, int columns>
struct raw_row {
    vector<T, N> at[columns];

    /* image: its first pixel. */
    __device__ __forceinline__ void fetch(const pictures<T> &of, const T *picture, int row,
                                          int left)
    {
        const bool is_row = row >= 0 && row < of.h;
        const T *const begin = picture + ((int64_t)row * of.w + left) * of.channels;
#pragma unroll
        for (int c = 0; c < columns; c++) {
            if (is_row && left + c >= 0 && left + c < of.w) {
                at[c] = *reinterpret_cast<const vector<T, N> *>(begin + (int64_t)c * of.channels);
            } else {
#pragma unroll
                for (int i = 0; i < N; i++)
                    at[c].at[i] = of_float<T>(0.0f);
            }
        }
    }

    __device__ __forceinline__ void give(float (&to)[columns][N]) const
    {
#pragma unroll
        for (int c = 0; c < columns; c++)
#pragma unroll
            for (int i = 0; i < N; i++)
                to[c][i] = to_float(at[c].at[i]);
    }
};

/* NONE, RELU or RELU6, which all threads know; zeros stay zeros. */
template <int columns, int N>
static __device__ __forceinline__ void activate(enum tdmi_act act, float (&values)[columns][N])
{
    if (act == TDMI_ACT_NONE)
        return;
    const float most = act == TDMI_ACT_RELU6 ? 6.0f : INFINITY;
#pragma unroll
    for (int c = 0; c < columns; c++)
#pragma unroll
        for (int i = 0; i < N; i++)
            values[c][i] = fminf(fmaxf(values[c][i], 0.0f), most);
}

static inline bool is_clamp(enum tdmi_act act)
{
    return act == TDMI_ACT_NONE || act == TDMI_ACT_RELU || act == TDMI_ACT_RELU6;
}

/* Values of a vector for kernels that keep kernel² numbers a channel in registers. */
template <int kernel>
struct lanes_of {
    static constexpr int value = kernel == 3 ? 4 : 2;
};
