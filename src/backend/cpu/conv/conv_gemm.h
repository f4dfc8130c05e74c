/*
 * Convolutions of all channels, f32. One of three algorithms runs a shape: pointwise
 * (1 × 1 of stride 1: pointwise.c), Winograd (3 × 3 of stride 1:
 * winograd.c) or the window (any window, stride, dilation and padding: conv_window.c). The input is
 * read through its form, and padding is zero after the form.
 */
#pragma once

#include "backend/cpu/conv/conv_call.h"
#include "backend/cpu/isa.h"

#include <stdbool.h>
#include <stddef.h>

struct tdmi_conv_gemm {
    int max_images;
    int in_h, in_w, in_c;
    int out_h, out_w, out_c;
    int kernel_h, kernel_w;
    int stride, dilation;
    int pad_top, pad_left; /* what is needed below and to the right follows from out */
    int team;              /* members of the largest team of a call; 0 counts as 1 */
    enum tdmi_isa isa;
    bool is_split;     /* inference by strassen.h, which must be for these channels */
    bool trains_split; /* training too, but for the gradient of the weights */
    bool only_infers;  /* all calls do: no memory for training */
};

/* 3 × 3 over so few channels that its weights are as few as those of a 1 × 1: the first one of a
 * network. */
bool tdmi_conv_gemm_is_of_picture(const struct tdmi_conv_gemm *desc);

/* An algorithm that computes such a convolution, on shapes that it accepts. */
struct tdmi_conv_algorithm {
    bool (*accepts)(const struct tdmi_conv_gemm *desc); /* NULL: all */
    /* Bytes of workspace for any call. */
    size_t (*workspace_bytes)(const struct tdmi_conv_gemm *desc);
    size_t (*packed_bytes)(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction);
    /* weights (kernel_h, kernel_w, in_c, out_c); FORWARD: scale (out_c) multiplies all weights of
     * an output, NULL: 1. BACKWARD has no scale. */
    void (*pack)(const struct tdmi_conv_gemm *desc, enum tdmi_conv_direction direction,
                 const float *weights, const float *scale, float *packed);
    void (*forward)(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call);
    void (*infer)(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call);
    void (*backward)(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_backward *call);
};

/* pointwise: 1 × 1 of stride 1 without padding, one product of whole tensors. */
extern const struct tdmi_conv_algorithm tdmi_conv_by_pointwise, tdmi_conv_by_winograd,
    tdmi_conv_by_window;
/* The one that runs this shape. */
const struct tdmi_conv_algorithm *tdmi_conv_gemm_algorithm(const struct tdmi_conv_gemm *desc);

/* Rows of outputs of one picture, x all of it, to call->y, whence they are read soon. Of a window
 * that is not computed by tiles. One thread computes them, whatever member the call has. */
void tdmi_conv_gemm_infer_rows(const struct tdmi_conv_gemm *desc,
                               const struct tdmi_conv_infer *call, int first, int rows);
