/*
 * Sums over pixels on their way out of the workspace, where products have added them up for the
 * channels rounded up to whole vectors (gemm.h).
 */
#pragma once

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
