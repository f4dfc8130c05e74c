/*
 * Activations that are no clamp, over runs of values, in the instruction sets of this CPU; the bits
 * are those of backend ref, whose activations.c has the formulas.
 */
#pragma once

#include "backend/cpu/isa.h"

#include <stdint.h>

struct tdmi_curve_kernels {
    void (*hswish)(const float *x, int64_t n, float *y);
    void (*hswish_backward)(const float *dy, const float *x, int64_t n, float *dx);
    void (*sigmoid)(const float *x, int64_t n, float *y);
    void (*sigmoid_backward)(const float *dy, const float *y, int64_t n, float *dx);
};

/* For isa up to tdmi_isa_best(). */
const struct tdmi_curve_kernels *tdmi_curve_kernels(enum tdmi_isa isa);

extern const struct tdmi_curve_kernels tdmi_curve_scalar, tdmi_curve_avx2, tdmi_curve_avx512;
