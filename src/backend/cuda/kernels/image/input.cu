/*
 * Images that are changed: a pixel a thread, an image after the other. Normalising divides, as on
 * the host: the same numbers come out. Changes of pixels are augment/colour.c's and
 * augment/warp.c's, bit by bit but for hue, whose f32 arithmetic a compiler may fuse.
 */
#include "backend/cuda/kernels/image/image.h"
#include "backend/cuda/kernels/reduce.cuh"
#include "image/augment/augment.h"

enum {
    input_threads = 256,
    block_values = 1 << 13 /* bytes that a block of number_bytes converts */
};

/* This thread's pixel, where it has one. */
struct pixel {
    int64_t picture;
    int at, x, y;
};

static __device__ __forceinline__ bool find_pixel(const struct tdmi_cuda_input &it, unsigned blocks,
                                                  struct pixel &pixel)
{
    const unsigned picture = blockIdx.x / blocks;
    const int64_t at = (int64_t)(blockIdx.x - picture * blocks) * input_threads + threadIdx.x;
    if (at >= (int64_t)it.h * it.w)
        return false;
    pixel.picture = picture;
    pixel.at = (int)at;
    pixel.y = pixel.at / it.w;
    pixel.x = pixel.at - pixel.y * it.w;
    return true;
}

static __device__ __forceinline__ float number_of(const struct tdmi_cuda_input &it, int c, int byte)
{
    const struct tdmi_normal normal = it.normal[c];
    return ((float)byte / normal.divisor - normal.mean) / normal.deviation;
}

/* A block first converts each of the 256 bytes for each channel: dividing takes longer than reading
 * a table. */
template <class T>
__global__ void __launch_bounds__(input_threads)
    number_bytes(struct tdmi_cuda_input it, unsigned blocks, const uint8_t *const *pixels, T *y)
{
    enum { bytes = 256 };
    TDM_SHARED(float, numbers, 3 * bytes);
    const int tables = it.channels < 3 ? it.channels : 3;
    for (int k = (int)threadIdx.x; k < tables * bytes; k += input_threads)
        numbers[k] = number_of(it, k / bytes, k % bytes);
    __syncthreads();
    const unsigned picture = blockIdx.x / blocks;
    const int64_t values = (int64_t)it.h * it.w * it.channels;
    const int64_t begin = (int64_t)(blockIdx.x - picture * blocks) * block_values;
    const int64_t end = begin + block_values < values ? begin + block_values : values;
    const uint8_t *const from = pixels[picture];
    T *const to = y + picture * values;
    int c = (int)((begin + threadIdx.x) % it.channels);
    for (int64_t at = begin + threadIdx.x; at < end; at += input_threads) {
        to[at] = of_float<T>(numbers[c % 3 * bytes + from[at]]);
        c = (c + input_threads) % it.channels;
    }
}

/* ---- changes ---------------------------------------------------------------------------- */

/* A pixel: three equal values in a grey image. */
struct colour {
    int32_t at[3];
};

/* Mean luma where contrast is about to be changed; only such images have one. */
enum { no_mean = -1 };

static __device__ __forceinline__ int32_t blended(int32_t base, int32_t value, int32_t factor)
{
    const int32_t sum = ((base << 16) + (value - base) * factor + (1 << 15)) >> 16;
    return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

static __device__ __forceinline__ int32_t luma(const struct colour &it)
{
    return (it.at[0] * 19595 + it.at[1] * 38470 + it.at[2] * 7471 + 0x8000) >> 16;
}

static __device__ __forceinline__ void blend_all(struct colour &it, int32_t base, int32_t factor)
{
#pragma unroll
    for (int c = 0; c < 3; c++)
        it.at[c] = blended(base, it.at[c], factor);
}

static __device__ __forceinline__ int32_t at_channel(float value, float chroma, float k)
{
    k = k >= 6.0f ? k - 6.0f : k;
    float near = k < 4.0f - k ? k : 4.0f - k;
    near = near < 0.0f ? 0.0f : near;
    near = near > 1.0f ? 1.0f : near;
    return (int32_t)(value - chroma * near + 0.5f);
}

static __device__ __forceinline__ void turn(struct colour &it, float by)
{
    const float red = (float)it.at[0], green = (float)it.at[1], blue = (float)it.at[2];
    const float high = fmaxf(fmaxf(red, green), blue), low = fminf(fminf(red, green), blue);
    const float chroma = high - low, divisor = chroma > 0.0f ? chroma : 1.0f;
    float hue = red == high     ? (green - blue) / divisor
                : green == high ? 2.0f + (blue - red) / divisor
                                : 4.0f + (red - green) / divisor;
    hue += by;
    hue = hue < 0.0f ? hue + 6.0f : hue;
    hue = hue >= 6.0f ? hue - 6.0f : hue;
    it.at[0] = at_channel(high, chroma, hue + 5.0f);
    it.at[1] = at_channel(high, chroma, hue + 3.0f);
    it.at[2] = at_channel(high, chroma, hue + 1.0f);
}

/* The pixel of an image that comes to (x, y), before its colours change. */
static __device__ __forceinline__ struct colour taken(const struct tdmi_cuda_input &it,
                                                      const struct tdmi_cuda_change &change,
                                                      const uint8_t *bytes, int x, int y)
{
    const int from_x = (change.is_flipped ? it.w - 1 - x : x) + change.dx, from_y = y + change.dy;
    if (from_x < 0 || from_x >= it.w || from_y < 0 || from_y >= it.h)
        return colour{{change.fill, change.fill, change.fill}};
    const uint8_t *from = bytes + ((int64_t)from_y * it.w + from_x) * it.channels;
    return it.channels == 3 ? colour{{from[0], from[1], from[2]}}
                            : colour{{from[0], from[0], from[0]}};
}

/* Its colours changed; with no_mean up to where a mean is asked for. */
static __device__ __forceinline__ void recolour(const struct tdmi_cuda_input &it,
                                                const struct tdmi_cuda_change &change, int32_t mean,
                                                struct colour &value)
{
    for (int k = 0; k < change.n_colours; k++) {
        const int32_t factor = change.colours[k].factor;
        switch (change.colours[k].kind) {
        case TDMI_COLOUR_BRIGHTNESS:
            blend_all(value, 0, factor);
            break;
        case TDMI_COLOUR_CONTRAST:
            if (mean == no_mean)
                return;
            blend_all(value, mean, factor);
            break;
        case TDMI_COLOUR_SATURATION:
            if (it.channels == 3)
                blend_all(value, luma(value), factor);
            break;
        default:
            if (it.channels == 3)
                turn(value, change.colours[k].turn);
        }
    }
}

static __device__ __forceinline__ struct colour changed(const struct tdmi_cuda_input &it,
                                                        const struct tdmi_cuda_change &change,
                                                        const uint8_t *bytes, int32_t mean, int x,
                                                        int y)
{
    if (x >= change.cut_left && x < change.cut_right && y >= change.cut_top &&
        y < change.cut_bottom)
        return colour{{change.cut_fill, change.cut_fill, change.cut_fill}};
    struct colour value = taken(it, change, bytes, x, y);
    recolour(it, change, mean, value);
    return value;
}

static __device__ __forceinline__ bool has_contrast(const struct tdmi_cuda_change &change)
{
    for (int k = 0; k < change.n_colours; k++)
        if (change.colours[k].kind == TDMI_COLOUR_CONTRAST)
            return true;
    return false;
}

/* A block an image: the mean of all its pixels as they are when contrast is about to change. */
__global__ void __launch_bounds__(input_threads)
    mean_luma(struct tdmi_cuda_input it, const uint8_t *const *pixels,
              const struct tdmi_cuda_change *changes, int32_t *means)
{
    TDM_SHARED(int64_t, room, 33);
    const struct tdmi_cuda_change change = changes[blockIdx.x];
    const int64_t n = (int64_t)it.h * it.w;
    if (!has_contrast(change)) {
        if (threadIdx.x == 0)
            means[blockIdx.x] = no_mean;
        return;
    }
    int64_t sum = 0;
    for (int64_t at = threadIdx.x; at < n; at += input_threads) {
        const int y = (int)(at / it.w);
        struct colour value =
            taken(it, change, pixels[blockIdx.x], (int)(at - (int64_t)y * it.w), y);
        recolour(it, change, no_mean, value);
        sum += it.channels == 3 ? luma(value) : value.at[0];
    }
    sum = over_block<input_threads>(sum, room, plus());
    if (threadIdx.x == 0)
        means[blockIdx.x] = (int32_t)((sum + n / 2) / n);
}

template <class T>
__global__ void __launch_bounds__(input_threads)
    number_changed(struct tdmi_cuda_input it, unsigned blocks, const uint8_t *const *pixels,
                   const struct tdmi_cuda_change *changes, const int32_t *means, T *y)
{
    struct pixel own;
    if (!find_pixel(it, blocks, own))
        return;
    const struct tdmi_cuda_change &change = changes[own.picture];
    struct colour value = changed(it, change, pixels[own.picture],
                                  means ? means[own.picture] : no_mean, own.x, own.y);
    const int other = change.partner;
    const bool is_cut = own.x >= change.left && own.x < change.right && own.y >= change.top &&
                        own.y < change.bottom;
    if (other != (int)own.picture && (change.blend < 256 || is_cut)) {
        const struct colour beside = changed(it, changes[other], pixels[other],
                                             means ? means[other] : no_mean, own.x, own.y);
        const int part = change.blend < 256 ? change.blend : 0;
#pragma unroll
        for (int c = 0; c < 3; c++)
            value.at[c] = (value.at[c] * part + beside.at[c] * (256 - part) + 128) >> 8;
    }
    T *to = y + (own.picture * it.h * it.w + own.at) * it.channels;
    to[0] = of_float<T>(number_of(it, 0, value.at[0]));
    if (it.channels == 3) {
        to[1] = of_float<T>(number_of(it, 1, value.at[1]));
        to[2] = of_float<T>(number_of(it, 2, value.at[2]));
    }
}

/* ---- launchers -------------------------------------------------------------------------- */

/* Blocks of an image that take `part` of its `whole`; 0 where all are more than a grid has. */
static unsigned blocks_of(const struct tdmi_cuda_input &it, int64_t whole, int part)
{
    const int64_t blocks = (whole + part - 1) / part;
    return (int64_t)it.h * it.w > INT32_MAX || blocks * it.n > INT32_MAX ? 0 : (unsigned)blocks;
}

static unsigned blocks_of_pixels(const struct tdmi_cuda_input &it)
{
    return blocks_of(it, (int64_t)it.h * it.w, input_threads);
}

extern "C" int tdmi_cuda_input_forward(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                                       const uint8_t *const *pixels, void *y)
{
    const unsigned blocks = blocks_of(*it, (int64_t)it->h * it->w * it->channels, block_values);
    if (blocks == 0)
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        return launch(number_bytes<T>, dim3(blocks * (unsigned)it->n), dim3(input_threads), queue,
                      *it, blocks, pixels, static_cast<T *>(y));
    });
}

extern "C" int tdmi_cuda_input_means(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                                     const uint8_t *const *pixels,
                                     const struct tdmi_cuda_change *changes, int32_t *means)
{
    if (it->channels != 1 && it->channels != 3)
        return TDMI_CUDA_INVALID_VALUE;
    return launch(mean_luma, dim3((unsigned)it->n), dim3(input_threads), queue, *it, pixels,
                  changes, means);
}

extern "C" int tdmi_cuda_input_changed(struct CUstream_st *queue, const struct tdmi_cuda_input *it,
                                       const uint8_t *const *pixels,
                                       const struct tdmi_cuda_change *changes, const int32_t *means,
                                       void *y)
{
    const unsigned blocks = blocks_of_pixels(*it);
    if (blocks == 0 || (it->channels != 1 && it->channels != 3))
        return TDMI_CUDA_INVALID_VALUE;
    return by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        return launch(number_changed<T>, dim3(blocks * (unsigned)it->n), dim3(input_threads), queue,
                      *it, blocks, pixels, changes, means, static_cast<T *>(y));
    });
}
