/*
 * The two passes of a resize, once for every instruction set. All of them multiply the same integer
 * weights and must give the same bytes; the scalar ones say which.
 *
 * Between the passes four rows lie woven into each other, so that the weights of four rows meet
 * their pixels in one 32-bit lane: byte b of rows 4q … 4q + 3 is at 4 b … 4 b + 3 of quad q.
 */
#pragma once

#include "image/resize/weights.h"

enum {
    TDMI_RESIZE_MAX_QUADS = 4,   /* of one call of horizontal */
    TDMI_RESIZE_SLACK = 64,      /* bytes behind the end of a row that may be read */
    TDMI_RESIZE_QUAD_SLACK = 256 /* … behind a quad that may be read or written */
};

struct tdmi_resize_kernels {
    const char *name;
    /* Convert groups of four weights to the form this set multiplies with, in place. */
    void (*pack)(int32_t *taps, size_t n_groups);
    /* Tables that horizontal needs besides: their size, and the function that fills them after
     * pack. Both NULL where there are none. */
    size_t (*arranged_bytes)(int n_outputs, int max_groups);
    void (*arrange)(struct tdmi_resize_weights *weights);
    /* 4 * n_quads rows of RGB -> n_quads quads of 3 * n_outputs columns, stride_bytes apart. */
    void (*horizontal)(const uint8_t *const *rows, int n_quads,
                       const struct tdmi_resize_weights *weights, uint8_t *quads,
                       size_t stride_bytes);
    /* n_groups quads, stride_bytes apart -> n bytes of one row. */
    void (*vertical)(const uint8_t *quads, size_t stride_bytes, const int32_t *taps, int n_groups,
                     size_t n, uint8_t *out);
};

/* Best kernels for this CPU. */
const struct tdmi_resize_kernels *tdmi_resize_kernels_best(void);
/* All kernels of this CPU, from the specification upwards; NULL past the last one. */
const struct tdmi_resize_kernels *tdmi_resize_kernels_at(int index);

extern const struct tdmi_resize_kernels tdmi_resize_scalar, tdmi_resize_avx2, tdmi_resize_avx512;
