/*
 * Local response normalisation over the channels of each pixel. With W(c) the channels around c and
 * s[c] = offset + alpha / kernel · Σ over W(c) of x²:
 *
 *     y[c]  = x[c] · s[c]^-beta
 *     dx[c] = dy[c] · s[c]^-beta - 2 · alpha / kernel · beta · x[c] · Σ over j with c in W(j) of
 *             dy[j] · x[j] · s[j]^(-beta - 1)
 *
 * An even kernel has one channel more before than after, as PyTorch's has.
 */
#include "backend/ref/ref.h"

#include <math.h>

static int first_of(int channel, int reach)
{
    return channel > reach ? channel - reach : 0;
}

static int end_of(int channel, int reach, int channels)
{
    return channel + reach + 1 < channels ? channel + reach + 1 : channels;
}

/* s of every channel of one pixel. */
static void sizes(const struct tdmi_op_attrs *attrs, int channels, const float *x, double *s)
{
    int before = attrs->kernel / 2, after = (attrs->kernel - 1) / 2;
    for (int c = 0; c < channels; c++) {
        double sum = 0.0;
        for (int j = first_of(c, before); j < end_of(c, after, channels); j++)
            sum += (double)x[j] * (double)x[j];
        s[c] = attrs->offset + attrs->alpha / attrs->kernel * sum;
    }
}

TDMI_KERNEL_RUN(forward)
{
    int channels = desc->out.c;
    double *s = call->workspace;
    for (int64_t p = 0; p < call->n * tdmi_shape_pixels(desc->out); p++) {
        const float *x = call->x[0] + p * channels;
        sizes(&desc->attrs, channels, x, s);
        for (int c = 0; c < channels; c++)
            call->y[p * channels + c] = (float)((double)x[c] * pow(s[c], -desc->attrs.beta));
    }
}

static void backward_pixel(const struct tdmi_op_attrs *attrs, int channels, const float *x,
                           const float *dy, double *s, double *pulls, float *dx)
{
    int before = attrs->kernel / 2, after = (attrs->kernel - 1) / 2;
    sizes(attrs, channels, x, s);
    for (int c = 0; c < channels; c++)
        pulls[c] = (double)dy[c] * (double)x[c] * pow(s[c], -attrs->beta - 1.0);
    for (int c = 0; c < channels; c++) {
        double pull = 0.0; /* c is in W(j) when j is in c's mirrored window */
        for (int j = first_of(c, after); j < end_of(c, before, channels); j++)
            pull += pulls[j];
        dx[c] = (float)((double)dy[c] * pow(s[c], -attrs->beta) -
                        2.0 * attrs->alpha / attrs->kernel * attrs->beta * (double)x[c] * pull);
    }
}

TDMI_KERNEL_RUN(backward)
{
    if (!desc->wants_dx)
        return;
    int channels = desc->out.c;
    double *s = call->workspace, *pulls = s + channels;
    for (int64_t p = 0; p < call->n * tdmi_shape_pixels(desc->out); p++)
        backward_pixel(&desc->attrs, channels, call->x[0] + p * channels, call->dy + p * channels,
                       s, pulls, call->dx[0] + p * channels);
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    needs->workspace_bytes = 2 * sizeof(double) * (size_t)desc->out.c;
}

const struct tdmi_kernel tdmi_ref_lrn = {.needs = needs, .forward = forward, .backward = backward};
