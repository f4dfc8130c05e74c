/*
 * Depthwise convolution without training, windows of 3, written once for every instruction set
 * (isa.h). The input is read where it is: two rows of outputs at a time and as many columns as
 * there are registers for, so that a vector that was read serves up to six outputs. A block of
 * channels walks down a band of rows before the next one begins: its part of the band fits the
 * first cache, where the rows that two walks share are found again. Blocks of channels begin at
 * multiples of a vector; the last one ends with the last channel and computes some of its
 * neighbour's again, so that none is a part of a vector, and so does the last tile of a row. Every
 * output is the chain of additions that the ring's kernels make.
 */
#pragma once

#include "backend/cpu/depthwise/depthwise_job_body.h"

/* Each output is a chain of nine additions, so the tile is as wide as registers allow: with fewer
 * chains at work than the multipliers take steps, they wait. */
enum {
    DIRECT_KERNEL = 3,
    DIRECT_ROWS = 2,
    DIRECT_SEEN = 5, /* rows that two windows see, with a stride of 2 */
    DIRECT_TILE = LANES == 16 ? 7 : 4,
    DIRECT_SMALL = 4, /* columns of the tile for what is left of a row */
    DIRECT_BYTES = 576 << 10,
    DIRECT_BAND_BYTES = 28 << 10 /* of the input of a block of channels, in the first cache */
};

/* One block of channels; x, y, weights and bias are those of its first one. */
struct direct {
    const float *x, *weights, *bias; /* x: of the picture; bias may be NULL */
    float *y;
    int64_t x_row, y_row; /* floats from one to the next */
    int64_t channels;
    struct tdmi_depthwise_slots slots;
    /* Input rows that the windows of the current output rows see, each from where the window of
     * column 0 begins, even in the padding; first_row to end_row are in the image. */
    const float *rows[DIRECT_SEEN];
    float *line;
    int first_row, end_row;
    bool streams;
    struct lanes_range read, range;
    struct ahead ahead;
};

/* Values that all tiles of a walk keep in registers: a store could alias `it`. */
struct direct_block {
    lanes weights[DIRECT_KERNEL * DIRECT_KERNEL], bias;
    struct lanes_range range;
};

LANES_INLINE void direct_put(lanes sums[DIRECT_ROWS][DIRECT_TILE], float *y, int64_t y_row,
                             int64_t channels, const struct lanes_range range, const int tile,
                             const int rows, const enum access access)
{
    EACH_OF (r, rows) {
        EACH_OF (t, tile)
            put(y + r * y_row + t * channels, lanes_clamp(sums[r][t], range.low, range.high),
                access, LANES);
    }
}

/* Row i of those that the windows see, whose first column the tile sees at `row`; columns from
 * `first` to before `end` are in the picture. Of a wide tile only the first and the last one can be
 * outside. */
LANES_INLINE void direct_row(const struct direct *it, const struct direct_block *block,
                             const float *row, lanes sums[DIRECT_ROWS][DIRECT_TILE], const int i,
                             int first, int end, const int tile, const int rows,
                             const bool reads_act)
{
    const int seen = tile - 1 + DIRECT_KERNEL;
    EACH_OF (j, seen) {
        if (((tile == 1 || j == 0) && j < first) || ((tile == 1 || j == seen - 1) && j >= end))
            continue;
        lanes value = lanes_load(row + j * it->channels);
        if (reads_act)
            value = lanes_clamp(value, it->read.low, it->read.high);
        EACH_OF (r, rows) {
            EACH_OF (t, tile) {
                const int ky = i - r, kx = j - t;
                if (ky >= 0 && ky < DIRECT_KERNEL && kx >= 0 && kx < DIRECT_KERNEL)
                    sums[r][t] = lanes_multiply_add(value, block->weights[ky * DIRECT_KERNEL + kx],
                                                    sums[r][t]);
            }
        }
    }
}

/* The same with a stride: few values serve two outputs, so a tap at a time for all of them, which
 * keeps additions to one output apart. */
LANES_INLINE void direct_sampled_row(const struct direct *it, const struct direct_block *block,
                                     const float *row, lanes sums[DIRECT_ROWS][DIRECT_TILE],
                                     const int i, int first, int end, const int tile,
                                     const int rows, const int stride, const bool reads_act)
{
    UNROLL(3)
    for (int kx = 0; kx < DIRECT_KERNEL; kx++) {
        EACH_OF (t, tile) {
            const int j = t * stride + kx, last = (tile - 1) * stride + DIRECT_KERNEL - 1;
            if (((tile == 1 || j == 0) && j < first) || ((tile == 1 || j == last) && j >= end))
                continue;
            lanes value = lanes_load(row + j * it->channels);
            if (reads_act)
                value = lanes_clamp(value, it->read.low, it->read.high);
            EACH_OF (r, rows) {
                const int ky = i - r * stride;
                if (ky >= 0 && ky < DIRECT_KERNEL)
                    sums[r][t] = lanes_multiply_add(value, block->weights[ky * DIRECT_KERNEL + kx],
                                                    sums[r][t]);
            }
        }
    }
}

LANES_INLINE void direct_tile(struct direct *it, const struct direct_block *block, int column,
                              int first, int end, const int tile, const int rows, const int stride,
                              const bool reads_act)
{
    const int64_t channels = it->channels, x = (int64_t)column * stride * channels;
    float *y = it->line + column * channels;
    lanes sums[DIRECT_ROWS][DIRECT_TILE];
    EACH_OF (r, rows) {
        EACH_OF (t, tile)
            sums[r][t] = block->bias;
    }
    EACH_OF (i, (rows - 1) * stride + DIRECT_KERNEL) {
        if (i < it->first_row || i >= it->end_row)
            continue;
        const float *row = it->rows[i] + x;
        if (stride == 1)
            direct_row(it, block, row, sums, i, first, end, tile, rows, reads_act);
        else
            direct_sampled_row(it, block, row, sums, i, first, end, tile, rows, stride, reads_act);
    }
    if (CAN_STREAM && it->streams)
        direct_put(sums, y, it->y_row, channels, block->range, tile, rows, ACCESS_STREAM);
    else
        direct_put(sums, y, it->y_row, channels, block->range, tile, rows, ACCESS_WHOLE);
    look_ahead(&it->ahead);
}

/* Columns of the next tile, where `left` of out_w are left; it may begin before them. */
static inline int direct_columns(int left, int out_w)
{
    if (out_w < DIRECT_SMALL)
        return 1;
    return out_w < DIRECT_TILE || left <= DIRECT_SMALL ? DIRECT_SMALL : DIRECT_TILE;
}

/* Two rows of outputs, or the last one. */
LANES_INLINE void direct_line(struct direct *it, const struct direct_block *block,
                              const struct tdmi_depthwise *shape, bool is_far, const int rows,
                              const int stride, const bool reads_act)
{
    const int out_w = shape->out_w;
    for (int column = 0; column < out_w;) {
        int tile = is_far ? 1 : direct_columns(out_w - column, out_w);
        int at = column + tile <= out_w ? column : out_w - tile;
        int from = at * stride - shape->left, first = from < 0 ? -from : 0, end = shape->w - from;
        if (DIRECT_TILE != DIRECT_SMALL && tile == DIRECT_TILE)
            direct_tile(it, block, at, first, end, DIRECT_TILE, rows, stride, reads_act);
        else if (tile == DIRECT_SMALL)
            direct_tile(it, block, at, first, end, DIRECT_SMALL, rows, stride, reads_act);
        else
            direct_tile(it, block, at, first, end, 1, rows, stride, reads_act);
        column = at + tile;
    }
}

/* Rows of outputs from `row` to before `end`. */
LANES_INLINE void direct_walk(struct direct *it, const struct tdmi_depthwise *shape, int row,
                              int end, const int rows, const int stride, const bool reads_act)
{
    const int seen = (rows - 1) * stride + DIRECT_KERNEL;
    /* Padding that a wide tile cannot skip: there it is one column at a time. */
    const bool is_far =
        shape->left > 1 || (shape->out_w - 1) * stride - shape->left + DIRECT_KERNEL > shape->w + 1;
    struct direct_block block = {
        .bias = it->bias ? lanes_load(it->bias) : lanes_all(0.0f),
        .range = it->range,
    };
    for (int tap = 0; tap < DIRECT_KERNEL * DIRECT_KERNEL; tap++)
        block.weights[tap] = lanes_load(it->weights + tap * it->channels);
    for (; row < end; row += rows) {
        const int from = row * stride - shape->top;
        it->first_row = from < 0 ? -from : 0;
        it->end_row = shape->h - from < seen ? shape->h - from : seen;
        for (int i = it->first_row; i < it->end_row; i++)
            it->rows[i] =
                it->x + slot_of(&it->slots, from + i) * it->x_row - shape->left * it->channels;
        it->line = it->y + row * it->y_row;
        direct_line(it, &block, shape, is_far, rows, stride, reads_act);
    }
}

typedef void direct_function(struct direct *it, const struct tdmi_depthwise *shape, int row,
                             int end);

#define DIRECT(name, rows, stride, reads_act)                                                 \
    static void name(struct direct *it, const struct tdmi_depthwise *shape, int row, int end) \
    {                                                                                         \
        direct_walk(it, shape, row, end, rows, stride, reads_act);                            \
    }
DIRECT(direct_1_1, 1, 1, false)
DIRECT(direct_2_1, 2, 1, false)
DIRECT(direct_1_2, 1, 2, false)
DIRECT(direct_2_2, 2, 2, false)
DIRECT(direct_act_1_1, 1, 1, true)
DIRECT(direct_act_2_1, 2, 1, true)
DIRECT(direct_act_1_2, 1, 2, true)
DIRECT(direct_act_2_2, 2, 2, true)
#undef DIRECT

/* By whether an activation is read, rows, stride. */
static direct_function *const directs[2][DIRECT_ROWS][2] = {
    {{direct_1_1, direct_1_2}, {direct_2_1, direct_2_2}},
    {{direct_act_1_1, direct_act_1_2}, {direct_act_2_1, direct_act_2_2}}};

/* Rows of outputs whose windows of one block of channels stay in the first cache together. */
static int direct_band(const struct tdmi_depthwise *shape)
{
    const int64_t seen = DIRECT_BAND_BYTES / ((int64_t)sizeof(float) * LANES * shape->w);
    int64_t rows = (seen - DIRECT_KERNEL) / shape->stride + 1;
    rows = rows / DIRECT_ROWS * DIRECT_ROWS;
    return rows < DIRECT_ROWS ? DIRECT_ROWS : rows > shape->out_h ? shape->out_h : (int)rows;
}

/* The range that the next band will read. */
static void aim_band(struct direct *it, const struct tdmi_depthwise *shape, int row, int rows,
                     const float *picture)
{
    int next = (row + rows - 1) * shape->stride + DIRECT_KERNEL - shape->top;
    int end = next + rows * shape->stride;
    int64_t tiles = (shape->out_w + DIRECT_TILE - 1) / DIRECT_TILE;
    int64_t blocks = (shape->channels + LANES - 1) / LANES;
    next = next > 0 ? next : 0;
    it->ahead = (struct ahead){0};
    if (it->slots.n == 0)
        add_ahead(&it->ahead, picture, next * it->x_row, end * it->x_row, shape->h * it->x_row);
    begin_ahead(&it->ahead, tiles * blocks * ((rows + DIRECT_ROWS - 1) / DIRECT_ROWS));
}

/* The units of this image; their last block goes on to the last channel. */
static void direct_picture(const struct tdmi_depthwise *shape,
                           const struct tdmi_depthwise_forward *call, const struct units *units,
                           int64_t image, bool streams)
{
    const int64_t channels = shape->channels;
    const float *picture = call->x + image * shape->h * shape->w * channels;
    float *y = call->y + image * shape->out_h * shape->out_w * channels;
    const int band = direct_band(shape);
    direct_function *const(*const run)[2] = directs[call->form.act != TDMI_ACT_NONE];
    struct direct it = {.x_row = shape->w * channels,
                        .y_row = shape->out_w * channels,
                        .channels = channels,
                        .slots = call->slots,
                        .streams = streams,
                        .read = range_of(call->form.act),
                        .range = range_of(call->act)};
    for (int row = 0; row < shape->out_h; row += band) {
        int end = shape->out_h - row < band ? shape->out_h : row + band;
        const struct blocks blocks = blocks_of(units, image, row, end - row);
        const int64_t last = blocks.end == units->blocks ? channels : (int64_t)blocks.end * LANES;
        if (blocks.first == blocks.end)
            continue;
        int pairs = row + (end - row) / DIRECT_ROWS * DIRECT_ROWS;
        aim_band(&it, shape, row, end - row, picture);
        for (int64_t c = (int64_t)blocks.first * LANES; c < last; c += LANES) {
            int64_t at = c + LANES <= channels ? c : channels - LANES;
            it.weights = call->weights + at;
            it.bias = call->bias ? call->bias + at : NULL;
            it.x = picture + at;
            it.y = y + at;
            run[DIRECT_ROWS - 1][shape->stride - 1](&it, shape, row, pairs);
            if (pairs < end)
                run[0][shape->stride - 1](&it, shape, pairs, end);
        }
    }
}

/* Can the input be read where it is? Its rows at work and the next ones fit into the second cache,
 * and pixels do not all fall into the same place of the first. */
static bool is_direct(const struct tdmi_depthwise *shape, const struct tdmi_depthwise_forward *call)
{
    const int rows = 2 * DIRECT_ROWS * shape->stride + 1;
    const int64_t bytes = (int64_t)sizeof(float) * rows * shape->w * shape->channels;
    return shape->kernel == DIRECT_KERNEL && shape->dilation == 1 && shape->stride <= 2 &&
           shape->channels >= LANES && shape->channels % 512 != 0 && bytes <= DIRECT_BYTES &&
           !call->form.scale && !call->form.shift && !call->sums.sum;
}

static void direct(const struct tdmi_depthwise *shape, const struct tdmi_depthwise_forward *call,
                   bool streams)
{
    const struct units units =
        units_of(call->member, call->n, shape->out_h, shape->channels / LANES);
    const struct tdmi_share pictures = pictures_of(&units);
    for (int64_t i = pictures.first; i < pictures.end; i++)
        direct_picture(shape, call, &units, i, streams);
    if (streams)
        lanes_fence();
}
