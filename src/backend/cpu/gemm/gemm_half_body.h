/*
 * Blocks of a panel whose last vector is half a one, as of 24 columns: the halves of two rows share
 * a vector of sums, so that 24 columns cost three quarters of what 32 do. The panel has the half
 * twice (tdmi_gemm_pack). Part of gemm_kernels.c, and every value is the chain of additions it is
 * there.
 */
#pragma once

#include "backend/cpu/gemm/gemm_end_body.h"

#if defined(__AVX512F__)

enum { HALF = LANES / 2, HALF_TALL = 14, HALF_PAIRS = HALF_TALL / 2 };

struct half_sums {
    lanes whole[HALF_TALL], pairs[HALF_PAIRS];
};

/* The lower half of a, the upper one of b. */
LANES_INLINE lanes halves_of(lanes a, lanes b)
{
    return _mm512_mask_blend_ps(0xff00, a, b);
}

LANES_INLINE lanes load_halves(const float *low, const float *high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low)), _mm256_loadu_ps(high),
                              1);
}

LANES_INLINE void store_halves(float *low, float *high, lanes a)
{
    _mm256_storeu_ps(low, _mm512_castps512_ps256(a));
    _mm256_storeu_ps(high, _mm512_extractf32x8_ps(a, 1));
}

LANES_INLINE void half_multiply(struct half_sums *sums, const float *a, int64_t a_row,
                                const float *b, int depth)
{
    for (int k = 0; k < depth; k++, a++, b += 2 * LANES) {
        const lanes whole = lanes_load(b), half = lanes_load(b + LANES);
        const float *row = a;
        UNROLL(7)
        for (int i = 0; i < HALF_PAIRS; i++, row += 2 * a_row) {
            lanes upper = lanes_all(row[0]), lower = lanes_all(row[a_row]);
            sums->whole[2 * i] = lanes_multiply_add(upper, whole, sums->whole[2 * i]);
            sums->whole[2 * i + 1] = lanes_multiply_add(lower, whole, sums->whole[2 * i + 1]);
            sums->pairs[i] = lanes_multiply_add(halves_of(upper, lower), half, sums->pairs[i]);
        }
    }
}

/* first: the column where the panel begins; c: where the block does. */
LANES_INLINE void half_finish(const struct tdmi_gemm_rows *job, const struct half_sums *sums,
                              int64_t c, int first, const float *add)
{
    const struct column whole = column_at(job, TDMI_GEMM_ACTIVATED, first);
    const float *bias = job->bias ? job->bias + first + LANES : NULL;
    const lanes half_bias = bias ? load_halves(bias, bias) : lanes_all(0.0f);
    float *to = job->c + c;
    EACH_OF (i, HALF_TALL) {
        lanes value = lanes_add(sums->whole[i], whole.bias);
        if (add)
            value = lanes_add(value, lanes_load(add + c + i * job->c_row));
        lanes_store(to + i * job->c_row, lanes_clamp(value, whole.range.low, whole.range.high));
    }
    EACH_OF (i, HALF_PAIRS) {
        const int64_t upper = 2 * i * job->c_row + LANES, lower = upper + job->c_row;
        lanes value = lanes_add(sums->pairs[i], half_bias);
        if (add)
            value = lanes_add(value, load_halves(add + c + upper, add + c + lower));
        store_halves(to + upper, to + lower, lanes_clamp(value, whole.range.low, whole.range.high));
    }
}

/* Does the panel end in half a vector, with nothing but a clamp to do at the end? */
LANES_INLINE bool is_half(const struct tdmi_gemm_rows *job, int first)
{
    return job->end == TDMI_GEMM_ACTIVATED && job->columns - first == LANES + HALF &&
           !job->is_streamed && job->read.act != TDMI_ACT_HSWISH;
}

#endif
