/*
 * Sums over pixels on their way out of the workspace, where products have added them up for the
 * channels rounded up to whole vectors (gemm.h).
 */
#pragma once

#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/gemm/gemm.h"

/* Values of one of the sums. */
static inline int64_t tdmi_conv_sums_values(const struct tdmi_conv_gemm *desc)
{
    return tdmi_gemm_round(desc->in_c > desc->out_c ? desc->in_c : desc->out_c);
}

/* Is a result of so many values an image written past the caches? From this size on it does not
 * stay in a cache until it is read. */
static inline bool tdmi_conv_is_streamed(const struct tdmi_conv_gemm *desc, int64_t values,
                                         int channels, const float *to)
{
    enum { STREAM_BYTES = 2 << 20 };
    return channels % TDMI_GEMM_ROUND == 0 && (uintptr_t)to % 64 == 0 &&
           desc->max_images * values * (int64_t)sizeof(float) >= STREAM_BYTES;
}

/* to NULL: not wanted */
static inline void tdmi_conv_sums_deliver(double *to, const double *sums, int channels)
{
    for (int c = 0; to && c < channels; c++)
        to[c] = sums[c];
}

/* The same for the gradient of a bias, which is f32. */
static inline void tdmi_conv_bias_deliver(float *to, const double *sums, int channels)
{
    for (int c = 0; to && c < channels; c++)
        to[c] = (float)sums[c];
}
