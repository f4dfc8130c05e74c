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
    /* y may be x or the residual: a thread reads its pixels before it writes them, and no other
     * thread touches them. */
    enum { asked = has_residual ? 2 : 4 };
    const int64_t begin = blockIdx.x * it.chunk;
    const int64_t end = begin + it.chunk < it.pixels ? begin + it.chunk : it.pixels;
    for (int64_t first = begin + threadIdx.y; first < end; first += asked * it.rows) {
        vector<T, N> of_x[asked], of_residual[asked];
#pragma unroll
        for (int p = 0; p < asked; p++) {
            const int64_t pixel = first + p * it.rows, at = pixel * it.channels + channel;
            const bool is_there = pixel < end;
            of_x[p] = fetch_if<T, N>(is_there, x, at);
            of_residual[p] = fetch_if<T, N>(has_residual && is_there, residual, at);
        }
#pragma unroll
        for (int p = 0; p < asked; p++) {
            const int64_t pixel = first + p * it.rows, at = pixel * it.channels + channel;
            float value[N], other[N] = {};
            give(of_x[p], value);
            if (has_residual)
                give(of_residual[p], other);
#pragma unroll
            for (int i = 0; i < N; i++) {
                const float sum = value[i] * factor[i] + offset[i];
                value[i] = Act::of(has_residual ? sum + other[i] : sum);
            }
            if (pixel < end)
                store<T, N>(y + at, value);
        }
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
    typedef vector<T, N> pixel;
    const T *dy;

    __device__ __forceinline__ void prepare(int channel)
    {
        (void)channel;
    }
    __device__ __forceinline__ pixel fetch(int64_t at) const
    {
        return ::fetch<T, N>(dy + at);
    }
    __device__ __forceinline__ void terms(const pixel &of, float (&a)[N], float (&b)[N]) const
    {
        give(of, a);
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
        const struct tdmi_cuda_columns it =
            tdmi_cuda_columns_of(pixels, channels, sum_lanes, lies_on_16(dy), TDMI_CUDA_SUM_CHUNKS);
        double *partial = static_cast<double *>(workspace);
        const int code = by_sum_lanes(it, [=](auto lanes) {
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

/* ---- batch norm ------------------------------------------------------------------------------ */

/* Batch norm in training. */

/* ---- sums ------------------------------------------------------------------------------- */

template <class T, int N>
struct from_centre {
    typedef vector<T, N> pixel;
    const T *x;
    const float *centre;
    float off[N];

    __device__ __forceinline__ void prepare(int channel)
    {
#pragma unroll
        for (int i = 0; i < N; i++)
            off[i] = centre[channel + i];
    }
    __device__ __forceinline__ pixel fetch(int64_t at) const
    {
        return ::fetch<T, N>(x + at);
    }
    __device__ __forceinline__ void terms(const pixel &of, float (&a)[N], float (&b)[N]) const
    {
        give(of, a);
#pragma unroll
        for (int i = 0; i < N; i++) {
            a[i] -= off[i];
            b[i] = a[i] * a[i];
        }
    }
};

/* g, and g · (x - mean) */
template <class T, class Act, int N>
struct of_gradient {
    struct pixel {
        vector<T, N> x, y, dy;
    };
    const T *x, *y, *dy;
    const float *mean, *scale, *shift;
    float off[N], factor[N], offset[N];

    __device__ __forceinline__ void prepare(int channel)
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            off[i] = mean[channel + i];
            factor[i] = scale[channel + i];
            offset[i] = shift[channel + i];
        }
    }
    __device__ __forceinline__ pixel fetch(int64_t at) const
    {
        return {::fetch<T, N>(x + at), fetch_if<T, N>(y, y, at), ::fetch<T, N>(dy + at)};
    }
    __device__ __forceinline__ void terms(const pixel &of, float (&a)[N], float (&b)[N]) const
    {
        float of_y[N] = {};
        give(of.dy, a);
        give(of.x, b);
        if (y)
            give(of.y, of_y);
#pragma unroll
        for (int i = 0; i < N; i++) {
            a[i] = Act::gradient(y ? of_y[i] : b[i] * factor[i] + offset[i], a[i]);
            b[i] = a[i] * (b[i] - off[i]);
        }
    }
};

extern "C" size_t tdmi_cuda_norm_workspace_bytes(int64_t pixels, int channels)
{
    const size_t sums = tdmi_cuda_columns_sum_bytes(pixels, channels);
    const size_t floats = (size_t)channels * 2 * sizeof(float);
    return sums > floats ? sums : floats;
}

static struct tdmi_cuda_columns columns_of(const struct tdmi_cuda_norm &call, int lanes,
                                           int64_t most_chunks)
{
    const int is_aligned = lies_on_16(call.x) && lies_on_16(call.y) && lies_on_16(call.dy) &&
                           lies_on_16(call.dx) && lies_on_16(call.g);
    return tdmi_cuda_columns_of(call.pixels, call.channels, lanes, is_aligned, most_chunks);
}

/* Both passes of the sums of what `read` returns. */
template <int N, class Read>
static int add_up(struct CUstream_st *queue, const struct tdmi_cuda_norm &call,
                  const struct tdmi_cuda_columns &it, Read read)
{
    double *partial = static_cast<double *>(call.workspace);
    const int code =
        launch(sum_chunks<N, Read>, grid_of(it), block_of(it), queue, read, it, partial);
    return code ? code
                : launch_add_chunks(queue, partial, it.chunks, (int64_t)2 * it.channels,
                                    (int64_t)2 * it.channels, call.norm.sums);
}

extern "C" int tdmi_cuda_norm_sums(struct CUstream_st *queue, const struct tdmi_cuda_norm *call)
{
    const struct tdmi_cuda_norm given = *call;
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        const struct tdmi_cuda_columns it = columns_of(given, sum_lanes, TDMI_CUDA_SUM_CHUNKS);
        return by_sum_lanes(it, [=](auto lanes) {
            constexpr int N = decltype(lanes)::value;
            const from_centre<T, N> read = {static_cast<const T *>(given.x), given.norm.centre, {}};
            return add_up<N>(queue, given, it, read);
        });
    });
}

extern "C" int tdmi_cuda_norm_gradient_sums(struct CUstream_st *queue,
                                            const struct tdmi_cuda_norm *call)
{
    const struct tdmi_cuda_norm given = *call;
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        const struct tdmi_cuda_columns it = columns_of(given, sum_lanes, TDMI_CUDA_SUM_CHUNKS);
        return by_act(given.act, [=](auto how) {
            using Act = decltype(how);
            return by_sum_lanes(it, [=](auto lanes) {
                constexpr int N = decltype(lanes)::value;
                const of_gradient<T, Act, N> read = {static_cast<const T *>(given.x),
                                                     static_cast<const T *>(given.y),
                                                     static_cast<const T *>(given.dy),
                                                     given.norm.mean,
                                                     given.norm.scale,
                                                     given.norm.shift,
                                                     {},
                                                     {},
                                                     {}};
                return add_up<N>(queue, given, it, read);
            });
        });
    });
}

/* ---- a channel ---------------------------------------------------------------------------- */

enum { finish_threads = 128 };

static dim3 finish_blocks(int channels)
{
    return dim3((unsigned)((channels + finish_threads - 1) / finish_threads));
}

__global__ void __launch_bounds__(finish_threads) finish(struct tdmi_cuda_norm_finish it)
{
    const int c = (int)(blockIdx.x * finish_threads + threadIdx.x);
    if (c >= it.channels)
        return;
    double mean, variance;
    if (it.is_kept) {
        mean = (double)it.running_mean[c];
        variance = (double)it.running_variance[c];
        it.sum_of_means[c] = it.sum_of_variances[c] = 0.0f;
    } else {
        const double m = it.total_pixels, off = it.norm.total[c] / m;
        const double unbiased = m > 1.0 && !it.is_biased ? m / (m - 1.0) : 1.0;
        mean = (double)it.norm.centre[c] + off;
        variance = fmax(it.norm.total[it.channels + c] / m - off * off, 0.0);
        it.sum_of_means[c] = (float)(mean * it.n);
        it.sum_of_variances[c] = (float)(variance * unbiased * it.n);
    }
    const float of_mean = (float)mean, rstd = (float)(1.0 / sqrt(variance + it.epsilon));
    const float scale = it.scale[c] * rstd;
    it.norm.mean[c] = of_mean;
    it.norm.rstd[c] = rstd;
    it.norm.scale[c] = scale;
    it.norm.shift[c] = it.shift[c] - of_mean * scale;
}

extern "C" int tdmi_cuda_norm_finish(struct CUstream_st *queue,
                                     const struct tdmi_cuda_norm_finish *call)
{
    return launch(finish, finish_blocks(call->channels), finish_threads, queue, *call);
}

__global__ void __launch_bounds__(finish_threads)
    fold(struct tdmi_cuda_norm_finish it, float *factor, float *offset)
{
    const int c = (int)(blockIdx.x * finish_threads + threadIdx.x);
    if (c >= it.channels)
        return;
    const float rstd = (float)(1.0 / sqrt((double)it.running_variance[c] + it.epsilon));
    factor[c] = it.scale[c] * rstd;
    offset[c] = it.shift[c] - it.running_mean[c] * (it.scale[c] * rstd);
}

extern "C" int tdmi_cuda_norm_fold(struct CUstream_st *queue,
                                   const struct tdmi_cuda_norm_finish *call, float *factor,
                                   float *offset)
{
    return launch(fold, finish_blocks(call->channels), finish_threads, queue, *call, factor,
                  offset);
}

/* ---- backward --------------------------------------------------------------------------- */

/* dx = scale · g + of_x · (x - mean) + one; the last two go to room, 2 · channels. */
__global__ void __launch_bounds__(finish_threads)
    finish_gradient(struct tdmi_norm norm, int channels, double m, bool is_kept, float *dscale,
                    float *dshift, float *room)
{
    const int c = (int)(blockIdx.x * finish_threads + threadIdx.x);
    if (c >= channels)
        return;
    const double rstd = (double)norm.rstd[c], scale = (double)norm.scale[c];
    dscale[c] = (float)(norm.sums[channels + c] * rstd);
    dshift[c] = (float)norm.sums[c];
    room[c] = is_kept ? 0.0f : (float)(-scale * rstd * rstd * norm.total[channels + c] / m);
    room[channels + c] = is_kept ? 0.0f : (float)(-scale * norm.total[c] / m);
}

template <class T, class Act, int N>
__global__ void __launch_bounds__(column_threads)
    norm_gradient(const T *x, const T *y, const T *dy, T *dx, T *masked, struct tdmi_norm norm,
                  const float *room, struct tdmi_cuda_columns it)
{
    const int channel = (int)(blockIdx.y * it.width + threadIdx.x) * N;
    if (channel >= it.channels)
        return;
    float scale[N], shift[N], mean[N], of_x[N], one[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        scale[i] = norm.scale[channel + i];
        shift[i] = norm.shift[channel + i];
        mean[i] = norm.mean[channel + i];
        of_x[i] = room[channel + i];
        one[i] = room[it.channels + channel + i];
    }
    enum { asked = 4 }; /* pixels; dx may be dy, and no other thread touches them */
    const int64_t begin = blockIdx.x * it.chunk;
    const int64_t end = begin + it.chunk < it.pixels ? begin + it.chunk : it.pixels;
    for (int64_t first = begin + threadIdx.y; first < end; first += asked * it.rows) {
        vector<T, N> of_dy[asked], of_x_value[asked], of_y[asked];
#pragma unroll
        for (int p = 0; p < asked; p++) {
            const int64_t pixel = first + p * it.rows, at = pixel * it.channels + channel;
            const bool is_there = pixel < end;
            of_dy[p] = fetch_if<T, N>(is_there, dy, at);
            of_x_value[p] = fetch_if<T, N>(is_there, x, at);
            of_y[p] = fetch_if<T, N>(y && is_there, y, at);
        }
#pragma unroll
        for (int p = 0; p < asked; p++) {
            const int64_t pixel = first + p * it.rows, at = pixel * it.channels + channel;
            float out[N] = {}, g[N], value[N];
            if (pixel >= end)
                continue;
            give(of_dy[p], g);
            give(of_x_value[p], value);
            if (y)
                give(of_y[p], out);
#pragma unroll
            for (int i = 0; i < N; i++) {
                g[i] = Act::gradient(y ? out[i] : scale[i] * value[i] + shift[i], g[i]);
                value[i] = scale[i] * g[i] + of_x[i] * (value[i] - mean[i]) + one[i];
            }
            if (masked)
                store<T, N>(masked + at, g);
            if (dx)
                store<T, N>(dx + at, value);
        }
    }
}

extern "C" int tdmi_cuda_norm_backward(struct CUstream_st *queue, const struct tdmi_cuda_norm *call,
                                       bool is_kept, float *dscale, float *dshift)
{
    const struct tdmi_cuda_norm given = *call;
    float *room = static_cast<float *>(given.workspace);
    const int code =
        launch(finish_gradient, finish_blocks(given.channels), finish_threads, queue, given.norm,
               given.channels, given.total_pixels, is_kept, dscale, dshift, room);
    if (code != 0 || (!given.dx && !given.g))
        return code;
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        const struct tdmi_cuda_columns it = columns_of(given, sum_lanes, 0);
        return by_act(given.act, [=](auto how) {
            using Act = decltype(how);
            return by_sum_lanes(it, [=](auto lanes) {
                constexpr int N = decltype(lanes)::value;
                return launch(norm_gradient<T, Act, N>, grid_of(it), block_of(it), queue,
                              static_cast<const T *>(given.x), static_cast<const T *>(given.y),
                              static_cast<const T *>(given.dy), static_cast<T *>(given.dx),
                              static_cast<T *>(given.g), given.norm, room, it);
            });
        });
    });
}
