/*
 * Operations on the values of a product before they are stored (enum tdmi_gemm_end), a vector at a
 * time: part of gemm_kernels.c and winograd_kernels.c.
 */
#pragma once

#include "backend/cpu/access.h"
#include "backend/cpu/gemm/gemm.h"

/* Arguments for a column of vectors, some of whose lanes are columns of C. */
struct column {
    lanes centre, scale, shift, bias;
    struct lanes_range range;
    lanes sum, square;
    int part;
};

LANES_INLINE lanes load(const float *from, int part)
{
    return part == LANES ? lanes_load(from) : lanes_load_part(from, part);
}

LANES_INLINE lanes load_or(const float *from, int64_t at, int part, float otherwise)
{
    return from ? load(from + at, part) : lanes_all(otherwise);
}

LANES_INLINE struct column column_at(const struct tdmi_gemm_rows *job, const int end, int64_t at)
{
    struct column column = {.sum = lanes_all(0.0f), .square = lanes_all(0.0f)};
    column.part = job->columns - at < LANES ? (int)(job->columns - at) : LANES;
    if (end != TDMI_GEMM_ACTIVATED)
        column.centre = load_or(job->centre, at, column.part, 0.0f);
    if (end != TDMI_GEMM_GRADIENT)
        column.bias = load_or(job->bias, at, column.part, 0.0f);
    if (end == TDMI_GEMM_GRADIENT) {
        column.scale = load_or(job->read.scale, at, column.part, 1.0f);
        column.shift = load_or(job->read.shift, at, column.part, 0.0f);
    }
    if (end != TDMI_GEMM_RAW)
        column.range = range_of(job->read.act);
    return column;
}

LANES_INLINE lanes hswish(lanes z)
{
    lanes gate = lanes_clamp(lanes_add(z, lanes_all(3.0f)), lanes_all(0.0f), lanes_all(6.0f));
    return lanes_multiply(z, lanes_multiply(gate, lanes_all(1.0f / 6.0f)));
}

/* Half a vector is a plain store where masked ones are slow (Zen 4), and common: 24, 40, 728. */
LANES_INLINE void store_part(float *to, lanes value, int part)
{
#if defined(__AVX512F__)
    if (part == LANES / 2) {
        _mm256_storeu_ps(to, _mm512_castps512_ps256(value));
        return;
    }
#endif
    lanes_store_part(to, value, part);
}

LANES_INLINE void put_whole(float *to, lanes value, const bool is_streamed)
{
    if (is_streamed)
        lanes_stream(to, value);
    else
        lanes_store(to, value);
}

LANES_INLINE lanes raw_value(struct column *column, lanes value)
{
    lanes far = lanes_sub(value, column->centre);
    column->sum = lanes_add(column->sum, far);
    column->square = lanes_multiply_add(far, far, column->square);
    return value;
}

LANES_INLINE lanes gradient_value(struct column *column, lanes value, lanes x)
{
    lanes z = lanes_multiply_add(x, column->scale, column->shift);
    return lanes_between(value, z, column->range.low, column->range.high);
}

LANES_INLINE void add_gradient(struct column *column, lanes value, lanes x)
{
    column->sum = lanes_add(column->sum, value);
    column->square = lanes_multiply_add(value, lanes_sub(x, column->centre), column->square);
}

/* Does the product need only what most products need? That path has few branches, since a block is
 * compiled with one of them for each of its values. end_of: the column behind the block's last. */
LANES_INLINE bool is_usual(const struct tdmi_gemm_rows *job, const int end, int64_t end_of)
{
    if (end_of > job->columns)
        return false;
    return end == TDMI_GEMM_RAW         ? !job->bias
           : end == TDMI_GEMM_ACTIVATED ? job->read.act != TDMI_ACT_HSWISH
                                        : job->x != NULL;
}

/* The other terms that are added to a value at the end. */
LANES_INLINE const float *added(const struct tdmi_gemm_rows *job, const int end)
{
    return end == TDMI_GEMM_RAW ? NULL : end == TDMI_GEMM_ACTIVATED ? job->residual : job->add;
}

/* add: NULL, or what is added to the first value of C. It and is_streamed are settled once a block,
 * as is_usual is: a shallow product is over in a few hundred steps, and asking again for each of
 * its values would take a fifth of that. */
LANES_INLINE void finish_usual(const struct tdmi_gemm_rows *job, const int end,
                               struct column *column, int64_t at, lanes value, const float *add,
                               const bool is_streamed)
{
    if (end == TDMI_GEMM_RAW) {
        value = raw_value(column, value);
    } else if (end == TDMI_GEMM_ACTIVATED) {
        value = lanes_add(value, column->bias);
        if (add)
            value = lanes_add(value, lanes_load(add + at));
        value = lanes_clamp(value, column->range.low, column->range.high);
    } else {
        lanes x = lanes_load(job->x + at);
        value = gradient_value(column, value, x);
        if (add)
            value = lanes_add(value, lanes_load(add + at));
        add_gradient(column, value, x);
    }
    put_whole(job->c + at, value, is_streamed);
}

/* at: floats from the first value of C */
LANES_INLINE void finish(const struct tdmi_gemm_rows *job, const int end, struct column *column,
                         int64_t at, lanes value)
{
    if (end == TDMI_GEMM_RAW) {
        if (job->bias)
            value = lanes_add(value, column->bias);
        value = raw_value(column, value);
    } else if (end == TDMI_GEMM_ACTIVATED) {
        value = lanes_add(value, column->bias);
        if (job->residual)
            value = lanes_add(value, load(job->residual + at, column->part));
        if (job->read.act == TDMI_ACT_HSWISH)
            value = hswish(value);
        else
            value = lanes_clamp(value, column->range.low, column->range.high);
    } else {
        lanes x = job->x ? load(job->x + at, column->part) : column->scale;
        if (job->x)
            value = gradient_value(column, value, x);
        if (job->add)
            value = lanes_add(value, load(job->add + at, column->part));
        if (job->x)
            add_gradient(column, value, x);
    }
    if (column->part == LANES)
        put_whole(job->c + at, value, job->is_streamed);
    else
        store_part(job->c + at, value, column->part);
}

/* piece: number of the block, whose sums these are */
LANES_INLINE void add_sums(const struct tdmi_gemm_rows *job, const int end,
                           const struct column *column, int64_t at, int64_t piece)
{
    if (end == TDMI_GEMM_ACTIVATED || (end == TDMI_GEMM_GRADIENT && !job->x))
        return;
    if (job->pieces) {
        const int64_t columns = tdmi_gemm_round(job->columns);
        lanes_store(job->pieces + 2 * piece * columns + at, column->sum);
        lanes_store(job->pieces + (2 * piece + 1) * columns + at, column->square);
        return;
    }
    lanes_add_to_doubles(job->sum + at, column->sum);
    lanes_add_to_doubles(job->square + at, column->square);
}
