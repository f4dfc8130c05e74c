/*
 * Inside kernels (isa.h) of passes over whole tensors: vectors of channels that come in through a
 * form, and gradients on their way out, masked, added to what is there, and summed for the batch
 * norm below. Sums are f32 for a stretch of pixels and double across stretches.
 */
#ifndef TANDEM_BACKEND_CPU_OUTLET_H
#define TANDEM_BACKEND_CPU_OUTLET_H

#include "backend/cpu/forms.h"
#include "backend/cpu/lanes.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    SLAB = 1024,  /* channels that are worked on at a time */
    STRETCH = 16, /* pixels whose sums are f32 */
    STREAM_BYTES = 1 << 20
};

/* How a vector leaves: past the caches, whole, or with its first channels only. OVER: whole, though
 * only its first channels are meant, because what it spills into is written afterwards (and is not
 * read any more); stores of a part are slow. Vectors of channels have nothing behind them. */
enum way { WAY_STREAM, WAY_WHOLE, WAY_PART, WAY_OVER };

LANES_INLINE void put(float *to, lanes a, const enum way way, int n)
{
    if (way == WAY_STREAM)
        lanes_stream(to, a);
    else if (way == WAY_PART)
        lanes_store_part(to, a, n);
    else
        lanes_store(to, a);
}

LANES_INLINE lanes get(const float *from, const enum way way, int n)
{
    return way == WAY_PART ? lanes_load_part(from, n) : lanes_load(from);
}

/* Of a vector of channels. */
LANES_INLINE lanes get_channels(const float *from, const enum way way, int n)
{
    return way == WAY_PART || way == WAY_OVER ? lanes_load_part(from, n) : lanes_load(from);
}

static struct lanes_range range_of(enum tdmi_act act)
{
    return (struct lanes_range){lanes_all(act == TDMI_ACT_NONE ? -INFINITY : 0.0f),
                                lanes_all(act == TDMI_ACT_RELU6 ? 6.0f : INFINITY)};
}

static bool may_stream(const float *to, int64_t pixels, int channels)
{
    return pixels * channels * (int64_t)sizeof(float) >= STREAM_BYTES && (uintptr_t)to % 64 == 0 &&
           channels % 16 == 0;
}

/* z = scale · x + shift of channels from c on */
LANES_INLINE lanes apply(const struct tdmi_read_form *form, lanes x, int c, const enum way way,
                         int n)
{
    if (!form->scale)
        return x;
    return lanes_multiply_add(x, get_channels(form->scale + c, way, n),
                              get_channels(form->shift + c, way, n));
}

/* ---- a gradient on its way out ----------------------------------------------------------------
 */

/* f32 sums of a stretch, of one slab. */
struct slab {
    float sum[SLAB], product[SLAB];
};

struct outlet {
    const float *x;
    struct tdmi_read_form form;
    struct lanes_range range;
    float *dx;
    const float *add;
    struct tdmi_backward_sums sums;
    struct slab *slab; /* NULL: no sums */
    int first;         /* channel of the slab */
};

LANES_INLINE void let_out(const struct outlet *to, int64_t at, int c, lanes g, const enum way way,
                          int n)
{
    lanes x = to->x ? get(to->x + at, way, n) : lanes_all(0.0f);
    if (to->form.act != TDMI_ACT_NONE)
        g = lanes_between(g, apply(&to->form, x, c, way, n), to->range.low, to->range.high);
    if (to->add)
        g = lanes_add(g, get(to->add + at, way, n));
    put(to->dx + at, g, way, n);
    if (!to->slab)
        return;
    float *sum = to->slab->sum + c - to->first, *product = to->slab->product + c - to->first;
    lanes off = to->sums.centre ? lanes_sub(x, get_channels(to->sums.centre + c, way, n)) : x;
    lanes_store(sum, lanes_add(lanes_load(sum), g));
    lanes_store(product, lanes_multiply_add(g, off, lanes_load(product)));
}

static void start_sums(const struct tdmi_backward_sums *sums, int channels)
{
    if (!sums->sum)
        return;
    memset(sums->sum, 0, sizeof(double) * (size_t)channels);
    memset(sums->product, 0, sizeof(double) * (size_t)channels);
}

/* A stretch's sums to the call's. */
static void end_stretch(const struct outlet *to, int end)
{
    for (int c = to->first; to->slab && c < end; c++) {
        to->sums.sum[c] += (double)to->slab->sum[c - to->first];
        to->sums.product[c] += (double)to->slab->product[c - to->first];
    }
}

#endif
