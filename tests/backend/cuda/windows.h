/*
 * Depthwise convolution by its definition, in double: what the kernels are compared with.
 */
#ifndef TANDEM_TESTS_BACKEND_CUDA_WINDOWS_H
#define TANDEM_TESTS_BACKEND_CUDA_WINDOWS_H

#include "backend/cuda/values.h"
#include "backend/cuda/kernels/conv/depthwise.h"

/* All paddings, strides and kernels of networks, and what none has: odd and ragged pictures,
 * windows larger than the picture, pixels between windows, padding wider than the window,
 * dilation; channels of one vector, of a few, of none; memory that begins anywhere. */
static const struct window_case {
    struct tdmi_cuda_window shape;
    int off;
} window_cases[] = {
    {{0, 2, 6, 5, 8, 6, 5, 3, 1, 1, 1, 1, 0}, 0},   {{0, 3, 9, 13, 12, 7, 11, 3, 1, 1, 0, 0, 0}, 0},
    {{0, 2, 8, 8, 8, 4, 4, 3, 2, 1, 0, 0, 0}, 0},   {{0, 2, 11, 7, 16, 6, 4, 3, 2, 1, 1, 1, 0}, 0},
    {{0, 1, 37, 6, 4, 37, 6, 3, 1, 1, 1, 1, 0}, 0}, {{0, 2, 39, 5, 4, 20, 3, 3, 2, 1, 1, 1, 0}, 0},
    {{0, 1, 1, 1, 132, 1, 1, 3, 1, 1, 1, 1, 0}, 0}, {{0, 2, 7, 9, 20, 7, 9, 5, 1, 1, 2, 2, 0}, 0},
    {{0, 2, 7, 9, 20, 4, 5, 5, 2, 1, 2, 2, 0}, 0},  {{0, 2, 12, 10, 4, 5, 4, 5, 2, 1, 1, 0, 0}, 0},
    {{0, 1, 5, 5, 8, 9, 9, 3, 1, 1, 3, 3, 0}, 0}, /* rows that see nothing but zeros */
    {{0, 2, 6, 5, 7, 6, 5, 3, 1, 1, 1, 1, 0}, 0},   {{0, 2, 6, 5, 8, 6, 5, 3, 1, 1, 1, 1, 0}, 1},
    {{0, 2, 9, 8, 8, 4, 4, 3, 2, 3, 2, 3, 0}, 0},   {{0, 2, 7, 8, 8, 2, 3, 2, 3, 1, 0, 0, 0}, 0},
    {{0, 1, 5, 6, 3, 3, 4, 4, 2, 1, 3, 1, 0}, 0},
};
enum { n_window_cases = sizeof window_cases / sizeof *window_cases };

static inline double read_through(enum tdmi_act act, double value)
{
    value = act != TDMI_ACT_NONE && value < 0.0 ? 0.0 : value;
    return act == TDMI_ACT_RELU6 && value > 6.0 ? 6.0 : value;
}

/* The pixel of x that a tap of an output pixel sees, channel 0; -1: padding. */
static inline int64_t seen(const struct tdmi_cuda_window *it, int64_t pixel, int tap)
{
    const int64_t column = pixel % it->out_w, row = pixel / it->out_w % it->out_h;
    const int64_t picture = pixel / it->out_w / it->out_h;
    const int64_t y = row * it->stride + tap / it->kernel * it->dilation - it->top;
    const int64_t x = column * it->stride + tap % it->kernel * it->dilation - it->left;
    if (y < 0 || y >= it->h || x < 0 || x >= it->w)
        return -1;
    return ((picture * it->h + y) * it->w + x) * it->channels;
}

/* Of one case, in one type. */
struct window_tensors {
    struct tdmi_cuda_window shape;
    int64_t n_x, n_y;
    float *weights, *bias;
    void *x, *y, *dy, *add, *dx;
    void *blocks[7];
    double *wanted, *size; /* of x, or of y */
};

static inline void make_window(struct window_tensors *it, const struct window_case *from,
                               enum tdmi_dtype type)
{
    it->shape = from->shape;
    it->shape.type = type;
    const struct tdmi_cuda_window *s = &it->shape;
    it->n_x = s->n * s->h * s->w * s->channels;
    it->n_y = s->n * s->out_h * s->out_w * s->channels;
    it->weights =
        tensor(TDMI_DTYPE_F32, (int64_t)s->kernel * s->kernel * s->channels, 0, 1, &it->blocks[0]);
    it->bias = tensor(TDMI_DTYPE_F32, s->channels, 0, 2, &it->blocks[1]);
    it->x = tensor(type, it->n_x, from->off, 3, &it->blocks[2]);
    it->y = tensor(type, it->n_y, from->off, 0, &it->blocks[3]);
    it->dy = tensor(type, it->n_y, from->off, 4, &it->blocks[4]);
    it->add = tensor(type, it->n_x, from->off, 5, &it->blocks[5]);
    it->dx = tensor(type, it->n_x, from->off, 0, &it->blocks[6]);
    const int64_t most = it->n_x > it->n_y ? it->n_x : it->n_y;
    it->wanted = tdmi_alloc((size_t)most, sizeof(double));
    it->size = tdmi_alloc((size_t)most, sizeof(double));
    assert_non_null(it->wanted);
    assert_non_null(it->size);
}

static inline void drop_window(struct window_tensors *it)
{
    for (int k = 0; k < 7; k++)
        tdmi_free(it->blocks[k]);
    tdmi_free(it->wanted);
    tdmi_free(it->size);
}

static inline void look_at_window(const struct window_tensors *it, const void *got, int64_t n,
                                  const char *what)
{
    for (int64_t i = 0; i < n; i++)
        expect_near(value_at(got, it->shape.type, i), it->wanted[i],
                    step_of(it->shape.type, fabs(it->wanted[i])) + 1e-6 * it->size[i], what, i);
}

/* The gradient of the input. */
typedef int window_data(struct CUstream_st *queue, const struct tdmi_cuda_window *shape,
                        const struct tdmi_cuda_depthwise_data *call);
static inline void check_data(struct window_tensors *it, window_data *run, enum tdmi_act x_act,
                              bool has_add)
{
    const struct tdmi_cuda_window *s = &it->shape;
    const struct tdmi_cuda_depthwise_data call = {.dy = it->dy,
                                                  .weights = it->weights,
                                                  .x = x_act == TDMI_ACT_NONE ? NULL : it->x,
                                                  .x_act = x_act,
                                                  .add = has_add ? it->add : NULL,
                                                  .dx = it->dx};
    assert_int_equal(run(NULL, s, &call), 0);
    memset(it->wanted, 0, sizeof(double) * (size_t)it->n_x);
    memset(it->size, 0, sizeof(double) * (size_t)it->n_x);
    for (int64_t i = 0; i < it->n_y; i++)
        for (int tap = 0; tap < s->kernel * s->kernel; tap++) {
            const int64_t at = seen(s, i / s->channels, tap), c = i % s->channels;
            if (at < 0)
                continue;
            const double term =
                value_at(it->dy, s->type, i) * (double)it->weights[tap * s->channels + c];
            it->wanted[at + c] += term;
            it->size[at + c] += fabs(term);
        }
    for (int64_t i = 0; i < it->n_x; i++) {
        const double x = value_at(it->x, s->type, i);
        if (x_act != TDMI_ACT_NONE && (x <= 0.0 || (x_act == TDMI_ACT_RELU6 && x >= 6.0)))
            it->wanted[i] = 0.0;
        if (has_add)
            it->wanted[i] += value_at(it->add, s->type, i);
    }
    look_at_window(it, it->dx, it->n_x, "dx");
}

#endif
