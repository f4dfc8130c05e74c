/*
 * The gradient of a depthwise convolution's input with a stride of 2: a thread goes down a strip
 * (geometry.h) and keeps rows of dy, each of which, with the ones before it, gives two rows of dx.
 */
#include "backend/cuda/kernels/conv/depthwise_walk.cuh"

/* Stride 2 backward: step t is a row of dy and of the J before it, which give rows 2t - top and
 * one more of dx; the same across. first_row and first_column: of dy, at the tiles' begin. */
template <class T, int K, int N, int W>
__global__ void __launch_bounds__(TDMI_CUDA_TILE_THREADS)
    spread_down(struct walk<T> it, int first_row, int n_rows, int first_column)
{
    constexpr int J = (K - 1) / 2, C = W + J;
    struct cell cell;
    if (!find_cell<N>(it.tiles, n_rows, cell))
        return;
    const int channels = it.from.channels, column = first_column + cell.column;
    const T *const picture =
        it.from.values + cell.picture * it.from.h * it.from.w * channels + cell.channel;
    float weight[K * K][N], dy[J + 1][C][N] = {};
    load_weights<K * K, N>(it.weights + cell.channel, channels, false, weight);
    const int last = first_row + cell.last;
    raw_row<T, N, C> raw;
    raw.begin_at(it.from, picture, first_row + cell.first - J, column - J);
    raw.fetch(it.from, true);
    for (int t = first_row + cell.first - J; t < last; t++) {
#pragma unroll
        for (int j = J; j > 0; j--)
#pragma unroll
            for (int c = 0; c < C; c++)
#pragma unroll
                for (int i = 0; i < N; i++)
                    dy[j][c][i] = dy[j - 1][c][i];
        raw.give(dy[0]);
        raw.fetch(it.from, t + 1 < last);
        if (t < first_row + cell.first)
            continue;
#pragma unroll
        for (int at = 0; at < 4 * W; at++) { /* two rows of 2 · W columns */
            const int p = at / (2 * W), q = at % (2 * W) / 2, o = at % 2;
            const int y = 2 * t - it.top + p, x = 2 * (column + q) - it.left + o;
            float sum[N] = {};
#pragma unroll
            for (int tap = 0; tap < (J + 1) * (J + 1); tap++) {
                const int j = tap / (J + 1), k = tap % (J + 1), ky = p + 2 * j, kx = o + 2 * k;
#pragma unroll
                for (int i = 0; i < N; i++)
                    if (ky < K && kx < K)
                        sum[i] +=
                            dy[j][q - k + J][i] * weight[ky < K && kx < K ? ky * K + kx : 0][i];
            }
            if (y >= 0 && y < it.h && x >= 0 && x < it.w)
                it.end.template store_at<N, false>(
                    ((cell.picture * it.h + y) * it.w + x) * channels + cell.channel, cell.channel,
                    sum);
        }
    }
}

template <class T, int K>
static int start_spread(struct CUstream_st *queue, struct walk<T> it, int64_t n)
{
    constexpr int N = lanes_of<K>::value, W = 2;
    const int first_row = it.top / 2, rows = (it.h - 1 + it.top) / 2 - first_row + 1;
    const int first_column = it.left / 2, columns = (it.w - 1 + it.left) / 2 - first_column + 1;
    it.tiles = tdmi_cuda_tiles_of(n, rows, columns, it.from.channels / N, W, most_rows);
    return start(queue, it, spread_down<T, K, N, W>, first_row, rows, first_column);
}

template <class T>
static int spread_of(struct CUstream_st *queue, const struct tdmi_cuda_window &shape,
                     const struct tdmi_cuda_depthwise_data &call)
{
    const T *const masked = call.x_act == TDMI_ACT_NONE ? nullptr : static_cast<const T *>(call.x);
    const struct walk<T> it = {
        {static_cast<const T *>(call.dy), shape.out_h, shape.out_w, shape.channels}, TDMI_ACT_NONE,
            shape.h, shape.w, shape.top, shape.left, call.weights, false, {},
        {
            nullptr, TDMI_ACT_NONE, masked, call.x_act, static_cast<const T *>(call.add),
                static_cast<T *>(call.dx)
        }
    };
    return shape.kernel == 3 ? start_spread<T, 3>(queue, it, shape.n)
                             : start_spread<T, 5>(queue, it, shape.n);
}

extern "C" int tdmi_cuda_depthwise_spread(struct CUstream_st *queue,
                                          const struct tdmi_cuda_window *shape,
                                          const struct tdmi_cuda_depthwise_data *call)
{
    if (!tdmi_cuda_depthwise_is_usual(shape) || shape->stride != 2 || !is_clamp(call->x_act))
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(shape->type,
                   [=](auto zero) { return spread_of<decltype(zero)>(queue, *shape, *call); });
}
