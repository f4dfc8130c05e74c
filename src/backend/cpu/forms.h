/*
 * Fusion of batch norm and activation with their neighbours in training, on backend cpu. A
 * convolution stores its raw output y and the sums that its statistics are made of. Each reader of
 * y applies scale, shift and activation while it reads (read form). The kernel that writes the
 * gradient masks it and adds up the sums that batch norm's backward needs. The convolution's own
 * backward makes dy from that gradient and y (gradient form).
 * Vectors have one value a channel. See docs/design/backend.md, "Fusion".
 */
#pragma once

#include "backend/op.h"

/* v = act(scale · y + shift) */
struct tdmi_read_form {
    const float *scale, *shift; /* both NULL: 1, 0 */
    enum tdmi_act act;
};

static inline bool tdmi_read_form_is_plain(const struct tdmi_read_form *form)
{
    return !form->scale && !form->shift && form->act == TDMI_ACT_NONE;
}

/* dy = of_g · g + of_y · y + one */
struct tdmi_gradient_form {
    const float *of_g, *of_y, *one; /* all NULL: dy = g, and y is not read */
};

/* Sums over a raw output, taken where it is written: Σ(y - centre), Σ(y - centre)². */
struct tdmi_forward_sums {
    const float *centre;  /* NULL: 0; near the mean, so that squares do not cancel */
    double *sum, *square; /* written, never added to; both NULL: no sums */
};

/* Sums over a masked gradient g and its raw output x: Σg, Σg·(x - centre). */
struct tdmi_backward_sums {
    const float *centre;   /* NULL: 0 */
    double *sum, *product; /* written, never added to; both NULL: no sums */
};
