/*
 * y = act(scale · x + shift + residual) channel by channel, and the gradient of a bias.
 */
#include "backend/cuda/kernels/channels.h"
#include "backend/cuda/kernels/activation.cuh"
#include "backend/cuda/kernels/conv/column_sums.cuh"

template <class T, class Act, int N, bool has_residual>
__global__ void __launch_bounds__(column_threads)
    scale_shift(const T *x, const T *residual, T *y, const float *scale, const float *shift,
                struct tdmi_cuda_columns it)
{
    const int channel = (int)(blockIdx.y * it.width + threadIdx.x) * N;
    if (channel >= it.channels)
        return;
    float factor[N], offset[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        factor[i] = scale ? scale[channel + i] : 1.0f;
        offset[i] = shift ? shift[channel + i] : 0.0f;
    }
    const int64_t begin = blockIdx.x * it.chunk;
    const int64_t end = begin + it.chunk < it.pixels ? begin + it.chunk : it.pixels;
    for (int64_t pixel = begin + threadIdx.y; pixel < end; pixel += it.rows) {
        const int64_t at = pixel * it.channels + channel;
        float value[N], other[N] = {};
        load<T, N>(x + at, value);
        if (has_residual)
            load<T, N>(residual + at, other);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float sum = value[i] * factor[i] + offset[i];
            value[i] = Act::of(has_residual ? sum + other[i] : sum);
        }
        store<T, N>(y + at, value);
    }
}

extern "C" int tdmi_cuda_scale_shift(struct CUstream_st *queue,
                                     const struct tdmi_cuda_channels *call)
{
    const struct tdmi_cuda_channels given = *call;
    const int is_aligned = lies_on_16(given.x) && lies_on_16(given.residual) && lies_on_16(given.y);
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        const struct tdmi_cuda_columns it =
            tdmi_cuda_columns_of(given.pixels, given.channels, full<T>::lanes, is_aligned, 0);
        return by_act(given.act, [=](auto how) {
            using Act = decltype(how);
            return by_lanes<T>(it, [=](auto lanes) {
                constexpr int N = decltype(lanes)::value;
                return launch(given.residual ? scale_shift<T, Act, N, true>
                                             : scale_shift<T, Act, N, false>,
                              grid_of(it), block_of(it), queue, static_cast<const T *>(given.x),
                              static_cast<const T *>(given.residual), static_cast<T *>(given.y),
                              given.scale, given.shift, it);
            });
        });
    });
}

/* A pixel adds dy to the first sum and nothing to the second. */
template <class T, int N>
struct gradient_alone {
    const T *dy;

    __device__ __forceinline__ void prepare(int channel)
    {
        (void)channel;
    }
    __device__ __forceinline__ void terms(int64_t at, float (&a)[N], float (&b)[N]) const
    {
        load<T, N>(dy + at, a);
#pragma unroll
        for (int i = 0; i < N; i++)
            b[i] = 0.0f;
    }
};

extern "C" int tdmi_cuda_channel_sum(struct CUstream_st *queue, enum tdmi_dtype type,
                                     const void *dy, int64_t pixels, int channels, float *sums,
                                     void *workspace)
{
    return by_type(type, [=](auto zero) {
        using T = decltype(zero);
        const struct tdmi_cuda_columns it = tdmi_cuda_columns_of(
            pixels, channels, full<T>::lanes, lies_on_16(dy), TDMI_CUDA_SUM_CHUNKS);
        double *partial = static_cast<double *>(workspace);
        const int code = by_lanes<T>(it, [=](auto lanes) {
            constexpr int N = decltype(lanes)::value;
            const gradient_alone<T, N> read = {static_cast<const T *>(dy)};
            return launch(sum_chunks<N, gradient_alone<T, N>>, grid_of(it), block_of(it), queue,
                          read, it, partial);
        });
        return code ? code
                    : launch_add_chunks(queue, partial, it.chunks, (int64_t)2 * channels, channels,
                                        sums);
    });
}
