/*
 * Thin convolutions, written once for every instruction set (isa.h). Everything between the two
 * turns is vectors of pictures: a value of the frame times one weight for all of them.
 */
#include "backend/cpu/conv/conv_thin.h"
#include "backend/cpu/conv/conv_thin_pool_body.h"
#include "backend/cpu/transpose.h"

#include <string.h>

/* Pixels of a block of results, taps of a block of weights: with so many channels of each, as many
 * sums as there are registers for. */
enum { MAX_WIDE = 6, MAX_TALL = 7 };

/* ---- frames -----------------------------------------------------------------------------------
 */

/* Pixels in a row of the frame before and after those of the picture. */
static void fill_frame(const struct tdmi_thin_walk *walk, const float *pictures, int n,
                       float *frame)
{
    const int64_t picture = (int64_t)walk->h * walk->w * walk->in;
    const int values = walk->w * walk->in;
    const size_t before = (size_t)walk->left * (size_t)walk->in * LANES;
    const size_t after = (size_t)(walk->frame_w - walk->left - walk->w) * (size_t)walk->in * LANES;
    for (int row = 0; row < walk->h; row++) {
        memset(frame, 0, before * sizeof *frame);
        frame += before;
        transpose_in(pictures + (int64_t)row * values, picture, n, values, frame);
        frame += (size_t)values * LANES;
        memset(frame, 0, after * sizeof *frame);
        frame += after;
    }
}

/* ---- correlation ------------------------------------------------------------------------------
 */

/* Rows or columns of the window, first to end. */
struct range {
    int first, end;
};

/* Window taps that the results at to at + count - 1 see in the image. */
static struct range meeting(int at, int count, int pad, int kernel, int size)
{
    int first = pad - (at + count - 1), end = size + pad - at;
    return (struct range){first > 0 ? first : 0, end < kernel ? end : kernel};
}

/* tall results side by side, wide channels of each. */
LANES_INLINE void correlate_block(const struct tdmi_thin_walk *walk, const float *frame, int row,
                                  int column, const float *packed, const float *bias, float *to,
                                  const int tall, const int wide)
{
    const struct range rows = meeting(row, 1, walk->top, walk->kernel, walk->h);
    const struct range columns = meeting(column, tall, walk->left, walk->kernel, walk->w);
    const int64_t pixel = (int64_t)walk->in * LANES;
    const int depth = (columns.end - columns.first) * walk->in;
    lanes sums[MAX_TALL][MAX_WIDE];
    EACH_PAIR (i, tall, k, wide)
        sums[i][k] = lanes_all(bias ? bias[k] : 0.0f);
    for (int y = rows.first; y < rows.end; y++) {
        const float *at =
            frame +
            ((int64_t)(row + y - walk->top) * walk->frame_w + column + columns.first) * pixel;
        const float *by = packed + (int64_t)(y * walk->kernel + columns.first) * walk->in * wide;
        for (int d = 0; d < depth; d++, at += LANES, by += wide) {
            lanes left[MAX_TALL];
            EACH_OF (i, tall)
                left[i] = lanes_load(at + i * pixel);
            EACH_OF (k, wide) {
                lanes weight = lanes_all(by[k]);
                EACH_OF (i, tall)
                    sums[i][k] = lanes_multiply_add(left[i], weight, sums[i][k]);
            }
        }
    }
    EACH_PAIR (i, tall, k, wide)
        lanes_store(to + ((int64_t)i * walk->out + k) * LANES, sums[i][k]);
}

/* One row of results, wide channels. The last block of a row begins early: what it makes again are
 * the same bits, of finite numbers. */
LANES_INLINE void correlate_row(const struct tdmi_thin_walk *walk, const float *frame, int row,
                                const float *packed, const float *bias, float *to, const int tall,
                                const int wide)
{
    for (int column = 0; column < walk->out_w; column += tall) {
        if (walk->out_w < tall) {
            for (int i = 0; i < walk->out_w; i++)
                correlate_block(walk, frame, row, i, packed, bias,
                                to + (int64_t)i * walk->out * LANES, 1, wide);
            return;
        }
        int at = column + tall <= walk->out_w ? column : walk->out_w - tall;
        correlate_block(walk, frame, row, at, packed, bias, to + (int64_t)at * walk->out * LANES,
                        tall, wide);
    }
}

#if defined(__AVX512F__)
enum { TALL_6 = 2, TALL_4 = 5, TALL_3 = 7, TALL_2 = 7, TALL_1 = 7 };
#else
enum { TALL_6 = 2, TALL_4 = 2, TALL_3 = 3, TALL_2 = 4, TALL_1 = 7 };
#endif

static void correlate(const struct tdmi_thin_walk *walk, const float *frame, int row,
                      const float *packed, const float *bias, float *to)
{
    const int64_t weights = (int64_t)walk->kernel * walk->kernel * walk->in * walk->wide;
    for (int k = 0; k < walk->out; k += walk->wide, packed += weights, to += walk->wide * LANES) {
        const float *own = bias ? bias + k : NULL;
        switch (walk->wide) {
#define X(channels)                                                                  \
    case channels:                                                                   \
        correlate_row(walk, frame, row, packed, own, to, TALL_##channels, channels); \
        break;
            X(6)
            X(4)
            X(3)
            X(2)
            X(1)
#undef X
        }
    }
}

/* All rows, back to pictures. */
static void correlate_pictures(const struct tdmi_thin_walk *walk, const float *frame,
                               const float *packed, const float *bias, float *row_memory,
                               float *pictures, int n)
{
    const int values = walk->out_w * walk->out;
    for (int row = 0; row < walk->out_h; row++) {
        correlate(walk, frame, row, packed, bias, row_memory);
        transpose_out(row_memory, values, pictures + (int64_t)row * values,
                      (int64_t)walk->out_h * values, n);
    }
}

/* As many rows as the pool takes, then what it makes of them. */
static void correlate_and_pool(const struct tdmi_conv_thin *desc,
                               const struct tdmi_conv_forward *call,
                               const struct tdmi_thin_scratch *scratch, int first, int n,
                               uint8_t *winners)
{
    const struct tdmi_thin_walk walk = tdmi_conv_thin_walk(desc, TDMI_CONV_FORWARD);
    const int values = desc->out_w / desc->pool * desc->out, rows = desc->out_h / desc->pool;
    const int64_t picture = (int64_t)rows * values;
    float *numbers = scratch->pooled + (int64_t)values * LANES;
    for (int row = 0; row < rows; row++) {
        const int64_t at = first * picture + (int64_t)row * values;
        for (int r = 0; r < desc->pool; r++)
            correlate(&walk, scratch->x, row * desc->pool + r, call->packed, call->bias,
                      scratch->row + (int64_t)r * desc->out_w * desc->out * LANES);
        pool_rows(desc, scratch->row, scratch->pooled, numbers);
        transpose_out(scratch->pooled, values, call->y + at, picture, n);
        transpose_out_bytes(numbers, values, winners + at, picture, n);
    }
}

static void forward(const struct tdmi_conv_thin *desc, const struct tdmi_conv_forward *call,
                    uint8_t *winners)
{
    const struct tdmi_thin_walk walk = tdmi_conv_thin_walk(desc, TDMI_CONV_FORWARD);
    const struct tdmi_thin_scratch scratch = tdmi_conv_thin_scratch(desc, call->workspace);
    for (int i = 0; i < call->n; i += LANES) {
        int n = call->n - i < LANES ? call->n - i : LANES;
        fill_frame(&walk, call->x + (int64_t)i * walk.h * walk.w * walk.in, n, scratch.x);
        if (desc->pool)
            correlate_and_pool(desc, call, &scratch, i, n, winners);
        else
            correlate_pictures(&walk, scratch.x, call->packed, call->bias, scratch.row,
                               call->y + (int64_t)i * walk.out_h * walk.out_w * walk.out, n);
    }
}

/* ---- gradient of the weights ------------------------------------------------------------------
 */

/* Some rows of dy and the frame of x. */
struct stretch {
    const struct tdmi_thin_walk *walk; /* forward */
    const float *x, *dy;
    int first, rows;          /* of dy */
    int64_t dy_row, dy_pixel; /* floats */
};

/* sums += for tall values of a window's row times wide channels of dy, over all pixels whose window
 * row y meets the picture. */
LANES_INLINE void outer_block(const struct stretch *it, int y, int d, int k, float *sums,
                              const int tall, const int wide)
{
    const struct tdmi_thin_walk *walk = it->walk;
    const int64_t pixel = (int64_t)walk->in * LANES, row_sums = (int64_t)walk->out * LANES;
    lanes sum[MAX_TALL][MAX_WIDE];
    EACH_PAIR (i, tall, j, wide)
        sum[i][j] = lanes_load(sums + i * row_sums + j * LANES);
    for (int r = it->first; r < it->first + it->rows; r++) {
        const int from = r + y - walk->top;
        if (from < 0 || from >= walk->h)
            continue;
        const float *x = it->x + (int64_t)from * walk->frame_w * pixel + (int64_t)d * LANES;
        const float *dy = it->dy + (r - it->first) * it->dy_row + (int64_t)k * LANES;
        for (int o = 0; o < walk->out_w; o++, x += pixel, dy += it->dy_pixel) {
            lanes right[MAX_WIDE];
            EACH_OF (j, wide)
                right[j] = lanes_load(dy + j * LANES);
            EACH_OF (i, tall) {
                lanes left = lanes_load(x + i * LANES);
                EACH_OF (j, wide)
                    sum[i][j] = lanes_multiply_add(left, right[j], sum[i][j]);
            }
        }
    }
    EACH_PAIR (i, tall, j, wide)
        lanes_store(sums + i * row_sums + j * LANES, sum[i][j]);
}

/* One row of the window. */
LANES_INLINE void outer_row(const struct stretch *it, int y, float *sums, const int tall,
                            const int wide)
{
    const struct tdmi_thin_walk *walk = it->walk;
    const int depth = walk->kernel * walk->in;
    sums += (int64_t)y * depth * walk->out * LANES;
    int d = 0;
    for (; d + tall <= depth; d += tall)
        for (int k = 0; k < walk->out; k += wide)
            outer_block(it, y, d, k, sums + ((int64_t)d * walk->out + k) * LANES, tall, wide);
    for (; d < depth; d++)
        for (int k = 0; k < walk->out; k += wide)
            outer_block(it, y, d, k, sums + ((int64_t)d * walk->out + k) * LANES, 1, wide);
}

static void outer(const struct stretch *it, float *sums)
{
    for (int y = 0; y < it->walk->kernel; y++) {
        if (it->walk->out % 4 == 0)
            outer_row(it, y, sums, TALL_4, 4);
        else if (it->walk->out % 3 == 0)
            outer_row(it, y, sums, TALL_4, 3);
        else if (it->walk->out % 2 == 0)
            outer_row(it, y, sums, TALL_2, 2);
        else
            outer_row(it, y, sums, TALL_1, 1);
    }
}

static void add_bias(const struct stretch *it, float *sums)
{
    for (int r = 0; r < it->rows; r++)
        for (int o = 0; o < it->walk->out_w; o++)
            for (int k = 0; k < it->walk->out; k++) {
                float *sum = sums + (int64_t)k * LANES;
                lanes_store(sum, lanes_add(lanes_load(sum),
                                           lanes_load(it->dy + r * it->dy_row + o * it->dy_pixel +
                                                      (int64_t)k * LANES)));
            }
}

/* The lanes of each of n vectors, added up in a tree. */
static void add_lanes(float *sums, int n, float *to)
{
    for (int at = 0; at < n; at += LANES) {
        int count = n - at < LANES ? n - at : LANES;
        lanes rows[LANES];
        for (int i = 0; i < LANES; i++)
            rows[i] = i < count ? lanes_load(sums + (int64_t)(at + i) * LANES) : lanes_all(0.0f);
        lanes_transpose(rows);
        for (int step = LANES / 2; step > 0; step /= 2)
            for (int i = 0; i < step; i++)
                rows[i] = lanes_add(rows[i], rows[i + step]);
        lanes_store_part(to + at, rows[0], count);
    }
}

/* ---- backward ---------------------------------------------------------------------------------
 */

/* Rows of dy into scratch memory where no frame of it is needed. */
static void transpose_rows(const struct tdmi_thin_walk *walk, const float *dy, int n, int first,
                           int rows, float *to)
{
    const int values = walk->out_w * walk->out;
    transpose_in(dy + (int64_t)first * values, (int64_t)walk->out_h * values, n, rows * values, to);
}

/* Some pictures, as many as there are lanes or fewer: frames, and the weights' sums. */
static void backward_pictures(const struct tdmi_conv_thin *desc, const float *x, const float *g,
                              int n, const struct tdmi_thin_scratch *scratch)
{
    const struct tdmi_thin_walk walk = tdmi_conv_thin_walk(desc, TDMI_CONV_FORWARD);
    const struct tdmi_thin_walk back = tdmi_conv_thin_walk(desc, TDMI_CONV_BACKWARD);
    const int step = tdmi_conv_thin_rows(desc);
    const int64_t weights = (int64_t)walk.kernel * walk.kernel * walk.in * walk.out;
    struct stretch it = {.walk = &walk, .x = scratch->x, .dy = scratch->dy};
    it.dy_pixel = (int64_t)walk.out * LANES;
    it.dy_row = (desc->wants_dx ? back.frame_w : walk.out_w) * it.dy_pixel;
    fill_frame(&walk, x, n, scratch->x);
    if (desc->wants_dx)
        fill_frame(&back, g, n, scratch->dy);
    for (it.first = 0; it.first < walk.out_h; it.first += step) {
        it.rows = walk.out_h - it.first < step ? walk.out_h - it.first : step;
        if (desc->wants_dx)
            it.dy = scratch->dy + it.first * it.dy_row + back.left * it.dy_pixel;
        else
            transpose_rows(&walk, g, n, it.first, it.rows, scratch->dy);
        outer(&it, scratch->sums);
        add_bias(&it, scratch->sums + weights * LANES);
    }
}

static void backward(const struct tdmi_conv_thin *desc, const struct tdmi_conv_backward *call)
{
    const struct tdmi_thin_walk back = tdmi_conv_thin_walk(desc, TDMI_CONV_BACKWARD);
    const struct tdmi_thin_scratch scratch = tdmi_conv_thin_scratch(desc, call->workspace);
    const int64_t in = (int64_t)desc->h * desc->w * desc->in;
    const int64_t out = (int64_t)desc->out_h * desc->out_w * desc->out;
    const int weights = desc->kernel * desc->kernel * desc->in * desc->out;
    memset(scratch.sums, 0, sizeof(float) * (size_t)(weights + desc->out) * LANES);
    for (int i = 0; i < call->n; i += LANES) {
        int n = call->n - i < LANES ? call->n - i : LANES;
        backward_pictures(desc, call->x + i * in, call->g + i * out, n, &scratch);
        if (call->dx && desc->wants_dx)
            correlate_pictures(&back, scratch.dy, call->packed, NULL, scratch.row,
                               call->dx + i * in, n);
    }
    if (call->dweights)
        add_lanes(scratch.sums, weights, call->dweights);
    if (call->dbias)
        add_lanes(scratch.sums + (int64_t)weights * LANES, desc->out, call->dbias);
}

const struct tdmi_conv_thin_kernels TDMI_THIS_ISA(tdmi_conv_thin) = {
    .lanes = LANES, .forward = forward, .backward = backward};
