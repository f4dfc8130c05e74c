/*
 * Softmax and its cross-entropy, a block a sample. Sums run in double: they are few, and a loss is
 * what people compare.
 */
#include "backend/cuda/kernels/loss/loss.h"
#include "backend/cuda/kernels/loss/best.cuh"
#include "backend/cuda/kernels/loss/targets.cuh"

enum { row_threads = 128 };

template <class T>
__global__ void __launch_bounds__(row_threads) softmax_forward(struct tdmi_cuda_loss it)
{
    TDM_SHARED(double, sums, 33);
    TDM_SHARED(struct best, bests, 33);
    const int i = (int)blockIdx.x, own = (int)threadIdx.x;
    const T *x = static_cast<const T *>(it.x) + (int64_t)i * it.classes;
    float *y = it.y + (int64_t)i * it.classes;
    const int first = own < it.classes ? own : 0;
    struct best guess = {to_float(x[first]), first};
    for (int c = own + row_threads; c < it.classes; c += row_threads)
        guess = better(guess, best{to_float(x[c]), c});
    guess = over_block<row_threads>(guess, bests, better_of());
    double sum = 0.0;
    for (int c = own; c < it.classes; c += row_threads) {
        y[c] = expf(to_float(x[c]) - guess.value);
        sum += (double)y[c];
    }
    sum = over_block<row_threads>(sum, sums, plus());
    double loss = 0.0;
    const double log_sum = it.labels ? log(sum) : 0.0;
    for (int c = own; c < it.classes; c += row_threads) {
        y[c] = (float)((double)y[c] / sum);
        const double target = it.labels ? weighted_target(it, i, c) : 0.0;
        if (target > 0.0)
            loss += target * (log_sum + ((double)guess.value - (double)to_float(x[c])));
    }
    if (!it.labels)
        return;
    loss = over_block<row_threads>(loss, sums, plus());
    if (own == 0) {
        it.judgements[i].loss = (float)loss;
        it.judgements[i].predicted = guess.at;
    }
}

template <class T>
__global__ void __launch_bounds__(row_threads) softmax_backward(struct tdmi_cuda_loss it)
{
    TDM_SHARED(double, sums, 33);
    const int i = (int)blockIdx.x, own = (int)threadIdx.x;
    const float *y = it.y + (int64_t)i * it.classes;
    T *dx = static_cast<T *>(it.dx) + (int64_t)i * it.classes;
    double weight = 0.0; /* of the sample, 1 without class weights */
    for (int c = own; c < it.classes; c += row_threads)
        weight += weighted_target(it, i, c);
    weight = over_block<row_threads>(weight, sums, plus());
    const float scale = it.loss_scale ? it.loss_scale->scale : 1.0f;
    for (int c = own; c < it.classes; c += row_threads)
        dx[c] = of_float<T>(scale * (float)((double)y[c] * weight - weighted_target(it, i, c)));
}

extern "C" int tdmi_cuda_softmax_forward(struct CUstream_st *queue,
                                         const struct tdmi_cuda_loss *call)
{
    const struct tdmi_cuda_loss given = *call;
    return by_type(given.type, [=](auto zero) {
        return launch(softmax_forward<decltype(zero)>, dim3((unsigned)given.n), row_threads, queue,
                      given);
    });
}

extern "C" int tdmi_cuda_softmax_backward(struct CUstream_st *queue,
                                          const struct tdmi_cuda_loss *call)
{
    const struct tdmi_cuda_loss given = *call;
    return by_type(given.type, [=](auto zero) {
        return launch(softmax_backward<decltype(zero)>, dim3((unsigned)given.n), row_threads, queue,
                      given);
    });
}
