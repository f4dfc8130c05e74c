/*
 * Depthwise convolution by its definition, in double: what the kernels are compared with.
 */
#ifndef TANDEM_TESTS_BACKEND_CUDA_WINDOWS_H
#define TANDEM_TESTS_BACKEND_CUDA_WINDOWS_H

#include "values.h"
#include "backend/cuda/depthwise.h"

/* All paddings, strides and kernels of networks, and what none has: odd and ragged pictures,
 * windows larger than the picture, pixels between windows, padding wider than the window,
 * dilation; channels of one vector, of a few, of none; memory that begins anywhere. */
static const struct window_case {
    struct tdmi_cuda_depthwise shape;
    int off;
} window_cases[] = {
    {{0, 2, 6, 5, 8, 6, 5, 3, 1, 1, 1, 1}, 0},   {{0, 3, 9, 13, 12, 7, 11, 3, 1, 1, 0, 0}, 0},
    {{0, 2, 8, 8, 8, 4, 4, 3, 2, 1, 0, 0}, 0},   {{0, 2, 11, 7, 16, 6, 4, 3, 2, 1, 1, 1}, 0},
    {{0, 1, 37, 6, 4, 37, 6, 3, 1, 1, 1, 1}, 0}, {{0, 2, 39, 5, 4, 20, 3, 3, 2, 1, 1, 1}, 0},
    {{0, 1, 1, 1, 132, 1, 1, 3, 1, 1, 1, 1}, 0}, {{0, 2, 7, 9, 20, 7, 9, 5, 1, 1, 2, 2}, 0},
    {{0, 2, 7, 9, 20, 4, 5, 5, 2, 1, 2, 2}, 0},  {{0, 2, 12, 10, 4, 5, 4, 5, 2, 1, 1, 0}, 0},
    {{0, 1, 5, 5, 8, 9, 9, 3, 1, 1, 3, 3}, 0}, /* rows that see nothing but zeros */
    {{0, 2, 6, 5, 7, 6, 5, 3, 1, 1, 1, 1}, 0},   {{0, 2, 6, 5, 8, 6, 5, 3, 1, 1, 1, 1}, 1},
    {{0, 2, 9, 8, 8, 4, 4, 3, 2, 3, 2, 3}, 0},   {{0, 2, 7, 8, 8, 2, 3, 2, 3, 1, 0, 0}, 0},
    {{0, 1, 5, 6, 3, 3, 4, 4, 2, 1, 3, 1}, 0},
};
enum { n_window_cases = sizeof window_cases / sizeof *window_cases };

static inline double read_through(enum tdmi_act act, double value)
{
    value = act != TDMI_ACT_NONE && value < 0.0 ? 0.0 : value;
    return act == TDMI_ACT_RELU6 && value > 6.0 ? 6.0 : value;
}

/* The pixel of x that a tap of an output pixel sees, channel 0; -1: padding. */
static inline int64_t seen(const struct tdmi_cuda_depthwise *it, int64_t pixel, int tap)
{
    const int64_t column = pixel % it->out_w, row = pixel / it->out_w % it->out_h;
    const int64_t picture = pixel / it->out_w / it->out_h;
    const int64_t y = row * it->stride + tap / it->kernel * it->dilation - it->top;
    const int64_t x = column * it->stride + tap % it->kernel * it->dilation - it->left;
    if (y < 0 || y >= it->h || x < 0 || x >= it->w)
        return -1;
    return ((picture * it->h + y) * it->w + x) * it->channels;
}

#endif
