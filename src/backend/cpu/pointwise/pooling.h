/*
 * Max and average pooling of backend cpu, f32, (n, h, w, c): inputs are read through a form (NONE,
 * RELU or RELU6), so that neither batch norm nor activation before a pool passes over memory. The
 * gradient of the input goes from pixel to pixel of the input, collecting from the windows that see
 * it, so that mask, addition and sums are done where it is written. One call is one thread's.
 */
#pragma once

#include "backend/cpu/forms.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/pieces.h"

#include <stddef.h>

struct tdmi_pooling {
    int h, w, channels, out_h, out_w;
    int kernel, stride;  /* square; kernel up to 15 */
    int top, left;       /* padding: never wins a maximum */
    bool is_max;         /* else average */
    bool counts_padding; /* average: divide by the whole window at the border too */
};

struct tdmi_pooling_forward {
    int n;
    const float *x;
    struct tdmi_read_form form;
    float *y;
    uint8_t *winners; /* max: which pixel of the window won, the first of equals; NULL: not kept */
    struct tdmi_share rows; /* of y that are computed, counted over images; end 0: all */
};

/* dx = act'(scale · x + shift) · (what the windows return) + add */
struct tdmi_pooling_backward {
    int n;
    const float *dy;
    const uint8_t *winners; /* max */
    const float *x;         /* NULL where neither form nor sums ask for it */
    struct tdmi_read_form form;
    float *dx;
    const float *add; /* may be dx; NULL: 0 */
    struct tdmi_backward_sums sums;
    struct tdmi_share stretches; /* of dx that are computed; end 0: all */
    float *pieces;               /* for their sums; NULL: sums are written */
};

struct tdmi_pooling_kernels {
    void (*forward)(const struct tdmi_pooling *pool, const struct tdmi_pooling_forward *call);
    void (*backward)(const struct tdmi_pooling *pool, const struct tdmi_pooling_backward *call);
};

/* Stretches of n pictures: rows of dx, counted over images, whose sums are f32. */
static inline int64_t tdmi_pooling_stretch_rows(const struct tdmi_pooling *pool)
{
    return (TDMI_STRETCH + pool->w - 1) / pool->w;
}
static inline int64_t tdmi_pooling_stretches(const struct tdmi_pooling *pool, int n)
{
    const int64_t rows = tdmi_pooling_stretch_rows(pool);
    return ((int64_t)n * pool->h + rows - 1) / rows;
}

/* Winners of n pictures, with room for the last vector to be whole. */
size_t tdmi_pooling_winner_bytes(const struct tdmi_pooling *pool, int n);

/* For isa up to tdmi_isa_best(). */
const struct tdmi_pooling_kernels *tdmi_pooling_kernels(enum tdmi_isa isa);

extern const struct tdmi_pooling_kernels tdmi_pooling_scalar, tdmi_pooling_avx2,
    tdmi_pooling_avx512;
