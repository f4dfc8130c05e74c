/* Dense layers: three products of two matrices that lie there (product.cuh). */
#include "backend/cuda/kernels/conv/conv.h"
#include "backend/cuda/kernels/conv/product.cuh"

/* y = x w + b */
template <class T>
struct forward_dense {
    static constexpr bool left_by_k = true, right_by_k = false;
    int64_t in, out;
    const T *x;
    const float *weights, *bias;
    T *y;

    __device__ float left(int, int64_t sample, int64_t k) const
    {
        return to_float(x[sample * in + k]);
    }
    __device__ float right(int, int64_t k, int64_t column) const
    {
        return weights[k * out + column];
    }
    __device__ void put(int, int64_t, int64_t sample, int64_t column, double sum) const
    {
        y[sample * out + column] = of_float<T>((float)(bias ? sum + (double)bias[column] : sum));
    }
};

/* dx = dy wᵀ */
template <class T>
struct dense_data_gradient {
    static constexpr bool left_by_k = true, right_by_k = true;
    int64_t in, out;
    const T *dy;
    const float *weights;
    T *dx;

    __device__ float left(int, int64_t sample, int64_t k) const
    {
        return to_float(dy[sample * out + k]);
    }
    __device__ float right(int, int64_t k, int64_t column) const
    {
        return weights[column * out + k];
    }
    __device__ void put(int, int64_t, int64_t sample, int64_t column, double sum) const
    {
        dx[sample * in + column] = of_float<T>((float)sum);
    }
};

/* dw = xᵀ dy */
template <class T>
struct dense_weight_gradient {
    static constexpr bool left_by_k = false, right_by_k = false;
    int64_t in, out;
    const T *x, *dy;
    float *dweights;

    __device__ float left(int, int64_t row, int64_t sample) const
    {
        return to_float(x[sample * in + row]);
    }
    __device__ float right(int, int64_t sample, int64_t column) const
    {
        return to_float(dy[sample * out + column]);
    }
    __device__ void put(int, int64_t, int64_t row, int64_t column, double sum) const
    {
        dweights[row * out + column] = (float)sum;
    }
};

extern "C" int tdmi_cuda_dense_forward(struct CUstream_st *queue, const struct tdmi_cuda_dense *it,
                                       const void *x, const float *weights, const float *bias,
                                       void *y)
{
    const struct tdmi_cuda_product of = tdmi_cuda_product_of(it->n, it->out, it->in, 1, 0);
    return by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        return launch_product(queue,
                              forward_dense<T>{it->in, it->out, static_cast<const T *>(x), weights,
                                               bias, static_cast<T *>(y)},
                              of);
    });
}

extern "C" int tdmi_cuda_dense_data_gradient(struct CUstream_st *queue,
                                             const struct tdmi_cuda_dense *it, const void *dy,
                                             const float *weights, void *dx)
{
    const struct tdmi_cuda_product of = tdmi_cuda_product_of(it->n, it->in, it->out, 1, 0);
    return by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        return launch_product(queue,
                              dense_data_gradient<T>{it->in, it->out, static_cast<const T *>(dy),
                                                     weights, static_cast<T *>(dx)},
                              of);
    });
}

extern "C" int tdmi_cuda_dense_weight_gradient(struct CUstream_st *queue,
                                               const struct tdmi_cuda_dense *it, const void *x,
                                               const void *dy, float *dweights)
{
    const struct tdmi_cuda_product of = tdmi_cuda_product_of(it->in, it->out, it->n, 1, 0);
    return by_type(it->type, [=](auto zero) {
        using T = decltype(zero);
        return launch_product(queue,
                              dense_weight_gradient<T>{it->in, it->out, static_cast<const T *>(x),
                                                       static_cast<const T *>(dy), dweights},
                              of);
    });
}
