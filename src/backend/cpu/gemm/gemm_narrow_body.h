/*
 * Blocks of one vector of columns, as of 16: each value of the left side is multiplied once only,
 * so a block is twice as tall as others and reads B half as often. Part of gemm_kernels.c, and
 * every value is the chain of additions it is there.
 */
#pragma once

#include "backend/cpu/gemm/gemm_end_body.h"

#if defined(__AVX512F__)

enum { NARROW_TALL = 28, NARROW_BASE = 7 }; /* rows; of them, as many as one address reaches */

LANES_INLINE void narrow_multiply(lanes sums[NARROW_TALL], const float *a, int64_t a_row,
                                  const float *b, int depth)
{
    int64_t once = a_row * (int64_t)sizeof(float), thrice = 3 * once, five_times = 5 * once;
    const char *bases[NARROW_TALL / NARROW_BASE];
    OPAQUE(thrice);
    OPAQUE(five_times);
    EACH_OF (i, NARROW_TALL / NARROW_BASE) {
        bases[i] = (const char *)a + i * NARROW_BASE * once;
        OPAQUE(bases[i]);
    }
    for (int k = 0; k < depth; k++, b += LANES) {
        const lanes right = lanes_load(b);
        EACH_OF (i, NARROW_TALL) {
            const float value =
                left_value(bases[i / NARROW_BASE], once, thrice, five_times, i % NARROW_BASE);
            sums[i] = lanes_multiply_add(lanes_all(value), right, sums[i]);
        }
        EACH_OF (i, NARROW_TALL / NARROW_BASE)
            bases[i] += sizeof(float);
    }
}

LANES_INLINE void narrow_finish(const struct tdmi_gemm_rows *job, const lanes sums[NARROW_TALL],
                                int64_t at, int first, const float *add, const bool is_streamed)
{
    struct column column = column_at(job, TDMI_GEMM_ACTIVATED, first);
    UNROLL(28)
    for (int i = 0; i < NARROW_TALL; i++, at += job->c_row)
        finish_usual(job, TDMI_GEMM_ACTIVATED, &column, at, sums[i], add, is_streamed);
}

static void narrow_block(const struct tdmi_gemm_rows *job, struct ahead *ahead, int64_t a,
                         const float *b, int64_t c, int first)
{
    lanes sums[NARROW_TALL];
    EACH_OF (i, NARROW_TALL)
        sums[i] = lanes_all(0.0f);
    for (int s = 0; s < job->n_segments; s++) {
        const struct tdmi_gemm_segment *segment = &job->segments[s];
        const float *from = segment->a + a, *by = b + (int64_t)segment->first * LANES;
        for (int left = segment->depth; left > 0; left -= DEPTH_STEP) {
            look_ahead(ahead); /* twice: a block is two of those that steps are counted in */
            look_ahead(ahead);
            narrow_multiply(sums, from, job->a_row, by, left < DEPTH_STEP ? left : DEPTH_STEP);
            from += DEPTH_STEP;
            by += DEPTH_STEP * LANES;
        }
    }
    if (!job->residual && job->is_streamed)
        narrow_finish(job, sums, c, first, NULL, true);
    else
        narrow_finish(job, sums, c, first, job->residual, job->is_streamed);
}

#endif
