/*
 * One call of a convolution of backend cpu on the images of a group, for training (forms.h) and for
 * inference. Everything is f32, pictures are (n, h, w, c), outputs lie at multiples of 64 bytes if
 * they are to be streamed past the caches. Nothing is accumulated: outputs are written. Packed
 * weights are made once for all threads; workspace belongs to the call, whose team is at most as
 * large as the desc's.
 */
#pragma once

#include "backend/cpu/forms.h"
#include "base/team.h"

/* The direction that weights are packed for. */
enum tdmi_conv_direction { TDMI_CONV_FORWARD, TDMI_CONV_BACKWARD };

/* y = conv(act(scale · x + shift)) + bias */
struct tdmi_conv_forward {
    int n;
    const struct tdmi_member *member; /* place in the team; NULL: one thread computes */
    const float *x;
    struct tdmi_read_form read;
    const float *packed; /* TDMI_CONV_FORWARD */
    const float *bias;   /* NULL: 0 */
    float *y;
    struct tdmi_forward_sums sums; /* over all pixels of the call */
    void *workspace;
};

/* y = act(conv(x) + bias + residual), with a frozen batch norm in weights and bias */
struct tdmi_conv_infer {
    int n;
    const struct tdmi_member *member; /* place in the team; NULL: one thread computes */
    const float *x;
    const float *packed;          /* TDMI_CONV_FORWARD */
    const float *bias, *residual; /* (out), (n, out); NULL: 0; residual may be y */
    enum tdmi_act act;            /* not SIGMOID */
    float *y;
    const float *next; /* input of the next call, prefetched meanwhile; NULL: none */
    int64_t next_floats;
    void *workspace;
};

/* With dy = of_g · g + of_y · y + one, and v = act(scale · x + shift) what forward multiplied:
 *
 *     dweights = gradient of the weights,   dbias = Σdy
 *     dx       = act'(scale · x + shift) · gradient of v + add
 */
struct tdmi_conv_backward {
    int n;
    const struct tdmi_member *member; /* place in the team; NULL: one thread computes */
    const float *x;
    struct tdmi_read_form read;
    const float *g, *y; /* y: NULL where the gradient form has no of_y */
    struct tdmi_gradient_form gradient;
    const float *packed;            /* TDMI_CONV_BACKWARD; NULL without dx */
    float *dweights;                /* (kernel, kernel, in, out); NULL: not wanted */
    float *dbias;                   /* NULL: none */
    float *dx;                      /* NULL: not wanted */
    const float *add;               /* what other readers of x wrote, or NULL; may be dx */
    struct tdmi_backward_sums sums; /* of dx; not wanted without it */
    void *workspace;
};
