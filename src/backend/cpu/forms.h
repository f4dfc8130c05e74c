/*
 * How kernels of backend cpu hand tensors to each other in training, without passes of their own
 * for batch norm and activation. A convolution stores its raw output y and the sums its statistics
 * are made of; whoever reads y applies scale, shift and activation while reading (read form);
 * whoever writes the gradient of what was read masks it and adds up what batch norm's backward
 * needs; and the convolution's own backward makes dy from that gradient and y (gradient form).
 * Vectors have one value a channel. See docs/design/backend.md, "Fusion".
 */
#ifndef TANDEM_BACKEND_CPU_FORMS_H
#define TANDEM_BACKEND_CPU_FORMS_H

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

/* Of a raw output, added up where it is written: Σ(y - centre), Σ(y - centre)². */
struct tdmi_forward_sums {
    const float *centre;  /* NULL: 0; near the mean, so that squares do not cancel */
    double *sum, *square; /* written, never added to; both NULL: not wanted */
};

/* Of a masked gradient g and the raw output x that it belongs to: Σg, Σg·(x - centre). */
struct tdmi_backward_sums {
    const float *centre;   /* NULL: 0 */
    double *sum, *product; /* written, never added to; both NULL: not wanted */
};

#endif
