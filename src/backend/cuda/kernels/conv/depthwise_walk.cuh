/* Walks of depthwise convolutions: what they read, and what becomes of a vector before it is
 * stored. */
#pragma once

#include "backend/cuda/kernels/cells.cuh"
#include "backend/cuda/kernels/conv/depthwise.cuh"

enum { most_rows = 16 /* of a thread: two of 18 are read twice */ };

/* The last change of a vector before it is stored; is_plain: none is asked for. */
template <class T>
struct ending {
    const float *bias; /* NULL: none */
    enum tdmi_act act;
    const T *masked; /* where it did not get through masked_act, there is no gradient; or NULL */
    enum tdmi_act masked_act;
    const T *add; /* NULL: nothing */
    T *to;

    bool is_plain() const
    {
        return !bias && act == TDMI_ACT_NONE && !masked && !add;
    }

    template <int N, bool is_plain>
    __device__ __forceinline__ void store_at(int64_t at, int channel, float (&value)[N]) const
    {
        float other[N];
        if (is_plain) {
            store<T, N>(to + at, value);
            return;
        }
        if (bias) {
            load<float, N>(bias + channel, other);
#pragma unroll
            for (int i = 0; i < N; i++)
                value[i] += other[i];
        }
        float(&row)[1][N] = *reinterpret_cast<float(*)[1][N]>(&value);
        activate<1, N>(act, row);
        if (masked) {
            load<T, N>(masked + at, other);
#pragma unroll
            for (int i = 0; i < N; i++)
                if (!(other[i] > 0.0f) || (masked_act == TDMI_ACT_RELU6 && other[i] >= 6.0f))
                    value[i] = 0.0f;
        }
        if (add) {
            load<T, N>(add + at, other);
#pragma unroll
            for (int i = 0; i < N; i++)
                value[i] += other[i];
        }
        store<T, N>(to + at, value);
    }
};

/* A convolution over images, as a walk: of x forward, of dy backward. */
template <class T>
struct walk {
    pictures<T> from;
    enum tdmi_act act; /* that from is read through */
    int h, w;          /* of what is written */
    int top, left;
    const float *weights;
    bool is_mirrored; /* the last tap first */
    struct tdmi_cuda_tiles tiles;
    ending<T> end;
};

template <int taps, int N>
static __device__ __forceinline__ void load_weights(const float *from, int channels,
                                                    bool is_mirrored, float (&to)[taps][N])
{
#pragma unroll
    for (int tap = 0; tap < taps; tap++)
        load<float, N>(from + (int64_t)(is_mirrored ? taps - 1 - tap : tap) * channels, to[tap]);
}

template <class T, class... A, class... P>
static int start(struct CUstream_st *queue, const struct walk<T> &it, void (*kernel)(P...),
                 A... more)
{
    if (!it.tiles.is_for_one_launch)
        return TDMI_CUDA_INVALID_VALUE;
    return launch(kernel, dim3((unsigned)it.tiles.all_blocks), dim3(TDMI_CUDA_TILE_THREADS), queue,
                  it, more...);
}
