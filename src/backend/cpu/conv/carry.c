/*
 * Plain loops over channels, compiled once per vector width; activations are constants in them.
 * Sums run in double, pixel after pixel.
 */
#include "backend/cpu/conv/carry.h"
#include "base/system/multiversion.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- reading ------------------------------------------------------------------------------ */

INLINE float activated(float z, const enum tdmi_act act)
{
    if (act == TDMI_ACT_NONE)
        return z;
    z = z > 0.0f ? z : 0.0f;
    return act == TDMI_ACT_RELU6 && z > 6.0f ? 6.0f : z;
}

INLINE void read_as(const float *restrict scale, const float *restrict shift,
                    const float *restrict x, int64_t pixels, int channels, float *restrict v,
                    const enum tdmi_act act)
{
    for (int64_t p = 0; p < pixels; p++, x += channels, v += channels)
        for (int c = 0; c < channels; c++)
            v[c] = activated(scale ? scale[c] * x[c] + shift[c] : x[c], act);
}

TDMI_MULTIVERSION
void tdmi_carry_read(const struct tdmi_read_form *form, const float *x, int64_t pixels,
                     int channels, float *v)
{
    if (form->act == TDMI_ACT_RELU6)
        read_as(form->scale, form->shift, x, pixels, channels, v, TDMI_ACT_RELU6);
    else if (form->act == TDMI_ACT_RELU)
        read_as(form->scale, form->shift, x, pixels, channels, v, TDMI_ACT_RELU);
    else
        read_as(form->scale, form->shift, x, pixels, channels, v, TDMI_ACT_NONE);
}

TDMI_MULTIVERSION
void tdmi_carry_gradient(const struct tdmi_gradient_form *form, const float *g, const float *y,
                         int64_t pixels, int channels, float *dy)
{
    const float *restrict of_g = form->of_g, *restrict of_y = form->of_y, *restrict one = form->one;
    float *restrict to = dy;
    for (int64_t p = 0; p < pixels; p++, g += channels, y += channels, to += channels)
        for (int c = 0; c < channels; c++)
            to[c] = of_g[c] * g[c] + of_y[c] * y[c] + one[c];
}

/* ---- writing ------------------------------------------------------------------------------ */

/* dx may be add, or dv: every value is read before it is written. */
INLINE void mask_as(const float *restrict scale, const float *restrict shift, const float *x,
                    const float *dv, const float *add, int64_t pixels, int channels, float *dx,
                    const enum tdmi_act act)
{
    for (int64_t p = 0; p < pixels; p++) {
        int64_t at = p * channels;
        for (int c = 0; c < channels; c++) {
            float z = scale ? scale[c] * x[at + c] + shift[c] : x[at + c];
            float other = add ? add[at + c] : 0.0f;
            bool passes = act == TDMI_ACT_NONE || (z > 0.0f && (act == TDMI_ACT_RELU || z < 6.0f));
            dx[at + c] = (passes ? dv[at + c] : 0.0f) + other;
        }
    }
}

TDMI_MULTIVERSION
void tdmi_carry_mask(const struct tdmi_read_form *form, const float *x, const float *dv,
                     const float *add, int64_t pixels, int channels, float *dx)
{
    if (form->act == TDMI_ACT_RELU6)
        mask_as(form->scale, form->shift, x, dv, add, pixels, channels, dx, TDMI_ACT_RELU6);
    else if (form->act == TDMI_ACT_RELU)
        mask_as(form->scale, form->shift, x, dv, add, pixels, channels, dx, TDMI_ACT_RELU);
    else
        mask_as(NULL, NULL, dv, dv, add, pixels, channels, dx, TDMI_ACT_NONE);
}

/* ---- sums --------------------------------------------------------------------------------- */

INLINE void forward_sums(const float *restrict y, int64_t pixels, int channels,
                         const float *restrict centre, double *restrict sum,
                         double *restrict square)
{
    for (int64_t p = 0; p < pixels; p++, y += channels)
        for (int c = 0; c < channels; c++) {
            double off = (double)y[c] - (centre ? (double)centre[c] : 0.0);
            sum[c] += off;
            square[c] += off * off;
        }
}

TDMI_MULTIVERSION
void tdmi_carry_forward_sums(const float *y, int64_t pixels, int channels,
                             const struct tdmi_forward_sums *sums)
{
    forward_sums(y, pixels, channels, sums->centre, sums->sum, sums->square);
}

INLINE void backward_sums(const float *restrict g, const float *restrict x, int64_t pixels,
                          int channels, const float *restrict centre, double *restrict sum,
                          double *restrict product)
{
    for (int64_t p = 0; p < pixels; p++, g += channels, x += channels)
        for (int c = 0; c < channels; c++) {
            double value = (double)g[c];
            sum[c] += value;
            product[c] += value * ((double)x[c] - (centre ? (double)centre[c] : 0.0));
        }
}

TDMI_MULTIVERSION
void tdmi_carry_backward_sums(const float *g, const float *x, int64_t pixels, int channels,
                              const struct tdmi_backward_sums *sums)
{
    backward_sums(g, x, pixels, channels, sums->centre, sums->sum, sums->product);
}
