/*
 * Sums over pixels that a product adds up in f32 for a chunk, and that are put together in double:
 * chunks are cut at the same places always, so the bits are the same too.
 */
#ifndef TANDEM_BACKEND_CPU_CONV_SUMS_H
#define TANDEM_BACKEND_CPU_CONV_SUMS_H

#include "backend/cpu/gemm.h"

#include <string.h>

static inline void tdmi_conv_sums_clear(double *sums, int channels)
{
    if (sums)
        memset(sums, 0, sizeof *sums * (size_t)channels);
}

/* Add a chunk's sums, and begin the next chunk's. */
static inline void tdmi_conv_sums_add(double *sums, float *chunk, int channels)
{
    if (sums)
        for (int c = 0; c < channels; c++)
            sums[c] += (double)chunk[c];
    memset(chunk, 0, sizeof *chunk * (size_t)tdmi_gemm_round(channels));
}

/* The same for the gradient of a bias, which is f32. */
static inline void tdmi_conv_bias_add(float *dbias, float *chunk, int channels)
{
    for (int c = 0; c < channels; c++)
        dbias[c] += chunk[c];
    memset(chunk, 0, sizeof *chunk * (size_t)tdmi_gemm_round(channels));
}

#endif
