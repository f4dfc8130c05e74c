/*
 * Passes over whole tensors, written once for every instruction set (isa.h). Pixels one after the
 * other, each in blocks of channels; vectors of channels stay in the first cache. Sums are taken in
 * f32 for a stretch of pixels, in double across stretches, always cut at the same places.
 */
#include "backend/cpu/pointwise/elementwise.h"
#include "backend/cpu/gradient_output.h"

/* ---- sum and activation ---------------------------------------------------------------------- */

struct combine_ranges {
    struct lanes_range in[2], out;
};

LANES_INLINE void combine_block(const struct tdmi_combine *call, const struct combine_ranges *range,
                                int64_t at, int c, const enum access access, int n)
{
    lanes y = apply(&call->form[0], get(call->x[0] + at, access, n), c, access, n);
    y = lanes_clamp(y, range->in[0].low, range->in[0].high);
    if (call->x[1]) {
        lanes v = apply(&call->form[1], get(call->x[1] + at, access, n), c, access, n);
        y = lanes_add(y, lanes_clamp(v, range->in[1].low, range->in[1].high));
    }
    put(call->y + at, lanes_clamp(y, range->out.low, range->out.high), access, n);
}

LANES_INLINE void combine_all(const struct tdmi_combine *call, const enum access access)
{
    const struct combine_ranges range = {{range_of(call->form[0].act), range_of(call->form[1].act)},
                                         range_of(call->act)};
    int whole = call->channels / LANES * LANES;
    for (int64_t p = 0, at = 0; p < call->pixels; p++, at += call->channels) {
        for (int c = 0; c < whole; c += LANES)
            combine_block(call, &range, at + c, c, access, LANES);
        if (whole < call->channels)
            combine_block(call, &range, at + whole, whole, ACCESS_PART, call->channels - whole);
    }
}

static void combine(const struct tdmi_combine *call)
{
    if (may_stream(call->y, call->pixels, call->channels)) {
        combine_all(call, ACCESS_STREAM);
        lanes_fence();
    } else {
        combine_all(call, ACCESS_WHOLE);
    }
}

/* ---- gradient of an operand -------------------------------------------------------------------
 */

LANES_INLINE void combine_backward_block(const struct tdmi_combine_gradient *call,
                                         const struct gradient_output *to,
                                         const struct lanes_range *gate, const float *dy,
                                         lanes part, int64_t at, int c, const enum access access,
                                         int n, const bool is_pool)
{
    lanes g = is_pool ? get_channels(dy + c, access, n) : get(dy + at, access, n);
    if (is_pool)
        g = lanes_multiply(g, part);
    else if (call->act != TDMI_ACT_NONE)
        g = lanes_between(g, get(call->y + at, access, n), gate->low, gate->high);
    store_gradient(to, at, c, g, access, n);
}

/* Channels first to end of a stretch of pixels of one image. */
LANES_INLINE void combine_backward_stretch(const struct tdmi_combine_gradient *call,
                                           const struct gradient_output *to, int64_t image,
                                           int64_t pixel, int64_t end_pixel, int end,
                                           int64_t stretch, const enum access access,
                                           const bool is_pool)
{
    const struct lanes_range gate = range_of(call->act);
    const lanes part = lanes_all(1.0f / (float)call->pixels);
    const float *dy = is_pool ? call->dy + image * call->channels : call->dy;
    int whole = to->first + (end - to->first) / LANES * LANES;
    if (to->slab)
        memset(to->slab, 0, sizeof *to->slab);
    for (; pixel < end_pixel; pixel++) {
        int64_t at = (image * call->pixels + pixel) * call->channels;
        for (int c = to->first; c < whole; c += LANES)
            combine_backward_block(call, to, &gate, dy, part, at + c, c, access, LANES, is_pool);
        if (whole < end)
            combine_backward_block(call, to, &gate, dy, part, at + whole, whole, ACCESS_PART,
                                   end - whole, is_pool);
    }
    end_stretch(to, end, stretch);
}

LANES_INLINE void combine_backward_as(const struct tdmi_combine_gradient *call, const bool is_pool)
{
    struct slab slab;
    const bool streams = may_stream(call->dx, call->n * call->pixels, call->channels);
    const int64_t all = tdmi_combine_stretches(call->n, call->pixels), of_image = all / call->n;
    const int64_t last = call->stretches.end ? call->stretches.end : all;
    struct gradient_output to = {.x = call->x,
                                 .form = call->form,
                                 .range = range_of(call->form.act),
                                 .dx = call->dx,
                                 .add = call->add,
                                 .sums = call->sums,
                                 .slab = call->sums.sum ? &slab : NULL,
                                 .pieces = call->pieces,
                                 .channels = call->channels};
    if (!call->pieces)
        start_sums(&call->sums, call->channels);
    for (; to.first < call->channels; to.first += SLAB) {
        int end = call->channels - to.first < SLAB ? call->channels : to.first + SLAB;
        for (int64_t s = call->stretches.first; s < last; s++) {
            const int64_t p = s % of_image * STRETCH;
            const int64_t end_pixel = call->pixels - p < STRETCH ? call->pixels : p + STRETCH;
            if (streams)
                combine_backward_stretch(call, &to, s / of_image, p, end_pixel, end, s,
                                         ACCESS_STREAM, is_pool);
            else
                combine_backward_stretch(call, &to, s / of_image, p, end_pixel, end, s,
                                         ACCESS_WHOLE, is_pool);
        }
    }
    if (streams)
        lanes_fence();
}

static void combine_backward(const struct tdmi_combine_gradient *call)
{
    if (call->is_pool)
        combine_backward_as(call, true);
    else
        combine_backward_as(call, false);
}

/* ---- global pooling ---------------------------------------------------------------------------
 */

LANES_INLINE void pool_block(const struct tdmi_global_pool *call, const struct lanes_range *range,
                             const float *x, int c, float *sum, const enum access access, int n)
{
    lanes v = apply(&call->form, get(x + c, access, n), c, access, n);
    v = lanes_clamp(v, range->low, range->high);
    lanes_store(sum, lanes_add(lanes_load(sum), v));
}

/* Channels first to end of a picture; sums of stretches are added up in double. */
static void pool_slab(const struct tdmi_global_pool *call, const float *x, int first, int end,
                      float *y)
{
    const struct lanes_range range = range_of(call->form.act);
    int whole = first + (end - first) / LANES * LANES;
    float sum[SLAB];
    double total[SLAB] = {0};
    for (int64_t p = 0; p < call->pixels; p += STRETCH) {
        int64_t end_pixel = call->pixels - p < STRETCH ? call->pixels : p + STRETCH;
        memset(sum, 0, sizeof sum);
        for (int64_t pixel = p; pixel < end_pixel; pixel++) {
            const float *at = x + pixel * call->channels;
            for (int c = first; c < whole; c += LANES)
                pool_block(call, &range, at, c, sum + c - first, ACCESS_WHOLE, LANES);
            if (whole < end)
                pool_block(call, &range, at, whole, sum + whole - first, ACCESS_PART, end - whole);
        }
        for (int c = 0; c < end - first; c++)
            total[c] += (double)sum[c];
    }
    for (int c = first; c < end; c++)
        y[c] = (float)(total[c - first] / (double)call->pixels);
}

static void global_pool(const struct tdmi_global_pool *call)
{
    for (int i = 0; i < call->n; i++)
        for (int first = 0; first < call->channels; first += SLAB)
            pool_slab(call, call->x + i * call->pixels * call->channels, first,
                      call->channels - first < SLAB ? call->channels : first + SLAB,
                      call->y + (int64_t)i * call->channels);
}

const struct tdmi_elementwise_kernels TDMI_THIS_ISA(tdmi_elementwise) = {
    .combine = combine,
    .combine_backward = combine_backward,
    .global_pool = global_pool,
};
