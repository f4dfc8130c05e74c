/* A thread a pixel. */
#include "backend/cuda/kernels/kernel.cuh"
#include "backend/cuda/kernels/image/planes.h"

enum { block_threads = 256, narrowest = 3 /* colours that are narrower are just doubled */ };

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
    return launch(mix, dim3((unsigned)((n + block_threads - 1) / block_threads)),
                  dim3(block_threads), queue, *it, orientation_of(*it), pixels);
}
