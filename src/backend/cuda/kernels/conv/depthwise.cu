/*
 * Depthwise convolution, forward and the gradient of its input. A thread goes down a strip
 * (geometry.h) and keeps in registers the sums of all rows that are not complete yet, so that each
 * value is asked for once a strip; while it works on a row, the next one is on its way. The
 * gradient of a stride of 1 is the same walk with the weights mirrored; that of a stride of 2 is in
 * depthwise_spread.cu. Everything else (other kernels and strides, dilation, channels that are no
 * multiple of 4) goes pixel by pixel.
 */
#include "backend/cuda/kernels/conv/depthwise_walk.cuh"

/* Row p of step t is row K - 1 of outputs t - J where p is 0, which are complete then. */
template <class T, int K, int S, int N, int W, bool is_plain>
__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS, K == 3 ? 4 : 3)
    walk_down(struct walk<T> it)
{
    constexpr int J = (K - 1) / S, C = (W - 1) * S + K;
    static_assert((K - 1) % S == 0, "an output is complete at the first row of a step");
    struct cell cell;
    if (!find_cell<N>(it.tiles, it.h, cell))
        return;
    const int channels = it.from.channels, left = cell.column * S - it.left;
    const T *const picture =
        it.from.values + cell.picture * it.from.h * it.from.w * channels + cell.channel;
    float weight[K * K][N], sum[J + 1][W][N] = {};
    load_weights<K * K, N>(it.weights + cell.channel, channels, it.is_mirrored, weight);
    int64_t line = ((cell.picture * it.h + cell.first) * it.w + cell.column) * channels;
    raw_row<T, N, C> raw;
    raw.begin_at(it.from, picture, cell.first * S - it.top, left);
    raw.fetch(it.from, true);
    for (int t = cell.first; t < cell.last + J; t++) {
#pragma unroll
        for (int p = 0; p < S; p++) {
            float x[C][N];
            raw.give(x);
            raw.fetch(it.from, p < S - 1 || t < cell.last + J - 1);
            activate<C, N>(it.act, x);
#pragma unroll
            for (int j = J; j >= 0; j--) {
                const int ky = p + j * S;
#pragma unroll
                for (int q = 0; q < W; q++)
#pragma unroll
                    for (int i = 0; i < N; i++) {
                        float value = p > 0   ? sum[j][q][i]
                                      : j > 0 ? sum[j > 0 ? j - 1 : 0][q][i]
                                              : 0;
#pragma unroll
                        for (int kx = 0; kx < K; kx++)
                            if (ky < K)
                                value += x[q * S + kx][i] * weight[ky < K ? ky * K + kx : 0][i];
                        sum[j][q][i] = value;
                    }
            }
            if (p > 0 || t - J < cell.first)
                continue;
#pragma unroll
            for (int q = 0; q < W; q++)
                if (cell.column + q < it.w)
                    it.end.template store_at<N, is_plain>(
                        line + (int64_t)q * channels + cell.channel, cell.channel, sum[J][q]);
            line += (int64_t)it.w * channels;
        }
    }
}

/* Any shape: a thread a pixel. Backward, dy lies `spread` apart, with zeros between. */
struct any_window {
    int kernel, stride, dilation, spread;
};

template <class T, int N>
__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS)
    gather(struct walk<T> it, struct any_window window)
{
    struct cell cell;
    if (!find_cell<N>(it.tiles, it.h, cell))
        return;
    const int channels = it.from.channels, taps = window.kernel * window.kernel;
    const T *const picture =
        it.from.values + cell.picture * it.from.h * it.from.w * channels + cell.channel;
    float sum[N] = {};
    for (int tap = 0; tap < taps; tap++) {
        int y = cell.first * window.stride - it.top + tap / window.kernel * window.dilation;
        int x = cell.column * window.stride - it.left + tap % window.kernel * window.dilation;
        if (y < 0 || x < 0 || y % window.spread != 0 || x % window.spread != 0)
            continue;
        y /= window.spread;
        x /= window.spread;
        if (y >= it.from.h || x >= it.from.w)
            continue;
        float value[1][N], weight[N];
        load<T, N>(picture + ((int64_t)y * it.from.w + x) * channels, value[0]);
        activate<1, N>(it.act, value);
        load<float, N>(it.weights + (int64_t)(it.is_mirrored ? taps - 1 - tap : tap) * channels +
                           cell.channel,
                       weight);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum[i] += value[0][i] * weight[i];
    }
    const int64_t at = (cell.picture * it.h + cell.first) * it.w + cell.column;
    it.end.template store_at<N, false>(at * channels + cell.channel, cell.channel, sum);
}

/* ---- launching ------------------------------------------------------------------------------ */

template <class T>
static int start_gather(struct CUstream_st *queue, struct walk<T> it, int64_t n, bool has_vectors,
                        const struct any_window &window)
{
    const int lanes = has_vectors && it.from.channels % 4 == 0 ? 4 : 1;
    it.tiles = tdmi_cuda_tiles_of(n, it.h, it.w, it.from.channels / lanes, 1, 1);
    return start(queue, it, lanes == 4 ? gather<T, 4> : gather<T, 1>, window);
}

/* Two columns a thread where rows of a window lie two apart: their windows are wide already. */
template <class T, int K, int S>
static int start_walk(struct CUstream_st *queue, struct walk<T> it, int64_t n)
{
    constexpr int N = lanes_of<K>::value, W = S == 1 ? 4 : 2;
    it.tiles = tdmi_cuda_tiles_of(n, it.h, it.w, it.from.channels / N, W, most_rows);
    return start(queue, it,
                 it.end.is_plain() ? walk_down<T, K, S, N, W, true>
                                   : walk_down<T, K, S, N, W, false>);
}

template <class T>
static int forward_of(struct CUstream_st *queue, const struct tdmi_cuda_window &shape,
                      const struct tdmi_cuda_depthwise_forward &call)
{
    const T *const x = static_cast<const T *>(call.x);
    const struct walk<T> it = {
        {x, shape.h, shape.w, shape.channels}, call.x_act, shape.out_h, shape.out_w, shape.top,
            shape.left, call.weights, false, {},
        {
            call.bias, call.act, nullptr, TDMI_ACT_NONE, nullptr, static_cast<T *>(call.y)
        }
    };
    const bool has_vectors = lies_on_16(call.x) && lies_on_16(call.y) && lies_on_16(call.weights) &&
                             lies_on_16(call.bias);
    if (!has_vectors || !tdmi_cuda_depthwise_is_usual(&shape))
        return start_gather(queue, it, shape.n, has_vectors,
                            {shape.kernel, shape.stride, shape.dilation, 1});
    if (shape.kernel == 3)
        return shape.stride == 1 ? start_walk<T, 3, 1>(queue, it, shape.n)
                                 : start_walk<T, 3, 2>(queue, it, shape.n);
    return shape.stride == 1 ? start_walk<T, 5, 1>(queue, it, shape.n)
                             : start_walk<T, 5, 2>(queue, it, shape.n);
}

extern "C" int tdmi_cuda_depthwise_forward(struct CUstream_st *queue,
                                           const struct tdmi_cuda_window *shape,
                                           const struct tdmi_cuda_depthwise_forward *call)
{
    if (!is_clamp(call->act) || !is_clamp(call->x_act))
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(shape->type,
                   [=](auto zero) { return forward_of<decltype(zero)>(queue, *shape, *call); });
}

template <class T>
static int data_of(struct CUstream_st *queue, const struct tdmi_cuda_window &shape,
                   const struct tdmi_cuda_depthwise_data &call)
{
    const int reach = (shape.kernel - 1) * shape.dilation;
    const T *const masked = call.x_act == TDMI_ACT_NONE ? nullptr : static_cast<const T *>(call.x);
    const struct walk<T> it = {
        {static_cast<const T *>(call.dy), shape.out_h, shape.out_w, shape.channels}, TDMI_ACT_NONE,
            shape.h, shape.w, reach - shape.top, reach - shape.left, call.weights, true, {},
        {
            nullptr, TDMI_ACT_NONE, masked, call.x_act, static_cast<const T *>(call.add),
                static_cast<T *>(call.dx)
        }
    };
    const bool has_vectors = lies_on_16(call.dy) && lies_on_16(call.dx) &&
                             lies_on_16(call.weights) && lies_on_16(masked) && lies_on_16(call.add);
    if (!has_vectors || !tdmi_cuda_depthwise_is_usual(&shape))
        return start_gather(queue, it, shape.n, has_vectors,
                            {shape.kernel, 1, shape.dilation, shape.stride});
    if (shape.stride == 2)
        return tdmi_cuda_depthwise_spread(queue, &shape, &call);
    return shape.kernel == 3 ? start_walk<T, 3, 1>(queue, it, shape.n)
                             : start_walk<T, 5, 1>(queue, it, shape.n);
}

extern "C" int tdmi_cuda_depthwise_data(struct CUstream_st *queue,
                                        const struct tdmi_cuda_window *shape,
                                        const struct tdmi_cuda_depthwise_data *call)
{
    if (!is_clamp(call->x_act))
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(shape->type,
                   [=](auto zero) { return data_of<decltype(zero)>(queue, *shape, *call); });
}

/* ---- folding -------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS) fold(struct tdmi_cuda_depthwise_fold it)
{
    const int channel = (int)(blockIdx.x * TDMI_CUDA_TILE_THREADS + threadIdx.x);
    if (channel >= it.channels)
        return;
    double factor = 1.0, bias = it.bias ? (double)it.bias[channel] : 0.0;
    if (it.scale) {
        factor = (double)it.scale[channel] / sqrt((double)it.variance[channel] + it.epsilon);
        bias = (bias - (double)it.mean[channel]) * factor + (double)it.shift[channel];
    }
    for (int tap = 0; tap < it.taps; tap++) {
        const int64_t at = (int64_t)tap * it.channels + channel;
        it.packed[at] = (float)((double)it.weights[at] * factor);
    }
    it.packed[(int64_t)it.taps * it.channels + channel] = (float)bias;
}

extern "C" int tdmi_cuda_depthwise_fold(struct CUstream_st *queue,
                                        const struct tdmi_cuda_depthwise_fold *call)
{
    const int blocks = (call->channels + TDMI_CUDA_TILE_THREADS - 1) / TDMI_CUDA_TILE_THREADS;
    return launch(fold, dim3((unsigned)blocks), dim3(TDMI_CUDA_TILE_THREADS), queue, *call);
}
