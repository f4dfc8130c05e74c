/*
 * The logistic function and its binary cross-entropy, a block a sample, in double: the values are
 * few, and a loss is what people compare. With one logit the two classes are 0, "no", and 1.
 */
#include "backend/cuda/kernels/loss/loss.h"
#include "backend/cuda/kernels/loss/best.cuh"
#include "backend/cuda/kernels/loss/targets.cuh"

enum { row_threads = 128 };

/* log(1 + exp(z)), exact far out. */
static __device__ __forceinline__ double softplus(double z)
{
    return (z > 0.0 ? z : 0.0) + log1p(exp(-fabs(z)));
}

static __device__ __forceinline__ double logistic(double z)
{
    return 1.0 / (1.0 + exp(-z));
}

/* Contribution of class c to the loss of sample i. */
static __device__ __forceinline__ double loss_of(const struct tdmi_cuda_loss &it, int i, int c,
                                                 double z)
{
    if (it.logits == 1)
        return weighted_target(it, i, c) * softplus(c == 1 ? -z : z);
    const double target = target_of(it, i, c);
    return class_weight(it, c) * (target * softplus(-z) + (1.0 - target) * softplus(z));
}

template <class T>
__global__ void __launch_bounds__(row_threads) logistic_forward(struct tdmi_cuda_loss it)
{
    TDM_SHARED(double, sums, 33);
    TDM_SHARED(struct best, bests, 33);
    const int i = (int)blockIdx.x, own = (int)threadIdx.x;
    const T *x = static_cast<const T *>(it.x) + (int64_t)i * it.logits;
    float *y = it.y + (int64_t)i * it.classes;
    const int first = own < it.logits ? own : 0;
    struct best guess = {to_float(x[first]), first};
    double loss = 0.0;
    for (int c = own; c < it.classes; c += row_threads) {
        const float value = to_float(x[it.logits == 1 ? 0 : c]);
        if (it.logits > 1)
            guess = better(guess, best{value, c});
        y[c] = (float)logistic(it.logits == 1 && c == 0 ? -(double)value : (double)value);
        if (it.labels)
            loss += loss_of(it, i, c, (double)value);
    }
    if (!it.labels)
        return;
    guess = over_block<row_threads>(guess, bests, better_of());
    loss = over_block<row_threads>(loss, sums, plus());
    if (own == 0) {
        it.judgements[i].loss = (float)loss;
        it.judgements[i].predicted = it.logits == 1 ? guess.value > 0.0f : guess.at;
    }
}

template <class T>
__global__ void __launch_bounds__(row_threads) logistic_backward(struct tdmi_cuda_loss it)
{
    const int i = (int)blockIdx.x;
    const float *y = it.y + (int64_t)i * it.classes;
    T *dx = static_cast<T *>(it.dx) + (int64_t)i * it.logits;
    const float scale = it.loss_scale ? it.loss_scale->scale : 1.0f;
    for (int c = (int)threadIdx.x; c < it.logits; c += row_threads) {
        const double slope = it.logits == 1
                                 ? weighted_target(it, i, 0) * (double)y[1] -
                                       weighted_target(it, i, 1) * (double)y[0]
                                 : class_weight(it, c) * ((double)y[c] - target_of(it, i, c));
        dx[c] = of_float<T>(scale * (float)slope);
    }
}

extern "C" int tdmi_cuda_logistic_forward(struct CUstream_st *queue,
                                          const struct tdmi_cuda_loss *call)
{
    const struct tdmi_cuda_loss given = *call;
    return by_type(given.type, [=](auto zero) {
        return launch(logistic_forward<decltype(zero)>, dim3((unsigned)given.n), row_threads, queue,
                      given);
    });
}

extern "C" int tdmi_cuda_logistic_backward(struct CUstream_st *queue,
                                           const struct tdmi_cuda_loss *call)
{
    const struct tdmi_cuda_loss given = *call;
    return by_type(given.type, [=](auto zero) {
        return launch(logistic_backward<decltype(zero)>, dim3((unsigned)given.n), row_threads,
                      queue, given);
    });
}
