/*
 * Convolution as an implicit product (product.cuh): a row is a pixel, k a tap and a channel of the
 * window, and what lies outside the image is 0. The gradient of x reads dy through the same
 * windows from the other side; that of the weights sums over pixels, in chunks.
 */
#include "backend/cuda/kernels/conv/conv.h"
#include "backend/cuda/kernels/conv/column_sums.cuh"
#include "backend/cuda/kernels/conv/product.cuh"

/* A pixel of one of n images, counted through. */
struct pixel {
    int64_t image;
    int y, x;
};

static __device__ __forceinline__ struct pixel pixel_at(int64_t at, struct tdmi_shape of)
{
    const int64_t row = at / of.w;
    return {row / of.h, (int)(row % of.h), (int)(at % of.w)};
}

static __device__ __forceinline__ int64_t offset_of(int64_t image, int y, int x,
                                                    struct tdmi_shape of)
{
    return ((image * of.h + y) * of.w + x) * of.c;
}

/* Value of an output pixel's window at (tap, channel of the group). */
template <class T>
static __device__ __forceinline__ float in_window(const struct tdmi_cuda_conv &c, const T *x,
                                                  int group, int64_t pixel, int64_t k)
{
    const int deep = c.in.c / c.groups, tap = (int)(k / deep);
    const struct pixel at = pixel_at(pixel, c.out);
    const int iy = at.y * c.stride - c.pad_top + tap / c.kernel * c.dilation;
    const int ix = at.x * c.stride - c.pad_left + tap % c.kernel * c.dilation;
    if (iy < 0 || iy >= c.in.h || ix < 0 || ix >= c.in.w)
        return 0.0f;
    return to_float(x[offset_of(at.image, iy, ix, c.in) + (int64_t)group * deep + k % deep]);
}

template <class T>
struct forward_conv {
    static constexpr bool left_by_k = true, right_by_k = false;
    struct tdmi_cuda_conv c;
    const T *x;
    const float *weights, *bias;
    T *y;

    __device__ float left(int group, int64_t pixel, int64_t k) const
    {
        return in_window(c, x, group, pixel, k);
    }
    __device__ float right(int group, int64_t k, int64_t column) const
    {
        return weights[k * c.out.c + group * (c.out.c / c.groups) + column];
    }
    __device__ void put(int group, int64_t, int64_t pixel, int64_t column, double sum) const
    {
        const int64_t channel = group * (c.out.c / c.groups) + column;
        y[pixel * c.out.c + channel] =
            of_float<T>((float)(bias ? sum + (double)bias[channel] : sum));
    }
};

template <class T>
struct data_gradient {
    static constexpr bool left_by_k = true, right_by_k = true;
    struct tdmi_cuda_conv c;
    const T *dy;
    const float *weights;
    const T *add; /* may be dx: the thread that reads a value there writes it */
    T *dx;

    /* The output pixel whose window has this pixel at the tap, if there is one. */
    __device__ float left(int group, int64_t pixel, int64_t k) const
    {
        const int deep = c.out.c / c.groups, tap = (int)(k / deep);
        const struct pixel at = pixel_at(pixel, c.in);
        const int y = at.y + c.pad_top - tap / c.kernel * c.dilation;
        const int x = at.x + c.pad_left - tap % c.kernel * c.dilation;
        if (y < 0 || x < 0 || y % c.stride != 0 || x % c.stride != 0 || y / c.stride >= c.out.h ||
            x / c.stride >= c.out.w)
            return 0.0f;
        return to_float(dy[offset_of(at.image, y / c.stride, x / c.stride, c.out) +
                           (int64_t)group * deep + k % deep]);
    }
    __device__ float right(int group, int64_t k, int64_t column) const
    {
        const int deep = c.out.c / c.groups;
        return weights[(k / deep * (c.in.c / c.groups) + column) * c.out.c + (int64_t)group * deep +
                       k % deep];
    }
    __device__ void put(int group, int64_t, int64_t pixel, int64_t column, double sum) const
    {
        const int64_t at = pixel * c.in.c + group * (c.in.c / c.groups) + column;
        dx[at] = of_float<T>((float)(add ? sum + (double)to_float(add[at]) : sum));
    }
};

/* Sum is float where one chunk is all there is, double where chunks are added up behind it. */
template <class T, class Sum>
struct weight_gradient {
    static constexpr bool left_by_k = false, right_by_k = false;
    struct tdmi_cuda_conv c;
    const T *x, *dy;
    Sum *sums;
    int64_t size; /* of the weights */

    __device__ float left(int group, int64_t row, int64_t pixel) const
    {
        return in_window(c, x, group, pixel, row);
    }
    __device__ float right(int group, int64_t pixel, int64_t column) const
    {
        return to_float(dy[pixel * c.out.c + group * (c.out.c / c.groups) + column]);
    }
    __device__ void put(int group, int64_t chunk, int64_t row, int64_t column, double sum) const
    {
        sums[chunk * size + row * c.out.c + group * (c.out.c / c.groups) + column] = (Sum)sum;
    }
};

/* ---- on the host -------------------------------------------------------------------------- */

static int64_t pixels_of(const struct tdmi_cuda_conv *it, struct tdmi_shape of)
{
    return (int64_t)it->n * of.h * of.w;
}

static int64_t window_of(const struct tdmi_cuda_conv *it)
{
    return (int64_t)it->kernel * it->kernel * (it->in.c / it->groups);
}

static struct tdmi_cuda_product over_pixels(const struct tdmi_cuda_conv *it)
{
    return tdmi_cuda_product_of(window_of(it), it->out.c / it->groups, pixels_of(it, it->out),
                                it->groups, 1);
}

extern "C" int tdmi_cuda_conv_forward(struct CUstream_st *queue, const struct tdmi_cuda_conv *it,
                                      const void *x, const float *weights, const float *bias,
                                      void *y)
{
    const struct tdmi_cuda_product of = tdmi_cuda_product_of(
        pixels_of(it, it->out), it->out.c / it->groups, window_of(it), it->groups, 0);
    return by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        return launch_product(
            queue,
            forward_conv<T>{*it, static_cast<const T *>(x), weights, bias, static_cast<T *>(y)},
            of);
    });
}

extern "C" int tdmi_cuda_conv_data_gradient(struct CUstream_st *queue,
                                            const struct tdmi_cuda_conv *it, const void *dy,
                                            const float *weights, const void *add, void *dx)
{
    const int64_t depth = (int64_t)it->kernel * it->kernel * (it->out.c / it->groups);
    const struct tdmi_cuda_product of =
        tdmi_cuda_product_of(pixels_of(it, it->in), it->in.c / it->groups, depth, it->groups, 0);
    return by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        return launch_product(queue,
                              data_gradient<T>{*it, static_cast<const T *>(dy), weights,
                                               static_cast<const T *>(add), static_cast<T *>(dx)},
                              of);
    });
}

extern "C" int tdmi_cuda_conv_weight_gradient(struct CUstream_st *queue,
                                              const struct tdmi_cuda_conv *it, const void *x,
                                              const void *dy, float *dweights, void *workspace)
{
    const struct tdmi_cuda_product of = over_pixels(it);
    const int64_t size = window_of(it) * it->out.c;
    double *const partial = static_cast<double *>(workspace);
    const int code = by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        const T *of_x = static_cast<const T *>(x), *of_dy = static_cast<const T *>(dy);
        if (of.chunks == 1)
            return launch_product(queue,
                                  weight_gradient<T, float>{*it, of_x, of_dy, dweights, size}, of);
        return launch_product(queue, weight_gradient<T, double>{*it, of_x, of_dy, partial, size},
                              of);
    });
    if (code != 0 || of.chunks == 1)
        return code;
    return launch_add_chunks(queue, partial, of.chunks, size, size, dweights);
}

extern "C" size_t tdmi_cuda_conv_workspace_bytes(const struct tdmi_cuda_conv *it)
{
    const struct tdmi_cuda_product of = over_pixels(it);
    const int64_t chunks = tdmi_cuda_product_most_chunks(&of);
    return chunks == 1 ? 0 : (size_t)(chunks * window_of(it) * it->out.c) * sizeof(double);
}
