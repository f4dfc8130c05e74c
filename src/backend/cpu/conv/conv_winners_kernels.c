/*
 * Gradients of winners, written once for every instruction set (isa.h). Vectors have 8 floats in
 * each of them: a row of a window of 5 pixels of up to 8 channels fills five of these, but only two
 * and a half of 16, and they begin at whole lines' halves.
 */
#include "backend/cpu/conv/conv_winners.h"
#include "backend/cpu/conv/conv_winners_list_body.h"
#include "backend/cpu/lanes.h"

#include <string.h>

enum { EIGHT = TDMI_WINNERS_LANES, MAX_ROWS = 5, MAX_VECTORS = 5 };

#if defined(__AVX2__) && defined(__FMA__)

typedef __m256 eights;

LANES_INLINE eights eights_all(float value)
{
    return _mm256_set1_ps(value);
}
LANES_INLINE eights eights_load(const float *from)
{
    return _mm256_loadu_ps(from);
}
LANES_INLINE void eights_store(float *to, eights a)
{
    _mm256_storeu_ps(to, a);
}
LANES_INLINE eights eights_add(eights a, eights b)
{
    return _mm256_add_ps(a, b);
}
LANES_INLINE eights eights_multiply_add(eights a, eights b, eights c)
{
    return _mm256_fmadd_ps(a, b, c);
}

#else

/* Vectors of 32 bytes that the processor has not are passed in ways that differ by compiler. */
typedef struct {
    lanes low, high;
} eights;

LANES_INLINE eights eights_all(float value)
{
    return (eights){lanes_all(value), lanes_all(value)};
}
LANES_INLINE eights eights_load(const float *from)
{
    return (eights){lanes_load(from), lanes_load(from + LANES)};
}
LANES_INLINE void eights_store(float *to, eights a)
{
    lanes_store(to, a.low);
    lanes_store(to + LANES, a.high);
}
LANES_INLINE eights eights_add(eights a, eights b)
{
    return (eights){lanes_add(a.low, b.low), lanes_add(a.high, b.high)};
}
LANES_INLINE eights eights_multiply_add(eights a, eights b, eights c)
{
    return (eights){lanes_multiply_add(a.low, b.low, c.low),
                    lanes_multiply_add(a.high, b.high, c.high)};
}

_Static_assert(2 * LANES == EIGHT, "two of the plain vectors");

#endif

/* One picture. */
struct winners_walk {
    const struct tdmi_conv_thin *desc;
    const struct tdmi_winners_frame *frame;
    int64_t row; /* of the frame, floats */
};

/* ---- products ------------------------------------------------------------------------------- */

/* Some rows of the windows of one winner. */
LANES_INLINE void add_window(const float *from, int64_t row, const eights by,
                             eights sum[MAX_ROWS][MAX_VECTORS], const int rows, const int vectors)
{
    UNROLL(8)
    for (int r = 0; r < rows; r++, from += row) {
        EACH_OF (v, vectors)
            sum[r][v] = eights_multiply_add(eights_load(from + v * EIGHT), by, sum[r][v]);
    }
}

/* The weights' gradient of one output channel: rows of its windows from first on. Few sums would
 * wait for themselves, so they are two each, of every other winner. */
LANES_INLINE void add_outer(const struct winners_walk *it, int k, int first, const int rows,
                            const int vectors)
{
    const struct tdmi_winners_frame *frame = it->frame;
    const int32_t *at = frame->at + k * frame->length;
    const float *g = frame->g + k * frame->length;
    const int n = frame->counts[k], ways = rows * vectors < 8 ? 2 : 1;
    const int64_t row = it->row;
    const float *x = frame->x + first * row;
    float *to = frame->sums + k * frame->channel + (int64_t)first * vectors * EIGHT;
    eights sum[2][MAX_ROWS][MAX_VECTORS], bias[2] = {eights_all(0.0f), eights_all(0.0f)};
    int i = 0;
    EACH_PAIR (r, rows, v, vectors)
        sum[0][r][v] = sum[1][r][v] = eights_all(0.0f);
    for (; i + ways <= n; i += ways) {
        EACH_OF (w, ways) {
            const eights by = eights_all(g[i + w]);
            add_window(x + at[i + w], row, by, sum[w], rows, vectors);
            bias[w] = eights_add(bias[w], by);
        }
    }
    if (i < n) {
        const eights by = eights_all(g[i]);
        add_window(x + at[i], row, by, sum[0], rows, vectors);
        bias[0] = eights_add(bias[0], by);
    }
    EACH_OF (r, rows) {
        UNROLL(8)
        for (int v = 0; v < vectors; v++, to += EIGHT) {
            const eights both = ways > 1 ? eights_add(sum[0][r][v], sum[1][r][v]) : sum[0][r][v];
            eights_store(to, eights_add(eights_load(to), both));
        }
    }
    if (first == 0)
        eights_store(frame->bias + k * EIGHT, eights_add(eights_load(frame->bias + k * EIGHT),
                                                         eights_add(bias[0], bias[1])));
}

/* Add the contribution of one output channel to the frame of dx. */
LANES_INLINE void add_inner(const struct winners_walk *it, int k, const float *packed,
                            const int rows, const int vectors)
{
    const struct tdmi_winners_frame *frame = it->frame;
    const int32_t *at = frame->at + k * frame->length;
    const float *g = frame->g + k * frame->length;
    const int n = frame->counts[k];
    const int64_t row = it->row;
    eights weights[MAX_ROWS][MAX_VECTORS];
    packed += k * frame->channel;
    EACH_OF (r, rows) {
        UNROLL(8)
        for (int v = 0; v < vectors; v++, packed += EIGHT)
            weights[r][v] = eights_load(packed);
    }
    for (int i = 0; i < n; i++) {
        float *to = frame->dx + at[i];
        const eights by = eights_all(g[i]);
        UNROLL(8)
        for (int r = 0; r < rows; r++, to += row) {
            EACH_OF (v, vectors)
                eights_store(to + v * EIGHT,
                             eights_multiply_add(weights[r][v], by, eights_load(to + v * EIGHT)));
        }
    }
}

/* As many sums as there are registers for. */
#if defined(__AVX512F__)
#define OUTER_5_5(it, k) add_outer(it, k, 0, 5, 5)
#else
#define OUTER_5_5(it, k)       \
    add_outer(it, k, 0, 2, 5); \
    add_outer(it, k, 2, 2, 5); \
    add_outer(it, k, 4, 1, 5)
#endif

/* Rows and vectors of windows, but for the largest, 5 and 5. */
#define EACH_KIND(X) \
    X(3, 1)          \
    X(3, 2)          \
    X(3, 3)          \
    X(5, 1)          \
    X(5, 2)          \
    X(5, 3)

static void add_outers(const struct winners_walk *it)
{
    for (int k = 0; k < it->desc->out; k++) {
        switch (10 * it->desc->kernel + it->frame->vectors) {
#define X(rows, vectors)                    \
    case 10 * (rows) + (vectors):           \
        add_outer(it, k, 0, rows, vectors); \
        break;
            EACH_KIND(X)
#undef X
        default:
            OUTER_5_5(it, k);
        }
    }
}

static void add_inners(const struct winners_walk *it, const float *packed)
{
    for (int k = 0; k < it->desc->out; k++) {
        switch (10 * it->desc->kernel + it->frame->vectors) {
#define X(rows, vectors)                         \
    case 10 * (rows) + (vectors):                \
        add_inner(it, k, packed, rows, vectors); \
        break;
            EACH_KIND(X)
#undef X
        default:
            add_inner(it, k, packed, 5, 5);
        }
    }
}

/* ---- frames --------------------------------------------------------------------------------- */

static float *inside(const struct tdmi_conv_thin *desc, const struct tdmi_winners_frame *frame,
                     float *values, int row)
{
    return values +
           ((int64_t)(row + desc->top) * frame->columns + desc->left) * (int64_t)frame->pixel;
}

/* The picture in its frame, whose border is zero. A pixel may carry what belongs to its neighbour
 * in channels that it does not have: no weight is there. */
static void fill_frame(const struct tdmi_conv_thin *desc, const struct tdmi_winners_frame *frame,
                       const float *x)
{
    const int in = desc->in, pixel = frame->pixel;
    for (int row = 0; row < desc->h; row++, x += desc->w * in) {
        float *to = inside(desc, frame, frame->x, row);
        if (pixel == in) {
            memcpy(to, x, sizeof *to * (size_t)(desc->w * in));
            continue;
        }
        int column = 0;
        for (; pixel == EIGHT && column + 1 < desc->w; column++)
            eights_store(to + column * EIGHT, eights_load(x + column * in));
        for (; column < desc->w; column++)
            for (int c = 0; c < in; c++)
                to[column * pixel + c] = x[column * in + c];
    }
}

static void empty_frame(const struct tdmi_conv_thin *desc, const struct tdmi_winners_frame *frame,
                        float *dx)
{
    const int in = desc->in, pixel = frame->pixel;
    for (int row = 0; row < desc->h; row++, dx += desc->w * in) {
        const float *from = inside(desc, frame, frame->dx, row);
        if (pixel == in) {
            memcpy(dx, from, sizeof *dx * (size_t)(desc->w * in));
            continue;
        }
        int column = 0; /* the next pixel overwrites what a vector has too many */
        for (; pixel == EIGHT && column + 1 < desc->w; column++)
            eights_store(dx + column * in, eights_load(from + column * EIGHT));
        for (; column < desc->w; column++)
            for (int c = 0; c < in; c++)
                dx[column * in + c] = from[column * pixel + c];
    }
}

/* ---- one call ------------------------------------------------------------------------------- */

static void write_sums(const struct tdmi_conv_thin *desc, const struct tdmi_winners_frame *frame,
                       const struct tdmi_conv_backward *call)
{
    const int64_t row = (int64_t)frame->vectors * EIGHT;
    float *to = call->dweights;
    for (int tap = 0; to && tap < desc->kernel * desc->kernel; tap++)
        for (int i = 0; i < desc->in; i++)
            for (int k = 0; k < desc->out; k++)
                *to++ = frame->sums[k * frame->channel + tap / desc->kernel * row +
                                    tap % desc->kernel * frame->pixel + i];
    for (int k = 0; call->dbias && k < desc->out; k++)
        call->dbias[k] = frame->bias[k * EIGHT];
}

static void backward(const struct tdmi_conv_thin *desc, const struct tdmi_conv_backward *call,
                     const uint8_t *winners)
{
    const struct tdmi_winners_frame frame = tdmi_conv_winners_frame(desc, call->workspace);
    const int64_t in = (int64_t)desc->h * desc->w * desc->in;
    const int64_t pooled = (int64_t)frame.pooled_h * frame.pooled_w * desc->out;
    const struct winners_walk it = {desc, &frame, (int64_t)frame.columns * frame.pixel};
    find_starts(desc, &frame);
    memset(frame.x, 0, sizeof(float) * (size_t)frame.values);
    memset(frame.sums, 0, sizeof(float) * (size_t)(desc->out * frame.channel));
    memset(frame.bias, 0, sizeof(float) * (size_t)desc->out * EIGHT);
    for (int i = 0; i < call->n; i++) {
        fill_frame(desc, &frame, call->x + i * in);
        list_winners(desc, &frame, call->g + i * pooled, winners + i * pooled);
        add_outers(&it);
        if (!call->dx || !desc->wants_dx)
            continue;
        memset(frame.dx, 0, sizeof(float) * (size_t)frame.values);
        add_inners(&it, call->packed);
        empty_frame(desc, &frame, call->dx + i * in);
    }
    write_sums(desc, &frame, call);
}

const struct tdmi_conv_winners_kernels TDMI_THIS_ISA(tdmi_conv_winners) = {.backward = backward};
