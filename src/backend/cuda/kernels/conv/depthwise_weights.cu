/*
 * The gradient of a depthwise convolution's weights: kernel² sums a channel over all pixels of all
 * images. Threads go down strips as forward does (geometry.h), with all sums of their channels in
 * registers, so that x and dy are read once for all taps; blocks add up in a tree, and a second
 * pass adds up the blocks. Where a shape has no unrolled kernel, each tap has threads of its own.
 */
#include "backend/cuda/kernels/conv/column_sums.cuh"
#include "backend/cuda/kernels/conv/depthwise.cuh"

enum {
    most_rows = 16,
    most_pixels = 512, /* that a thread adds in f32 */
    any_threads = 128,
    any_pixels = 64,     /* a thread adds at least so many */
    any_chunks = 1024,   /* at most */
    most_images = 65536, /* --batch takes no more */
    W = 2                /* columns of a strip of dy: more would not fit beside the sums */
};

template <class T>
struct weight_sums {
    pictures<T> x, dy;
    enum tdmi_act act; /* that x is read through */
    int top, left;
    struct tdmi_cuda_sum_tiles tiles;
};

/* Adds one cell: rows of x come one after another, and meet the J + 1 rows of dy that see them. */
template <class T, int K, int S, int N>
static __device__ __forceinline__ void add_cell(const struct weight_sums<T> &it, int64_t cell,
                                                int channel, float (&sum)[K * K][N])
{
    constexpr int J = (K - 1) / S, C = (W - 1) * S + K;
    const struct tdmi_cuda_tiles &cells = it.tiles.cells;
    const int64_t line = cell / cells.strips, picture = line / cells.parts;
    const int column = (int)(cell - line * cells.strips) * W;
    const int first = (int)(line - picture * cells.parts) * cells.rows;
    const int last = first + cells.rows < it.dy.h ? first + cells.rows : it.dy.h;
    const int channels = it.x.channels, left = column * S - it.left;
    const T *const x = it.x.values + picture * it.x.h * it.x.w * channels + channel;
    const T *const dy = it.dy.values + picture * it.dy.h * it.dy.w * channels + channel;
    float g[J + 1][W][N] = {};
    raw_row<T, N, W> raw_dy;
    raw_row<T, N, C> raw_x;
    raw_dy.begin_at(it.dy, dy, first, column);
    raw_dy.fetch(it.dy, true);
    raw_x.begin_at(it.x, x, first * S - it.top, left);
    raw_x.fetch(it.x, true);
    for (int t = first; t < last + J; t++) {
#pragma unroll
        for (int j = J; j > 0; j--)
#pragma unroll
            for (int q = 0; q < W; q++)
#pragma unroll
                for (int i = 0; i < N; i++)
                    g[j][q][i] = g[j - 1][q][i];
        raw_dy.give(g[0]);
        /* rows of the cell below are its own: zeros stand for them */
        raw_dy.fetch(it.dy, t + 1 < last);
#pragma unroll
        for (int p = 0; p < S; p++) {
            float v[C][N];
            raw_x.give(v);
            raw_x.fetch(it.x, p < S - 1 || t < last + J - 1);
            activate<C, N>(it.act, v);
#pragma unroll
            for (int tap = 0; tap < (J + 1) * K; tap++) {
                const int j = tap / K, ky = p + j * S, kx = tap % K;
#pragma unroll
                for (int q = 0; q < W; q++)
#pragma unroll
                    for (int i = 0; i < N; i++)
                        if (ky < K)
                            sum[ky < K ? ky * K + kx : 0][i] += v[q * S + kx][i] * g[j][q][i];
            }
        }
    }
}

/* partial[chunk][tap][channel] */
template <class T, int K, int S, int N>
__global__ void __launch_bounds__(column_threads, 2)
    sum_cells(struct weight_sums<T> it, double *partial)
{
    TDM_SHARED(double, room, column_threads *N);
    const int vector_at = (int)(blockIdx.y * it.tiles.width + threadIdx.x);
    const bool is_inside = vector_at < it.tiles.cells.vectors;
    const int channel = is_inside ? vector_at * N : 0;
    const int plane = it.tiles.width * it.tiles.lines;
    const int own = (int)(threadIdx.y * it.tiles.width + threadIdx.x);
    float sum[K * K][N] = {};
    int64_t cell = (int64_t)blockIdx.x * it.tiles.depth * it.tiles.lines + threadIdx.y;
    for (int k = 0; k < it.tiles.depth && cell < it.tiles.n_cells && is_inside; k++) {
        add_cell<T, K, S, N>(it, cell, channel, sum);
        cell += it.tiles.lines;
    }
    double *to = partial + (int64_t)blockIdx.x * K * K * it.x.channels + channel;
#pragma unroll
    for (int tap = 0; tap < K * K; tap++) {
#pragma unroll
        for (int i = 0; i < N; i++)
            room[i * plane + own] = (double)sum[tap][i];
        add_rows<N>(room, it.tiles.width, it.tiles.lines);
        for (int i = 0; i < N && threadIdx.y == 0 && is_inside; i++)
            to[(int64_t)tap * it.x.channels + i] = room[i * plane + own];
        __syncthreads();
    }
}

/* Any shape: a thread adds up one tap of its channels over a chunk of pixels. */
struct any_taps {
    int kernel, stride, dilation;
    int64_t pixels, chunk; /* of y: all, and those of a thread */
};

template <class T, int N>
__global__ void __launch_bounds__(any_threads)
    sum_tap(struct weight_sums<T> it, struct any_taps any, double *partial)
{
    const int vectors = it.x.channels / N;
    const int64_t own = (int64_t)blockIdx.y * any_threads + threadIdx.x;
    if (own >= (int64_t)any.kernel * any.kernel * vectors)
        return;
    const int tap = (int)(own / vectors), channel = (int)(own - (int64_t)tap * vectors) * N;
    const int64_t begin = blockIdx.x * any.chunk;
    const int64_t end = begin + any.chunk < any.pixels ? begin + any.chunk : any.pixels;
    double sum[N] = {};
    for (int64_t pixel = begin; pixel < end; pixel++) {
        const int64_t line = pixel / it.dy.w, picture = line / it.dy.h;
        const int64_t row =
            (line - picture * it.dy.h) * any.stride + tap / any.kernel * any.dilation - it.top;
        const int64_t column =
            (pixel - line * it.dy.w) * any.stride + tap % any.kernel * any.dilation - it.left;
        if (row < 0 || row >= it.x.h || column < 0 || column >= it.x.w)
            continue;
        float x[1][N], dy[N];
        load<T, N>(it.x.values + ((picture * it.x.h + row) * it.x.w + column) * it.x.channels +
                       channel,
                   x[0]);
        load<T, N>(it.dy.values + pixel * it.dy.channels + channel, dy);
        activate<1, N>(it.act, x);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum[i] += (double)(x[0][i] * dy[i]);
    }
    double *const to =
        partial + ((int64_t)blockIdx.x * any.kernel * any.kernel + tap) * it.x.channels + channel;
#pragma unroll
    for (int i = 0; i < N; i++)
        to[i] = sum[i];
}

/* ---- launching ------------------------------------------------------------------------------ */

static struct tdmi_cuda_sum_tiles tiles_of(const struct tdmi_cuda_window &shape)
{
    const int lanes = shape.kernel == 3 ? lanes_of<3>::value : lanes_of<5>::value;
    return tdmi_cuda_sum_tiles_of(shape.n, shape.out_h, shape.out_w, shape.channels / lanes, W,
                                  most_rows, most_pixels);
}

static struct any_taps any_of(const struct tdmi_cuda_window &shape)
{
    const int64_t pixels = shape.n * shape.out_h * shape.out_w;
    const int64_t chunk = (pixels + any_chunks - 1) / any_chunks;
    const int64_t least = any_pixels;
    return {shape.kernel, shape.stride, shape.dilation, pixels, chunk > least ? chunk : least};
}

/* Partial sums of a weight, whichever kernel is taken. */
static int64_t sets_of(const struct tdmi_cuda_window &shape)
{
    const struct any_taps any = any_of(shape);
    const int64_t sets = (any.pixels + any.chunk - 1) / any.chunk;
    const int64_t usual = tdmi_cuda_depthwise_is_usual(&shape) ? tiles_of(shape).chunks : 0;
    return usual > sets ? usual : sets;
}

extern "C" size_t tdmi_cuda_depthwise_workspace_bytes(const struct tdmi_cuda_window *shape)
{
    int64_t sets = sets_of(*shape);
    struct tdmi_cuda_window some = *shape;
    if (some.n > most_images)
        some.n = most_images;
    for (; some.n > 0; some.n--) /* fewer images may have more chunks */
        sets = sets_of(some) > sets ? sets_of(some) : sets;
    const size_t taps =
        (size_t)sets * (size_t)(shape->kernel * shape->kernel) * (size_t)shape->channels;
    const size_t bias = tdmi_cuda_columns_sum_bytes(any_of(*shape).pixels, shape->channels);
    return taps * sizeof(double) > bias ? taps * sizeof(double) : bias;
}

template <class T>
static int all_taps(struct CUstream_st *queue, const struct tdmi_cuda_window &shape,
                    const struct tdmi_cuda_depthwise_weights &call, struct weight_sums<T> it)
{
    it.tiles = tiles_of(shape);
    if (it.tiles.chunks > INT32_MAX || it.tiles.beside > 65535)
        return TDMI_CUDA_INVALID_VALUE;
    double *const partial = static_cast<double *>(call.workspace);
    const bool is_three = shape.kernel == 3, is_one = shape.stride == 1;
    const int64_t sums = (int64_t)shape.kernel * shape.kernel * shape.channels;
    const int code =
        launch(is_three ? (is_one ? sum_cells<T, 3, 1, lanes_of<3>::value>
                                  : sum_cells<T, 3, 2, lanes_of<3>::value>)
                        : (is_one ? sum_cells<T, 5, 1, lanes_of<5>::value>
                                  : sum_cells<T, 5, 2, lanes_of<5>::value>),
               dim3((unsigned)it.tiles.chunks, (unsigned)it.tiles.beside),
               dim3((unsigned)it.tiles.width, (unsigned)it.tiles.lines), queue, it, partial);
    return code ? code
                : launch_add_chunks(queue, partial, it.tiles.chunks, sums, sums, call.dweights);
}

template <class T>
static int tap_by_tap(struct CUstream_st *queue, const struct tdmi_cuda_window &shape,
                      const struct tdmi_cuda_depthwise_weights &call,
                      const struct weight_sums<T> &it)
{
    double *const partial = static_cast<double *>(call.workspace);
    const struct any_taps any = any_of(shape);
    const int64_t sums = (int64_t)shape.kernel * shape.kernel * shape.channels;
    const int64_t chunks = (any.pixels + any.chunk - 1) / any.chunk;
    const bool has_vectors =
        shape.channels % full<T>::lanes == 0 && lies_on_16(call.x) && lies_on_16(call.dy);
    const int64_t threads = has_vectors ? sums / full<T>::lanes : sums;
    const int64_t blocks = (threads + any_threads - 1) / any_threads;
    if (blocks > 65535)
        return TDMI_CUDA_INVALID_VALUE;
    const int code = launch(has_vectors ? sum_tap<T, full<T>::lanes> : sum_tap<T, 1>,
                            dim3((unsigned)chunks, (unsigned)blocks), dim3(any_threads), queue, it,
                            any, partial);
    return code ? code : launch_add_chunks(queue, partial, chunks, sums, sums, call.dweights);
}

extern "C" int tdmi_cuda_depthwise_weights(struct CUstream_st *queue,
                                           const struct tdmi_cuda_window *shape,
                                           const struct tdmi_cuda_depthwise_weights *call)
{
    if (!is_clamp(call->x_act))
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(shape->type, [=](auto zero) {
        using T = decltype(zero);
        const struct weight_sums<T> it = {
            {static_cast<const T *>(call->x), shape->h, shape->w, shape->channels},
                {static_cast<const T *>(call->dy), shape->out_h, shape->out_w, shape->channels},
                call->x_act, shape->top, shape->left,
            {
            }
        };
        return tdmi_cuda_depthwise_is_usual(shape) && lies_on_16(call->x) && lies_on_16(call->dy)
                   ? all_taps<T>(queue, *shape, *call, it)
                   : tap_by_tap<T>(queue, *shape, *call, it);
    });
}
