/*
 * The 1 × 1 convolution of stride 1, f32, on one thread: a matrix product over pixels, cut into
 * chunks whose scratch memory stays in the second cache. A chunk is read through its form,
 * multiplied, and its statistics are taken while results are in registers, so that training reads x
 * once and writes y once forward, and reads x, g, y (and add) once and writes dx once backward.
 */
#ifndef TANDEM_BACKEND_CPU_POINTWISE_H
#define TANDEM_BACKEND_CPU_POINTWISE_H

#include "backend/cpu/conv/conv_call.h"
#include "backend/cpu/isa.h"

#include <stddef.h>

struct tdmi_pointwise {
    int max_images;
    int64_t pixels; /* of an image */
    int in, out;    /* channels */
    enum tdmi_isa isa;
    bool is_split; /* inference by strassen.h, which must be for these channels */
};

/* Bytes for any call. */
size_t tdmi_pointwise_workspace_bytes(const struct tdmi_pointwise *desc);

size_t tdmi_pointwise_packed_bytes(const struct tdmi_pointwise *desc,
                                   enum tdmi_conv_direction direction);
/* weights (in, out); scale (out) multiplies what each output reads, NULL: 1 */
void tdmi_pointwise_pack(const struct tdmi_pointwise *desc, enum tdmi_conv_direction direction,
                         const float *weights, const float *scale, float *packed);

void tdmi_pointwise_forward(const struct tdmi_pointwise *desc,
                            const struct tdmi_conv_forward *call);
void tdmi_pointwise_infer(const struct tdmi_pointwise *desc, const struct tdmi_conv_infer *call);
void tdmi_pointwise_backward(const struct tdmi_pointwise *desc,
                             const struct tdmi_conv_backward *call);

#endif
