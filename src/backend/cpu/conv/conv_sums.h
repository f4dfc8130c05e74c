/*
 * Sums over pixels, copied from the workspace, where products have added them up for the channels
 * rounded up to whole vectors (gemm.h); and the size from which results are streamed.
 */
#pragma once

#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/pieces.h"

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

/* The member's part of the columns of sums, which it alone adds up and copies: whole lines of the
 * cache. */
static inline struct tdmi_share tdmi_conv_sums_share(const struct tdmi_member *member, int channels)
{
    return tdmi_pieces_share(member, channels);
}

static inline void tdmi_conv_sums_clear(double *sums, struct tdmi_share columns)
{
    for (int64_t c = columns.first; c < columns.end; c++)
        sums[c] = 0.0;
}

/* Copy these columns, as far as there are so many channels; to NULL: nothing is copied. */
static inline void tdmi_conv_sums_deliver(double *to, const double *sums, struct tdmi_share columns,
                                          int channels)
{
    for (int64_t c = columns.first; to && c < columns.end && c < channels; c++)
        to[c] = sums[c];
}

/* The same for the gradient of a bias, which is f32. */
static inline void tdmi_conv_bias_deliver(float *to, const double *sums, struct tdmi_share columns,
                                          int channels)
{
    for (int64_t c = columns.first; to && c < columns.end && c < channels; c++)
        to[c] = (float)sums[c];
}

/* Add n pixels of dy to the sums of these columns: f32 over four pixels, double beyond. */
void tdmi_conv_bias_add(const float *dy, int64_t dy_row, int64_t n, struct tdmi_share columns,
                        double *sums);
