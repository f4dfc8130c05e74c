/*
 * Inside kernels (isa.h) of passes over whole tensors: vectors of channels that come in through a
 * form, and gradients as they are stored: masked, added to another, and summed for the batch
 * norm below. Sums are f32 for a stretch of pixels and double across stretches.
 */
#pragma once

#include "backend/cpu/access.h"
#include "backend/cpu/pieces.h"

#include <stddef.h>
#include <string.h>

enum {
    SLAB = 1024,            /* channels that are worked on at a time */
    STRETCH = TDMI_STRETCH, /* pixels whose sums are f32 */
    STREAM_BYTES = 1 << 20
};

/* Load part of a vector of channels. */
LANES_INLINE lanes get_channels(const float *from, const enum access access, int n)
{
    return access == ACCESS_PART || access == ACCESS_OVER ? lanes_load_part(from, n)
                                                          : lanes_load(from);
}

static bool may_stream(const float *to, int64_t pixels, int channels)
{
    return CAN_STREAM && pixels * channels * (int64_t)sizeof(float) >= STREAM_BYTES &&
           (uintptr_t)to % 64 == 0 && channels % 16 == 0;
}

/* z = scale · x + shift of channels from c on */
LANES_INLINE lanes apply(const struct tdmi_read_form *form, lanes x, int c,
                         const enum access access, int n)
{
    if (!form->scale)
        return x;
    return lanes_multiply_add(x, get_channels(form->scale + c, access, n),
                              get_channels(form->shift + c, access, n));
}

/* ---- a gradient as it is stored ----------------------------------------------------------------
 */

/* f32 sums of a stretch, of one slab. */
struct slab {
    float sum[SLAB], product[SLAB];
};

struct gradient_output {
    const float *x;
    struct tdmi_read_form form;
    struct lanes_range range;
    float *dx;
    const float *add;
    struct tdmi_backward_sums sums;
    struct slab *slab; /* NULL: no sums */
    float *pieces;     /* of all stretches; NULL: one thread adds them up at once */
    int channels;      /* of a piece */
    int first;         /* channel of the slab */
};

LANES_INLINE void store_gradient(const struct gradient_output *to, int64_t at, int c, lanes g,
                                 const enum access access, int n)
{
    lanes x = to->x ? get(to->x + at, access, n) : lanes_all(0.0f);
    if (to->form.act != TDMI_ACT_NONE)
        g = lanes_between(g, apply(&to->form, x, c, access, n), to->range.low, to->range.high);
    if (to->add)
        g = lanes_add(g, get(to->add + at, access, n));
    put(to->dx + at, g, access, n);
    if (!to->slab)
        return;
    float *sum = to->slab->sum + c - to->first, *product = to->slab->product + c - to->first;
    lanes off = to->sums.centre ? lanes_sub(x, get_channels(to->sums.centre + c, access, n)) : x;
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

/* A stretch's sums to the call's, or to its piece. */
static void end_stretch(const struct gradient_output *to, int end, int64_t stretch)
{
    if (to->slab && to->pieces) {
        const int64_t row = tdmi_pieces_columns(to->channels);
        float *piece = to->pieces + 2 * stretch * row + to->first;
        memcpy(piece, to->slab->sum, sizeof(float) * (size_t)(end - to->first));
        memcpy(piece + row, to->slab->product, sizeof(float) * (size_t)(end - to->first));
        return;
    }
    for (int c = to->first; to->slab && c < end; c++) {
        to->sums.sum[c] += (double)to->slab->sum[c - to->first];
        to->sums.product[c] += (double)to->slab->product[c - to->first];
    }
}
