/*
 * Optimizer steps, written once for every instruction set (isa.h), with ref's bits in each:
 * multiplications and additions round alone, in ref's order (backend/ref/update.c has the
 * formulas), and squares are exact in double before they are added. Each pass reads and writes
 * every array once, so its speed is that of memory.
 */
#include "backend/cpu/access.h"
#include "backend/cpu/pointwise/update.h"

/* Runs BLOCK(i, access, n) over all n values of a call: whole vectors, then what is left. */
#define ALL_BLOCKS(total, BLOCK)                     \
    do {                                             \
        int64_t i = 0;                               \
        for (; i + LANES <= (total); i += LANES)     \
            BLOCK(i, ACCESS_WHOLE, LANES);           \
        if (i < (total))                             \
            BLOCK(i, ACCESS_PART, (int)((total)-i)); \
    } while (0)

/* The step `name` of a call, made of name_block. */
#define STEP(name)                                                             \
    static void name(tdmi_stream *stream, const struct tdmi_update_call *call) \
    {                                                                          \
        (void)stream;                                                          \
        int64_t i = 0;                                                         \
        for (; i + LANES <= call->n; i += LANES)                               \
            name##_block(call, i, ACCESS_WHOLE, LANES);                        \
        if (i < call->n)                                                       \
            name##_block(call, i, ACCESS_PART, (int)(call->n - i));            \
    }

/* ---- descent ---------------------------------------------------------------------------------
 */

LANES_INLINE lanes mean_gradient(const struct tdmi_update_call *call, int64_t i,
                                 const enum access access, int n)
{
    return lanes_multiply(get(call->gradient_sums + i, access, n), lanes_all(call->gradient_scale));
}

LANES_INLINE lanes decayed_gradient(const struct tdmi_update_call *call, lanes w, int64_t i,
                                    const enum access access, int n)
{
    return lanes_add(mean_gradient(call, i, access, n),
                     lanes_multiply(lanes_all(call->weight_decay), w));
}

LANES_INLINE void sgd_block(const struct tdmi_update_call *call, int64_t i,
                            const enum access access, int n)
{
    float *params = call->params + i, *velocity = call->slots[0] + i;
    const lanes momentum = lanes_all(call->momentum);
    lanes w = get(params, access, n);
    lanes g = decayed_gradient(call, w, i, access, n);
    lanes v = lanes_add(lanes_multiply(momentum, get(velocity, access, n)), g);
    lanes step = call->is_nesterov ? lanes_add(g, lanes_multiply(momentum, v)) : v;
    put(velocity, v, access, n);
    put(params, lanes_sub(w, lanes_multiply(lanes_all(call->learning_rate), step)), access, n);
}

STEP(sgd)

/* ---- steps divided by the root of a mean of squares -------------------------------------------
 */

LANES_INLINE lanes square_moved(const struct tdmi_moments *moments, lanes square, lanes g)
{
    return lanes_add(lanes_multiply(lanes_all(1.0f - moments->second), square),
                     lanes_multiply(lanes_multiply(lanes_all(moments->second), g), g));
}

LANES_INLINE void rmsprop_block(const struct tdmi_update_call *call, int64_t i,
                                const enum access access, int n)
{
    const struct tdmi_moments *moments = &call->moments;
    float *params = call->params + i, *square = call->slots[0] + i, *velocity = call->slots[1] + i;
    lanes w = get(params, access, n);
    lanes g = decayed_gradient(call, w, i, access, n);
    lanes s = square_moved(moments, get(square, access, n), g);
    lanes root = lanes_add(lanes_root(s), lanes_all(moments->epsilon));
    lanes v = lanes_add(lanes_multiply(lanes_all(call->momentum), get(velocity, access, n)),
                        lanes_divide(g, root));
    put(square, s, access, n);
    put(velocity, v, access, n);
    put(params, lanes_sub(w, lanes_multiply(lanes_all(call->learning_rate), v)), access, n);
}

STEP(rmsprop)

LANES_INLINE lanes mean_moved(const struct tdmi_moments *moments, lanes mean, lanes g)
{
    return lanes_add(mean, lanes_multiply(lanes_all(moments->first), lanes_sub(g, mean)));
}

LANES_INLINE lanes direction(const struct tdmi_moments *moments, lanes mean, lanes square, lanes g)
{
    lanes above = lanes_add(lanes_multiply(lanes_all(moments->of_first), mean),
                            lanes_multiply(lanes_all(moments->of_gradient), g));
    lanes below = lanes_add(lanes_multiply(lanes_all(moments->of_root), lanes_root(square)),
                            lanes_all(moments->epsilon));
    return lanes_divide(above, below);
}

LANES_INLINE void adam_block(const struct tdmi_update_call *call, int64_t i,
                             const enum access access, int n)
{
    const struct tdmi_moments *moments = &call->moments;
    float *params = call->params + i, *mean = call->slots[0] + i, *square = call->slots[1] + i;
    lanes w = get(params, access, n);
    lanes g = decayed_gradient(call, w, i, access, n);
    lanes m = mean_moved(moments, get(mean, access, n), g);
    lanes s = square_moved(moments, get(square, access, n), g);
    lanes step = lanes_multiply(lanes_all(call->learning_rate), direction(moments, m, s, g));
    put(mean, m, access, n);
    put(square, s, access, n);
    put(params, lanes_sub(lanes_multiply(lanes_all(moments->keep), w), step), access, n);
}

STEP(adam)

/* ---- lengths -----------------------------------------------------------------------------------
 * In ref's partial sums; zeros behind the last value change none of them. */

enum { PARTIAL = 32 };

static double total(double *partial)
{
    for (int half = PARTIAL / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            partial[i] += partial[i + half];
    return partial[0];
}

static void squares(tdmi_stream *stream, const float *values, int64_t n, double *sum)
{
    double partial[PARTIAL] = {0};
    (void)stream;
#define BLOCK(i, access, n) \
    lanes_add_squares_to_doubles(partial + (i) % PARTIAL, get(values + (i), access, n))
    ALL_BLOCKS(n, BLOCK);
#undef BLOCK
    *sum = total(partial);
}

LANES_INLINE void lamb_measure_block(const struct tdmi_update_call *call, double *weights,
                                     double *steps, int64_t i, const enum access access, int n)
{
    const struct tdmi_moments *moments = &call->moments;
    float *mean = call->slots[0] + i, *square = call->slots[1] + i;
    lanes w = get(call->params + i, access, n);
    lanes g = mean_gradient(call, i, access, n);
    lanes m = mean_moved(moments, get(mean, access, n), g);
    lanes s = square_moved(moments, get(square, access, n), g);
    lanes step =
        lanes_add(direction(moments, m, s, g), lanes_multiply(lanes_all(call->weight_decay), w));
    put(mean, m, access, n);
    put(square, s, access, n);
    lanes_add_squares_to_doubles(weights + i % PARTIAL, w);
    if (access == ACCESS_PART) { /* where there is no value its root and quotient are none either */
        float values[LANES];
        lanes_store(values, step);
        step = lanes_load_part(values, n);
    }
    lanes_add_squares_to_doubles(steps + i % PARTIAL, step);
}

static void lamb_measure(tdmi_stream *stream, const struct tdmi_update_call *call,
                         double squares[2])
{
    double weights[PARTIAL] = {0}, steps[PARTIAL] = {0};
    (void)stream;
#define BLOCK(i, access, n) lamb_measure_block(call, weights, steps, i, access, n)
    ALL_BLOCKS(call->n, BLOCK);
#undef BLOCK
    squares[0] = total(weights);
    squares[1] = total(steps);
}

LANES_INLINE void lamb_step_block(const struct tdmi_update_call *call, int64_t i,
                                  const enum access access, int n)
{
    lanes w = get(call->params + i, access, n);
    lanes step = direction(&call->moments, get(call->slots[0] + i, access, n),
                           get(call->slots[1] + i, access, n), mean_gradient(call, i, access, n));
    step = lanes_add(step, lanes_multiply(lanes_all(call->weight_decay), w));
    put(call->params + i, lanes_sub(w, lanes_multiply(lanes_all(call->learning_rate), step)),
        access, n);
}

STEP(lamb_step)

/* ---- averages and sums ------------------------------------------------------------------------
 */

LANES_INLINE void blend_block(float *states, const float *sums, lanes scale, lanes momentum,
                              const enum access access, int n)
{
    lanes old = get(states, access, n);
    lanes off = lanes_sub(lanes_multiply(get(sums, access, n), scale), old);
    put(states, lanes_add(old, lanes_multiply(momentum, off)), access, n);
}

static void blend(tdmi_stream *stream, float *states, const float *sums, int64_t n, float scale,
                  float momentum)
{
    (void)stream;
#define BLOCK(i, access, n) \
    blend_block(states + (i), sums + (i), lanes_all(scale), lanes_all(momentum), access, n)
    ALL_BLOCKS(n, BLOCK);
#undef BLOCK
}

static void accumulate(tdmi_stream *stream, enum tdmi_dtype type, void *to, const void *from,
                       int64_t n)
{
    float *sums = to;
    const float *values = from;
    int64_t i = 0;
    (void)stream;
    (void)type; /* f32: nothing else is stored here */
    for (; i + LANES <= n; i += LANES)
        lanes_store(sums + i, lanes_add(lanes_load(sums + i), lanes_load(values + i)));
    for (; i < n; i++)
        sums[i] += values[i];
}

const struct tdmi_update_table TDMI_THIS_ISA(tdmi_update) = {
    .sgd = sgd,
    .rmsprop = rmsprop,
    .adam = adam,
    .lamb_measure = lamb_measure,
    .lamb_step = lamb_step,
    .squares = squares,
    .blend = blend,
    .accumulate = accumulate,
};
