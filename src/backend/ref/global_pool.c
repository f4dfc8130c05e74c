/* The mean of every channel over the whole picture. */
#include "backend/ref/ref.h"

#include <string.h>

TDMI_KERNEL_RUN(forward)
{
    int channels = desc->out.c;
    int64_t n_pixels = tdmi_shape_pixels(desc->in[0]);
    for (int i = 0; i < call->n; i++) {
        const float *x = call->x[0] + i * n_pixels * channels;
        float *y = call->y + (int64_t)i * channels;
        memset(y, 0, sizeof(float) * (size_t)channels);
        for (int64_t p = 0; p < n_pixels; p++)
            for (int c = 0; c < channels; c++)
                y[c] += x[p * channels + c];
        for (int c = 0; c < channels; c++)
            y[c] /= (float)n_pixels;
    }
}

TDMI_KERNEL_RUN(backward)
{
    if (!desc->wants_dx)
        return;
    int channels = desc->out.c;
    int64_t n_pixels = tdmi_shape_pixels(desc->in[0]);
    for (int i = 0; i < call->n; i++)
        for (int64_t p = 0; p < n_pixels; p++)
            for (int c = 0; c < channels; c++)
                call->dx[0][(i * n_pixels + p) * channels + c] =
                    call->dy[(int64_t)i * channels + c] / (float)n_pixels;
}

const struct tdmi_kernel tdmi_ref_global_pool = {
    .forward = forward, .backward = backward, TDMI_SHARES_IMAGES};
