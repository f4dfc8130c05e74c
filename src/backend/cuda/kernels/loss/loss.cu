/*
 * Losses and their gradients, a block a sample, and their sums over a group.
 */
#include "backend/cuda/kernels/loss/loss.h"
#include "backend/cuda/kernels/reduce.cuh"

enum { row_threads = 128 };

/* Targets are those of backend/ref/losses.c. */

/* How much of sample i belongs to a class. */
static __device__ __forceinline__ double target_of(const struct tdmi_cuda_loss &it, int i, int c)
{
    const double weight = it.mixed ? (double)it.mixed[i].weight : 1.0;
    double target = it.labels[i] == c ? weight : 0.0;
    if (weight < 1.0 && it.mixed[i].other == c)
        target += 1.0 - weight;
    if (it.smoothing > 0.0)
        target = (1.0 - it.smoothing) * target + it.smoothing / it.classes;
    return target;
}

static __device__ __forceinline__ double class_weight(const struct tdmi_cuda_loss &it, int c)
{
    return it.class_weights ? (double)it.class_weights[c] : 1.0;
}

static __device__ __forceinline__ double weighted_target(const struct tdmi_cuda_loss &it, int i,
                                                         int c)
{
    return target_of(it, i, c) * class_weight(it, c);
}

struct best {
    float value;
    int at;
};

/* The larger value; of equal ones that which comes first. */
static __device__ __forceinline__ struct best better(struct best a, struct best b)
{
    return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

static __device__ __forceinline__ struct best of_lane(uint32_t mask, struct best value, int other)
{
    return best{__shfl_xor_sync(mask, value.value, other), __shfl_xor_sync(mask, value.at, other)};
}

struct better_of {
    __device__ __forceinline__ struct best operator()(struct best a, struct best b) const
    {
        return better(a, b);
    }
};

/* ---- softmax --------------------------------------------------------------------------------- */

/*
 * Softmax and its cross-entropy, a block a sample. Sums run in double: they are few, and a loss is
 * what people compare.
 */
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

/* ---- logistic -------------------------------------------------------------------------------- */

/*
 * The logistic function and its binary cross-entropy, a block a sample, in double: the values are
 * few, and a loss is what people compare. With one logit the two classes are 0, "no", and 1.
 */

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

/* ---- launchers ------------------------------------------------------------------------------- */

extern "C" int tdmi_cuda_loss_forward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call)
{
    const struct tdmi_cuda_loss given = *call;
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        return launch(given.is_logistic ? logistic_forward<T> : softmax_forward<T>,
                      dim3((unsigned)given.n), row_threads, queue, given);
    });
}

extern "C" int tdmi_cuda_loss_backward(struct CUstream_st *queue, const struct tdmi_cuda_loss *call)
{
    const struct tdmi_cuda_loss given = *call;
    return by_type(given.type, [=](auto zero) {
        using T = decltype(zero);
        return launch(given.is_logistic ? logistic_backward<T> : softmax_backward<T>,
                      dim3((unsigned)given.n), row_threads, queue, given);
    });
}

/* ---- sums of a group ------------------------------------------------------------------------- */

/* One block is enough for a group's samples: each thread adds every 256th, then a tree adds them.
 */

enum { tail_threads = 256 };

__global__ void __launch_bounds__(tail_threads)
    sum_judgements(const struct tdmi_judgement *judgements, const int32_t *labels,
                   const struct tdmi_mixed_label *mixed, int n, float *tail)
{
    TDM_SHARED(double, losses, 33);
    TDM_SHARED(int, counts, 33);
    double loss = 0.0;
    int correct = 0;
    for (int64_t i = threadIdx.x; i < n; i += tail_threads) {
        const bool is_other = mixed && mixed[i].weight < 0.5f;
        correct += judgements[i].predicted == (is_other ? mixed[i].other : labels[i]);
        loss += (double)judgements[i].loss;
    }
    loss = over_block<tail_threads>(loss, losses, plus());
    correct = over_block<tail_threads>(correct, counts, plus());
    if (threadIdx.x > 0)
        return;
    tail[TDMI_TAIL_SAMPLES] = (float)n;
    tail[TDMI_TAIL_CORRECT] = (float)correct;
    tail[TDMI_TAIL_LOSS] = (float)loss;
}

extern "C" int tdmi_cuda_tail(struct CUstream_st *queue, const struct tdmi_judgement *judgements,
                              const int32_t *labels, const struct tdmi_mixed_label *mixed, int n,
                              float *tail)
{
    return launch(sum_judgements, dim3(1), dim3(tail_threads), queue, judgements, labels, mixed, n,
                  tail);
}
