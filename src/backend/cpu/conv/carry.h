/*
 * Fused work (forms.h) as passes over one image, for kernels whose arithmetic is a library's. They
 * are called image by image, next to the library call that reads or writes the image, and find it
 * in the caches. Activations: NONE, RELU, RELU6.
 */
#pragma once

#include "backend/cpu/forms.h"

/* v = act(scale · x + shift) */
void tdmi_carry_read(const struct tdmi_read_form *form, const float *x, int64_t pixels,
                     int channels, float *v);
/* dy = of_g · g + of_y · y + one */
void tdmi_carry_gradient(const struct tdmi_gradient_form *form, const float *g, const float *y,
                         int64_t pixels, int channels, float *dy);
/* dx = act'(scale · x + shift) · dv + add; add may be NULL, and be dx. */
void tdmi_carry_mask(const struct tdmi_read_form *form, const float *x, const float *dv,
                     const float *add, int64_t pixels, int channels, float *dx);

/* These two add to the sums, which the caller has cleared. */
void tdmi_carry_forward_sums(const float *y, int64_t pixels, int channels,
                             const struct tdmi_forward_sums *sums);
void tdmi_carry_backward_sums(const float *g, const float *x, int64_t pixels, int channels,
                              const struct tdmi_backward_sums *sums);
