/* Rows by their numbers, planes to RGB, and resizing. */
#include "backend/cuda/kernels/image/image.h"
#include "backend/cuda/kernels/kernel.cuh"

enum { block_threads = 256 };

static dim3 blocks_of(int64_t n)
{
    return dim3((unsigned)((n + block_threads - 1) / block_threads));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/*
 * A row is one block's or several blocks' whole, so its number is read once a block; a thread moves
 * as much as both ends of every row allow, 16 bytes where rows are whole vectors. What the bytes
 * mean is nobody's concern here.
 */

/* row_parts: of a row, in blocks; row_units: in units of what is moved as one. */
template <class Unit>
__global__ void __launch_bounds__(block_threads)
    gather(const Unit *table, int64_t row_units, unsigned row_parts, const int64_t *numbers,
           Unit *to)
{
    const int64_t row = blockIdx.x / row_parts;
    const int64_t at = (int64_t)(blockIdx.x % row_parts) * block_threads + threadIdx.x;
    if (at < row_units)
        to[row * row_units + at] = table[numbers[row] * row_units + at];
}

template <class Unit>
static int launch_gather(struct CUstream_st *queue, const void *table, size_t row_bytes,
                         const int64_t *numbers, int n, void *to)
{
    const int64_t units = (int64_t)(row_bytes / sizeof(Unit));
    const unsigned parts = (unsigned)((units + block_threads - 1) / block_threads);
    return launch(gather<Unit>, dim3((unsigned)n * parts), dim3(block_threads), queue,
                  static_cast<const Unit *>(table), units, parts, numbers, static_cast<Unit *>(to));
}

extern "C" int tdmi_cuda_gather(struct CUstream_st *queue, const void *table, size_t row_bytes,
                                const int64_t *numbers, int n, void *to)
{
    /* Every row begins at a multiple of the greatest power of two that divides all of these. */
    const uintptr_t all =
        reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(to) | row_bytes;
    if (n == 0 || row_bytes == 0)
        return 0;
    if (all % 16 == 0)
        return launch_gather<vector<uint32_t, 4>>(queue, table, row_bytes, numbers, n, to);
    if (all % 4 == 0)
        return launch_gather<uint32_t>(queue, table, row_bytes, numbers, n, to);
    if (all % 2 == 0)
        return launch_gather<uint16_t>(queue, table, row_bytes, numbers, n, to);
    return launch_gather<uint8_t>(queue, table, row_bytes, numbers, n, to);
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* A thread a pixel. */

enum { narrowest = 3 /* colours that are narrower are just doubled */ };

/* red = luma + 1.402 R, blue = luma + 1.772 B, green = luma - 0.34414 B - 0.71414 R, in 16 bits of
 * fraction: the numbers of image/jpeg/avx2.c. */
enum { centre = 128, red = 91881, blue = 116130, green_blue = -22554, green_red = -46802 };

/* Pixel (x, y) of the stored image goes to begin + x · step_x + y · step_y, in pixels. */
struct orientation {
    int64_t begin, step_x, step_y;
};

static orientation orientation_of(const tdmi_cuda_planes &it)
{
    const int64_t w = it.width, h = it.height;
    switch (it.orientation) {
    case 2:
        return {w - 1, -1, w};
    case 3:
        return {w * h - 1, -1, -w};
    case 4:
        return {(h - 1) * w, 1, -w};
    case 5:
        return {0, h, 1};
    case 6:
        return {h - 1, h, -1};
    case 7:
        return {w * h - 1, -h, -1};
    case 8:
        return {(w - 1) * h, -h, 1};
    default:
        return {0, 1, w};
    }
}

/* Interpolation weighs the nearer of two samples with three parts; a sample beyond an edge is that
 * of the edge. */
static __device__ __forceinline__ int neighbour(int at, int is_behind, int n)
{
    const int other = is_behind ? at + 1 : at - 1;
    return other < 0 ? 0 : other < n ? other : n - 1;
}

static __device__ __forceinline__ int colour_at(const tdmi_cuda_planes &it, int c, int x, int y)
{
    const uint8_t *samples = it.samples[c];
    const int64_t stride = it.stride_bytes[c];
    if (it.across == 1)
        return samples[stride * y + x];
    const int width = (it.width + 1) / 2, height = (it.height + it.down - 1) / it.down;
    const int at = x / 2, row = y / it.down, is_right = x % 2;
    const uint8_t *near = samples + stride * row;
    if (width < narrowest)
        return near[at];
    const int beside = neighbour(at, is_right, width);
    if (it.down == 1)
        return (3 * near[at] + near[beside] + 1 + is_right) >> 2;
    const uint8_t *far = samples + stride * neighbour(row, y % 2, height);
    return (3 * (3 * near[at] + far[at]) + 3 * near[beside] + far[beside] + 8 - is_right) >> 4;
}

static __device__ __forceinline__ uint8_t to_byte(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

__global__ void mix(tdmi_cuda_planes it, orientation to, uint8_t *pixels)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (int64_t)it.width * it.height)
        return;
    const int x = (int)(i % it.width), y = (int)(i / it.width), rounding = 1 << 15;
    const int luma = it.samples[0][it.stride_bytes[0] * y + x];
    uint8_t *pixel = pixels + 3 * (to.begin + x * to.step_x + y * to.step_y);
    if (it.n_components == 1) {
        pixel[0] = pixel[1] = pixel[2] = (uint8_t)luma;
        return;
    }
    const int b = colour_at(it, 1, x, y) - centre;
    const int r = colour_at(it, 2, x, y) - centre;
    pixel[0] = to_byte(luma + ((red * r + rounding) >> 16));
    pixel[1] = to_byte(luma + ((green_blue * b + green_red * r + rounding) >> 16));
    pixel[2] = to_byte(luma + ((blue * b + rounding) >> 16));
}

extern "C" int tdmi_cuda_planes_mix(struct CUstream_st *queue, const struct tdmi_cuda_planes *it,
                                    uint8_t *pixels)
{
    const int64_t n = (int64_t)it->width * it->height;
    return launch(mix, blocks_of(n), dim3(block_threads), queue, *it, orientation_of(*it), pixels);
}

/* ---- resizing -------------------------------------------------------------------------------- */

/* Across: a thread a pixel. Down, and a part as it is: a thread a byte. */

enum { resize_rounding = 1 << (TDMI_RESIZE_FRACTION_BITS - 1) };

/* Weights of inputs that there are none of are 0; the last one stands in for them. */
static __device__ __forceinline__ int input_of(const tdmi_cuda_resize &it, tdmi_span span, int k)
{
    const int at = span.first + k;
    return at < it.n_inputs ? at : it.n_inputs - 1;
}

__global__ void across(tdmi_cuda_resize it, const uint8_t *rows, int first, int n_columns,
                       int64_t n, uint8_t *to)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int x = (int)(i % it.n_outputs);
    const uint8_t *row = rows + 3 * (int64_t)n_columns * (i / it.n_outputs);
    const tdmi_span span = it.spans[x];
    const int32_t *taps = it.taps + (int64_t)x * it.n_taps;
    int32_t sums[3] = {resize_rounding, resize_rounding, resize_rounding};
    for (int k = 0; k < it.n_taps; k++) {
        const uint8_t *pixel = row + 3 * (int64_t)(input_of(it, span, k) - first);
        for (int c = 0; c < 3; c++)
            sums[c] += pixel[c] * taps[k];
    }
    for (int c = 0; c < 3; c++)
        to[3 * i + c] = to_byte(sums[c] >> TDMI_RESIZE_FRACTION_BITS);
}

__global__ void down(tdmi_cuda_resize it, const uint8_t *rows, int first, int64_t stride_bytes,
                     int row_bytes, int64_t n, uint8_t *to)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int y = (int)(i / row_bytes);
    const uint8_t *column = rows + i % row_bytes;
    const tdmi_span span = it.spans[y];
    const int32_t *taps = it.taps + (int64_t)y * it.n_taps;
    int32_t sum = resize_rounding;
    for (int k = 0; k < it.n_taps; k++)
        sum += column[stride_bytes * (input_of(it, span, k) - first)] * taps[k];
    to[i] = to_byte(sum >> TDMI_RESIZE_FRACTION_BITS);
}

__global__ void part(const uint8_t *rows, int64_t stride_bytes, int row_bytes, int64_t n,
                     uint8_t *to)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = rows[stride_bytes * (i / row_bytes) + i % row_bytes];
}

extern "C" int tdmi_cuda_resize_across(struct CUstream_st *queue, const struct tdmi_cuda_resize *it,
                                       const uint8_t *rows, int first, int n_columns, int n_rows,
                                       uint8_t *to)
{
    const int64_t n = (int64_t)it->n_outputs * n_rows;
    return launch(across, blocks_of(n), dim3(block_threads), queue, *it, rows, first, n_columns, n,
                  to);
}

extern "C" int tdmi_cuda_resize_down(struct CUstream_st *queue, const struct tdmi_cuda_resize *it,
                                     const uint8_t *rows, int first, int64_t stride_bytes,
                                     int row_bytes, uint8_t *to)
{
    const int64_t n = (int64_t)it->n_outputs * row_bytes;
    return launch(down, blocks_of(n), dim3(block_threads), queue, *it, rows, first, stride_bytes,
                  row_bytes, n, to);
}

extern "C" int tdmi_cuda_resize_part(struct CUstream_st *queue, const uint8_t *rows,
                                     int64_t stride_bytes, int row_bytes, int n_rows, uint8_t *to)
{
    const int64_t n = (int64_t)row_bytes * n_rows;
    return launch(part, blocks_of(n), dim3(block_threads), queue, rows, stride_bytes, row_bytes, n,
                  to);
}
