/*
 * Passes over whole tensors in f32 that no other kernel can carry: the sum of two tensors and
 * activations, each operand read through a form, and the gradients of both; and global pooling.
 * One call is one thread's; nothing is allocated. Activations in forms are
 * NONE, RELU and RELU6.
 */
#pragma once

#include "backend/backend.h"
#include "backend/cpu/forms.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/pieces.h"

/* y = act(v[0] + v[1]), or act(v[0]) where x[1] is NULL */
struct tdmi_combine {
    int64_t pixels;
    int channels;
    const float *x[2];
    struct tdmi_read_form form[2];
    enum tdmi_act act;
    float *y;
};

/* The gradient of one operand: dx = act'(z) · g + add with z = scale · x + shift. g is dy where y,
 * the activation's output, is inside of its range, else 0; dy itself where there is no activation;
 * of a global pool dy / pixels, dy (n, channels). */
struct tdmi_combine_gradient {
    bool is_pool;
    int n;          /* 1, or images of a pool */
    int64_t pixels; /* pixels of each image */
    int channels;
    const float *dy;
    const float *y; /* NULL where act is NONE */
    enum tdmi_act act;
    const float *x; /* NULL where neither form nor sums ask for it */
    struct tdmi_read_form form;
    float *dx;
    const float *add; /* may be dx; NULL: 0 */
    struct tdmi_backward_sums sums;
    struct tdmi_share stretches; /* those that are computed; end 0: all */
    float *pieces;               /* for their sums; NULL: sums are written */
};

static inline int64_t tdmi_combine_stretches(int n, int64_t pixels)
{
    return n * ((pixels + TDMI_STRETCH - 1) / TDMI_STRETCH);
}

/* y (n, channels): the mean over the pixels of each picture of v. */
struct tdmi_global_pool {
    int n;
    int64_t pixels; /* of a picture */
    int channels;
    const float *x;
    struct tdmi_read_form form;
    float *y;
};

struct tdmi_elementwise_kernels {
    void (*combine)(const struct tdmi_combine *call);
    void (*combine_backward)(const struct tdmi_combine_gradient *call);
    void (*global_pool)(const struct tdmi_global_pool *call);
};

/* For isa up to tdmi_isa_best(). */
const struct tdmi_elementwise_kernels *tdmi_elementwise_kernels(enum tdmi_isa isa);

extern const struct tdmi_elementwise_kernels tdmi_elementwise_scalar, tdmi_elementwise_avx2,
    tdmi_elementwise_avx512;
