/*
 * Optimizer steps, running statistics and sums of gradients. Parameters follow PyTorch's
 * definitions. All rules begin with g = sum / n + decay · w; then
 *
 *     sgd      v = momentum · v + g;  w -= rate · (nesterov ? g + momentum · v : v)
 *     rmsprop  s = (1 - second) · s + second · g²;  v = momentum · v + g / (√s + epsilon)
 *              w -= rate · v
 *     adam     m += first · (g - m);  s = (1 - second) · s + second · g²
 *              w = keep · w - rate · u,  u = (of_first · m + of_gradient · g) / (of_root · √s +
 * epsilon) lamb     g = sum / n;  m and s as adam;  w -= rate · (u + decay · w)
 *
 * Running statistics, and averages of weights, move towards what is new.
 */
#include "backend/host.h"
#include "backend/ref/ref.h"

#include <math.h>

static void sgd(tdmi_stream *stream, const struct tdmi_update_call *call)
{
    (void)stream;
    float *params = call->params, *velocity = call->slots[0];
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->gradient_sums[i] * call->gradient_scale + call->weight_decay * params[i];
        velocity[i] = call->momentum * velocity[i] + g;
        params[i] -= call->learning_rate *
                     (call->is_nesterov ? g + call->momentum * velocity[i] : velocity[i]);
    }
}

static float square_moved(const struct tdmi_moments *moments, float square, float g)
{
    return (1.0f - moments->second) * square + moments->second * g * g;
}

static void rmsprop(tdmi_stream *stream, const struct tdmi_update_call *call)
{
    (void)stream;
    const struct tdmi_moments *moments = &call->moments;
    float *params = call->params, *square = call->slots[0], *velocity = call->slots[1];
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->gradient_sums[i] * call->gradient_scale + call->weight_decay * params[i];
        square[i] = square_moved(moments, square[i], g);
        velocity[i] = call->momentum * velocity[i] + g / (sqrtf(square[i]) + moments->epsilon);
        params[i] -= call->learning_rate * velocity[i];
    }
}

static float direction(const struct tdmi_moments *moments, float mean, float square, float g)
{
    return (moments->of_first * mean + moments->of_gradient * g) /
           (moments->of_root * sqrtf(square) + moments->epsilon);
}

static void adam(tdmi_stream *stream, const struct tdmi_update_call *call)
{
    (void)stream;
    const struct tdmi_moments *moments = &call->moments;
    float *params = call->params, *mean = call->slots[0], *square = call->slots[1];
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->gradient_sums[i] * call->gradient_scale + call->weight_decay * params[i];
        mean[i] += moments->first * (g - mean[i]);
        square[i] = square_moved(moments, square[i], g);
        params[i] = moments->keep * params[i] -
                    call->learning_rate * direction(moments, mean[i], square[i], g);
    }
}

/* ---- lengths -----------------------------------------------------------------------------------
 * Value number i is added, squared in double, to partial sum number i % n_partial; then the upper
 * half of the sums is added to the lower until one is left. */

enum { n_partial = 32 };

static void add_square(double *partial, int64_t i, float value)
{
    partial[i % n_partial] += (double)value * (double)value;
}

static double total(double *partial)
{
    for (int half = n_partial / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            partial[i] += partial[i + half];
    return partial[0];
}

static void squares(tdmi_stream *stream, const float *values, int64_t n, double *sum)
{
    double partial[n_partial] = {0};
    (void)stream;
    for (int64_t i = 0; i < n; i++)
        add_square(partial, i, values[i]);
    *sum = total(partial);
}

static void lamb_measure(tdmi_stream *stream, const struct tdmi_update_call *call,
                         double squares[2])
{
    (void)stream;
    const struct tdmi_moments *moments = &call->moments;
    double weights[n_partial] = {0}, steps[n_partial] = {0};
    const float *params = call->params;
    float *mean = call->slots[0], *square = call->slots[1];
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->gradient_sums[i] * call->gradient_scale;
        mean[i] += moments->first * (g - mean[i]);
        square[i] = square_moved(moments, square[i], g);
        add_square(weights, i, params[i]);
        add_square(steps, i,
                   direction(moments, mean[i], square[i], g) + call->weight_decay * params[i]);
    }
    squares[0] = total(weights);
    squares[1] = total(steps);
}

static void lamb_step(tdmi_stream *stream, const struct tdmi_update_call *call)
{
    (void)stream;
    float *params = call->params;
    const float *mean = call->slots[0], *square = call->slots[1];
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->gradient_sums[i] * call->gradient_scale;
        params[i] -= call->learning_rate * (direction(&call->moments, mean[i], square[i], g) +
                                            call->weight_decay * params[i]);
    }
}

/* ---- averages and sums ------------------------------------------------------------------------
 */

static void blend(tdmi_stream *stream, float *states, const float *sums, int64_t n, float scale,
                  float momentum)
{
    (void)stream;
    for (int64_t i = 0; i < n; i++)
        states[i] += momentum * (sums[i] * scale - states[i]);
}

static void accumulate(tdmi_stream *stream, enum tdmi_dtype type, void *to, const void *from,
                       int64_t n)
{
    float *sums = to;
    const float *values = from;
    (void)stream;
    (void)type; /* f32: nothing else is stored here */
    for (int64_t i = 0; i < n; i++)
        sums[i] += values[i];
}

const struct tdmi_update_table tdmi_ref_update = {
    .sgd = sgd,
    .rmsprop = rmsprop,
    .adam = adam,
    .lamb_measure = lamb_measure,
    .lamb_step = lamb_step,
    .squares = squares,
    .blend = blend,
    .accumulate = accumulate,
    .tail = tdmi_host_tail,
};
