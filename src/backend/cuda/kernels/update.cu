/*
 * A block of threads takes up to 4,096 values of one tensor, so that what belongs to a tensor is
 * the same for the whole block. What it costs is memory: every value is read and written once.
 */
#include "backend/cuda/kernels/update.h"
#include "backend/cuda/kernels/reduce.cuh"

#include <math.h>

enum { block_threads = 256, whole_lanes = 4 /* floats in 16 bytes */ };

/* The facts of a step as one tensor has them. */
struct due {
    float scale, rate, momentum, decay, keep;
    bool is_nesterov;
    struct tdmi_moments moments;
};

static __device__ __forceinline__ struct due due_of(const struct tdmi_cuda_update &it,
                                                    const struct tdmi_step_facts &facts,
                                                    bool is_evaluated, float part, bool has_decay)
{
    struct due due;
    due.scale = is_evaluated ? it.verdict->scale : facts.scale;
    due.rate = facts.learning_rate * part;
    due.momentum = facts.momentum;
    due.decay = has_decay ? facts.weight_decay : 0.0f;
    due.keep = has_decay ? (float)(1.0 - (double)due.rate * (double)facts.beside) : 1.0f;
    due.is_nesterov = facts.is_nesterov != 0;
    due.moments = facts.moments;
    return due;
}

/* body(lanes, place) for all values of a block: whole vectors, then one by one. */
template <class Body>
static __device__ __forceinline__ void over_values(const struct tdmi_cuda_update_block &block,
                                                   bool is_aligned, Body body)
{
    const int whole = is_aligned ? block.n / whole_lanes * whole_lanes : 0;
    for (int i = (int)threadIdx.x * whole_lanes; i < whole; i += block_threads * whole_lanes)
        body(number<whole_lanes>(), block.offset + i);
    for (int i = whole + (int)threadIdx.x; i < block.n; i += block_threads)
        body(number<1>(), block.offset + i);
}

/* ---- rules ------------------------------------------------------------------------------
 * step: a value w, its gradient's sum, and what the optimizer keeps of it. */

struct sgd_rule {
    static constexpr int kept = 1, moved = 1; /* slots; those that a step changes */
    static __device__ __forceinline__ void step(const struct due &due, float sum, float &w,
                                                float &velocity, float &none)
    {
        (void)none;
        const float g = sum * due.scale + due.decay * w;
        velocity = due.momentum * velocity + g;
        w -= due.rate * (due.is_nesterov ? g + due.momentum * velocity : velocity);
    }
};

static __device__ __forceinline__ float square_moved(const struct tdmi_moments &moments,
                                                     float square, float g)
{
    return (1.0f - moments.second) * square + moments.second * g * g;
}

struct rmsprop_rule {
    static constexpr int kept = 2, moved = 2;
    static __device__ __forceinline__ void step(const struct due &due, float sum, float &w,
                                                float &square, float &velocity)
    {
        const float g = sum * due.scale + due.decay * w;
        square = square_moved(due.moments, square, g);
        velocity = due.momentum * velocity + g / (sqrtf(square) + due.moments.epsilon);
        w -= due.rate * velocity;
    }
};

static __device__ __forceinline__ float direction(const struct tdmi_moments &moments, float mean,
                                                  float square, float g)
{
    return (moments.of_first * mean + moments.of_gradient * g) /
           (moments.of_root * sqrtf(square) + moments.epsilon);
}

struct adam_rule {
    static constexpr int kept = 2, moved = 2;
    static __device__ __forceinline__ void step(const struct due &due, float sum, float &w,
                                                float &mean, float &square)
    {
        const float g = sum * due.scale + due.decay * w;
        mean += due.moments.first * (g - mean);
        square = square_moved(due.moments, square, g);
        w = due.keep * w - due.rate * direction(due.moments, mean, square, g);
    }
};

/* Behind lamb_lengths, which has moved the slots. */
struct lamb_rule {
    static constexpr int kept = 2, moved = 0;
    static __device__ __forceinline__ void step(const struct due &due, float sum, float &w,
                                                float &mean, float &square)
    {
        const float g = sum * due.scale;
        w -= due.rate * (direction(due.moments, mean, square, g) + due.decay * w);
    }
};

/* ---- the step --------------------------------------------------------------------------- */

template <int N>
static __device__ __forceinline__ void follow(float *means, int64_t at, const float (&values)[N],
                                              float part)
{
    float mean[N];
    load<float, N>(means + at, mean);
#pragma unroll
    for (int i = 0; i < N; i++)
        mean[i] += part * (values[i] - mean[i]);
    store<float, N>(means + at, mean);
}

static __device__ __forceinline__ void blend_block(const struct tdmi_cuda_update &it,
                                                   const struct tdmi_cuda_update_block &block,
                                                   bool is_aligned)
{
    const float scale = it.facts->scale, average = it.facts->average;
    over_values(block, is_aligned, [&](auto lanes, int64_t at) {
        constexpr int N = decltype(lanes)::value;
        float state[N], sum[N];
        load<float, N>(it.arrays.states + at, state);
        load<float, N>(it.sums + it.arrays.state_sums_at + at, sum);
#pragma unroll
        for (int i = 0; i < N; i++)
            state[i] += block.momentum * (sum[i] * scale - state[i]);
        store<float, N>(it.arrays.states + at, state);
        if (it.arrays.mean_states)
            follow<N>(it.arrays.mean_states, at, state, average);
    });
}

template <class Rule, bool is_adapted>
__global__ void __launch_bounds__(block_threads, 5)
    step_all(struct tdmi_cuda_update it, bool is_evaluated, bool is_aligned)
{
    const struct tdmi_cuda_update_block block = it.blocks[blockIdx.x];
    if (is_evaluated && it.verdict->is_left_out)
        return;
    const bool begins_well = is_aligned && block.offset % whole_lanes == 0;
    if (block.is_state) {
        blend_block(it, block, begins_well && it.arrays.state_sums_at % whole_lanes == 0);
        return;
    }
    struct due due = due_of(it, *it.facts, is_evaluated, block.part, block.has_decay);
    if (is_adapted) {
        const struct tdmi_cuda_update_adapted own = it.adapted[block.tensor];
        due.scale = own.scale;
        due.rate = own.rate;
        due.decay = own.decay;
    }
    const float average = it.facts->average;
    over_values(block, begins_well, [&](auto lanes, int64_t at) {
        constexpr int N = decltype(lanes)::value;
        float w[N], sum[N], first[N], second[N] = {};
        load<float, N>(it.arrays.params + at, w);
        load<float, N>(it.sums + at, sum);
        load<float, N>(it.arrays.slots[0] + at, first);
        if (Rule::kept > 1)
            load<float, N>(it.arrays.slots[1] + at, second);
#pragma unroll
        for (int i = 0; i < N; i++)
            Rule::step(due, sum[i], w[i], first[i], second[i]);
        store<float, N>(it.arrays.params + at, w);
        if (Rule::moved > 0)
            store<float, N>(it.arrays.slots[0] + at, first);
        if (Rule::moved > 1)
            store<float, N>(it.arrays.slots[1] + at, second);
        if (it.arrays.mean_params)
            follow<N>(it.arrays.mean_params, at, w, average);
    });
}

/* ---- lengths ---------------------------------------------------------------------------- */

static __device__ __forceinline__ void add_square(double &sum, float value)
{
    sum += (double)value * (double)value;
}

/* Each adds the squares of its values to two sums: of weights, and of gradients or steps. */
template <bool has_weights>
struct gradient_lengths {
    template <int N>
    static __device__ __forceinline__ void add(const struct tdmi_cuda_update &it,
                                               const struct due &due, int64_t at, double (&sums)[2])
    {
        (void)due;
        float w[N] = {}, sum[N];
        if (has_weights)
            load<float, N>(it.arrays.params + at, w);
        load<float, N>(it.sums + at, sum);
#pragma unroll
        for (int i = 0; i < N; i++) {
            add_square(sums[0], w[i]);
            add_square(sums[1], sum[i]);
        }
    }
};

/* Moves the means first: the step that is due depends on them. */
struct lamb_lengths {
    template <int N>
    static __device__ __forceinline__ void add(const struct tdmi_cuda_update &it,
                                               const struct due &due, int64_t at, double (&sums)[2])
    {
        float w[N], sum[N], mean[N], square[N];
        load<float, N>(it.arrays.params + at, w);
        load<float, N>(it.sums + at, sum);
        load<float, N>(it.arrays.slots[0] + at, mean);
        load<float, N>(it.arrays.slots[1] + at, square);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float g = sum[i] * due.scale;
            mean[i] += due.moments.first * (g - mean[i]);
            square[i] = square_moved(due.moments, square[i], g);
            add_square(sums[0], w[i]);
            add_square(sums[1], direction(due.moments, mean[i], square[i], g) + due.decay * w[i]);
        }
        store<float, N>(it.arrays.slots[0] + at, mean);
        store<float, N>(it.arrays.slots[1] + at, square);
    }
};

template <class Lengths>
__global__ void __launch_bounds__(block_threads)
    measure(struct tdmi_cuda_update it, bool is_evaluated, bool is_aligned)
{
    TDM_SHARED(double, room, 33);
    const struct tdmi_cuda_update_block block = it.blocks[blockIdx.x];
    if (is_evaluated && it.verdict->is_left_out)
        return;
    const struct due due = due_of(it, *it.facts, is_evaluated, block.part, block.has_decay);
    double sums[2] = {};
    over_values(block, is_aligned && block.offset % whole_lanes == 0, [&](auto lanes, int64_t at) {
        constexpr int N = decltype(lanes)::value;
        Lengths::template add<N>(it, due, at, sums);
    });
    for (int k = 0; k < 2; k++) {
        const double sum = over_block<block_threads>(sums[k], room, plus());
        if (threadIdx.x == 0)
            it.squares[2 * (int64_t)blockIdx.x + k] = sum;
    }
}

/* Σ of squares[2 · block + k] of blocks from first to end, for every thread. */
static __device__ __forceinline__ double sum_of_blocks(const double *squares, int first, int end,
                                                       int k, double *room)
{
    double sum = 0.0;
    for (int i = first + (int)threadIdx.x; i < end; i += block_threads)
        sum += squares[2 * (int64_t)i + k];
    return over_block<block_threads>(sum, room, plus());
}

static __device__ __forceinline__ void move_loss_scale(struct tdmi_loss_scale *loss,
                                                       bool is_left_out)
{
    const float largest = 16777216.0f, smallest = 1.0f / 16777216.0f;
    if (is_left_out) {
        loss->scale = loss->scale > smallest ? 0.5f * loss->scale : loss->scale;
        loss->n_good = 0;
        loss->n_left_out++;
    } else if (++loss->n_good >= TDMI_LOSS_SCALE_STEPS) {
        loss->scale = loss->scale < largest ? 2.0f * loss->scale : loss->scale;
        loss->n_good = 0;
    }
}

/* One block. Squares of floats are finite in double, and so is their sum: it is not where a
 * gradient is not. */
__global__ void __launch_bounds__(block_threads) evaluator(struct tdmi_cuda_update it, bool clips)
{
    TDM_SHARED(double, room, 33);
    const double sum = sum_of_blocks(it.squares, 0, it.n_param_blocks, 1, room);
    if (threadIdx.x > 0)
        return;
    struct tdmi_loss_scale *const loss = it.arrays.loss_scale;
    const bool is_left_out = loss && !(sum - sum == 0.0);
    float scale = it.facts->scale;
    if (loss)
        scale /= loss->scale;
    if (clips) {
        const double norm = sqrt(sum) * (double)scale;
        const double part = it.facts->clip_norm / (norm + 1e-6);
        if (part < 1.0)
            scale = (float)(part * (double)scale);
    }
    it.verdict->scale = scale;
    it.verdict->is_left_out = is_left_out;
    if (loss)
        move_loss_scale(loss, is_left_out);
}

/* A block a tensor. */
template <bool is_lars>
__global__ void __launch_bounds__(block_threads)
    adapt(struct tdmi_cuda_update it, bool is_evaluated)
{
    TDM_SHARED(double, room, 33);
    const struct tdmi_cuda_update_tensor tensor = it.tensors[blockIdx.x];
    if (is_evaluated && it.verdict->is_left_out)
        return;
    const double weights = sqrt(sum_of_blocks(it.squares, tensor.first, tensor.end, 0, room));
    const double other = sqrt(sum_of_blocks(it.squares, tensor.first, tensor.end, 1, room));
    if (threadIdx.x > 0)
        return;
    const struct due due = due_of(it, *it.facts, is_evaluated, tensor.part, tensor.has_decay);
    struct tdmi_cuda_update_adapted own = {due.scale, due.rate, due.decay};
    if (tensor.has_decay && is_lars) {
        const double gradient = other * (double)due.scale;
        const double trust = it.facts->trust * weights /
                             (gradient + (double)due.decay * weights + it.facts->trust_epsilon);
        if (weights > 0.0 && gradient > 0.0) {
            own.scale = (float)(trust * (double)due.scale);
            own.decay = (float)(trust * (double)due.decay);
        }
    }
    if (tensor.has_decay && !is_lars && weights > 0.0 && other > 0.0)
        own.rate = (float)((double)due.rate * weights / other);
    it.adapted[blockIdx.x] = own;
}

/* ---- launching -------------------------------------------------------------------------- */

static bool lie_on_16(const struct tdmi_cuda_update &it)
{
    const struct tdmi_update_arrays &all = it.arrays;
    return lies_on_16(all.params) && lies_on_16(all.states) && lies_on_16(all.slots[0]) &&
           lies_on_16(all.slots[1]) && lies_on_16(all.mean_params) && lies_on_16(all.mean_states) &&
           lies_on_16(it.sums);
}

static int check_gradient(struct CUstream_st *queue, const struct tdmi_cuda_update &it, bool clips,
                          bool is_aligned)
{
    int code = 0;
    if (it.n_param_blocks > 0)
        code = launch(measure<gradient_lengths<false>>, dim3((unsigned)it.n_param_blocks),
                      block_threads, queue, it, false, is_aligned);
    return code ? code : launch(evaluator, dim3(1), block_threads, queue, it, clips);
}

static int adapt_tensors(struct CUstream_st *queue, const struct tdmi_cuda_update &it, bool is_lars,
                         bool is_evaluated, bool is_aligned)
{
    if (it.n_param_blocks == 0)
        return 0;
    const int code = launch(is_lars ? measure<gradient_lengths<true>> : measure<lamb_lengths>,
                            dim3((unsigned)it.n_param_blocks), block_threads, queue, it,
                            is_evaluated, is_aligned);
    return code ? code
                : launch(is_lars ? adapt<true> : adapt<false>, dim3((unsigned)it.n_tensors),
                         block_threads, queue, it, is_evaluated);
}

extern "C" int tdmi_cuda_update_run(struct CUstream_st *queue, const struct tdmi_cuda_update *call,
                                    struct tdmi_update_method way)
{
    const struct tdmi_cuda_update it = *call;
    const bool is_evaluated = way.clips || it.arrays.loss_scale, is_aligned = lie_on_16(it);
    const auto run = [&](auto kernel) {
        return launch(kernel, dim3((unsigned)it.n_blocks), block_threads, queue, it, is_evaluated,
                      is_aligned);
    };
    int code = 0;
    if (it.n_blocks == 0)
        return 0;
    if (is_evaluated)
        code = check_gradient(queue, it, way.clips, is_aligned);
    if (code == 0 && (way.rule == TDMI_RULE_LARS || way.rule == TDMI_RULE_LAMB))
        code = adapt_tensors(queue, it, way.rule == TDMI_RULE_LARS, is_evaluated, is_aligned);
    if (code)
        return code;
    switch (way.rule) {
    case TDMI_RULE_SGD:
        return run(step_all<sgd_rule, false>);
    case TDMI_RULE_RMSPROP:
        return run(step_all<rmsprop_rule, false>);
    case TDMI_RULE_ADAM:
        return run(step_all<adam_rule, false>);
    case TDMI_RULE_LARS:
        return run(step_all<sgd_rule, true>);
    case TDMI_RULE_LAMB:
        return run(step_all<lamb_rule, true>);
    }
    return TDMI_CUDA_INVALID_VALUE;
}
