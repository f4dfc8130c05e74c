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

/* Rows below each other, as they lie in memory: asked for early, made numbers when they are worked
 * on. Of what lies outside the image, zeros. */
template <class T, int N, int columns>
struct raw_row {
    const T *begin;  /* the next row's first column, which may lie outside the image */
    int row;         /* the next */
    unsigned inside; /* a bit for each column that the image has */
    vector<T, N> at[columns];

    /* image: its first pixel. */
    __device__ __forceinline__ void begin_at(const pictures<T> &of, const T *picture, int first,
                                             int left)
    {
        begin = picture + ((int64_t)first * of.w + left) * of.channels;
        row = first;
        inside = 0;
#pragma unroll
        for (int c = 0; c < columns; c++)
            inside |= (unsigned)(left + c >= 0 && left + c < of.w) << c;
    }

    /* The next row; where it is not wanted, zeros. */
    __device__ __forceinline__ void fetch(const pictures<T> &of, bool is_wanted)
    {
        const unsigned columns_there = is_wanted && row >= 0 && row < of.h ? inside : 0;
#pragma unroll
        for (int c = 0; c < columns; c++)
            at[c] = fetch_if<T, N>(columns_there >> c & 1, begin, (int64_t)c * of.channels);
        begin += (int64_t)of.w * of.channels;
        row++;
    }

    __device__ __forceinline__ void give(float (&to)[columns][N]) const
    {
#pragma unroll
        for (int c = 0; c < columns; c++)
            ::give(at[c], to[c]);
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
