/* Across: a thread a pixel. Down, and a part as it is: a thread a byte. */
#include "backend/cuda/kernels/kernel.cuh"
#include "backend/cuda/kernels/image/resize.h"

enum { block_threads = 256, rounding = 1 << (TDMI_RESIZE_FRACTION_BITS - 1) };

static __device__ __forceinline__ uint8_t to_byte(int32_t sum)
{
    sum >>= TDMI_RESIZE_FRACTION_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

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
    int32_t red = rounding, green = rounding, blue = rounding;
    for (int k = 0; k < it.n_taps; k++) {
        const uint8_t *pixel = row + 3 * (int64_t)(input_of(it, span, k) - first);
        red += pixel[0] * taps[k];
        green += pixel[1] * taps[k];
        blue += pixel[2] * taps[k];
    }
    to[3 * i] = to_byte(red);
    to[3 * i + 1] = to_byte(green);
    to[3 * i + 2] = to_byte(blue);
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
    int32_t sum = rounding;
    for (int k = 0; k < it.n_taps; k++)
        sum += column[stride_bytes * (input_of(it, span, k) - first)] * taps[k];
    to[i] = to_byte(sum);
}

__global__ void part(const uint8_t *rows, int64_t stride_bytes, int row_bytes, int64_t n,
                     uint8_t *to)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = rows[stride_bytes * (i / row_bytes) + i % row_bytes];
}

static dim3 blocks_of(int64_t n)
{
    return dim3((unsigned)((n + block_threads - 1) / block_threads));
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
