/*
 * Depthwise convolution without training, windows of 3, written once for every instruction set
 * (isa.h). The input is read where it is: two rows of outputs at a time, so that a vector that was
 * read serves up to six of them. Blocks of channels begin at multiples of a vector; the last one
 * ends with the last channel and computes some of its neighbour's again, so that none is a part of
 * a vector. Every output is the chain of additions that the ring's kernels make.
 */
#ifndef TANDEM_BACKEND_CPU_DEPTHWISE_DIRECT_BODY_H
#define TANDEM_BACKEND_CPU_DEPTHWISE_DIRECT_BODY_H

#include "backend/cpu/depthwise_job_body.h"

enum { DIRECT_KERNEL = 3, DIRECT_ROWS = 2, DIRECT_TILE = 4, DIRECT_BYTES = 448 << 10 };

/* One block of channels of DIRECT_ROWS rows of outputs, or of the last one. */
struct direct {
    const float
        *x; /* where the window of the first output of column 0 begins, in the padding too */
    float *y;
    int64_t x_row, y_row; /* floats from one to the next */
    int64_t channels;
    int first_row, end_row; /* of the rows that the windows see, those in the picture */
    bool streams;
    lanes weights[DIRECT_KERNEL * DIRECT_KERNEL], bias;
    struct lanes_range read, range;
    struct ahead ahead;
};

/* Columns of the input are counted from the first that the tile sees; those from `first` to before
 * `end` are in the picture. */
LANES_INLINE void direct_tile(struct direct *it, const float *x, float *y, int first, int end,
                              const int tile, const int rows, const int stride,
                              const bool reads_act)
{
    lanes sums[DIRECT_ROWS][DIRECT_TILE];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int t = 0; t < tile; t++)
            sums[r][t] = it->bias;
    }
#pragma GCC unroll 5
    for (int i = 0; i < (rows - 1) * stride + DIRECT_KERNEL; i++) {
        if (i < it->first_row || i >= it->end_row)
            continue;
        const float *row = x + i * it->x_row;
#pragma GCC unroll 9
        for (int j = 0; j < (tile - 1) * stride + DIRECT_KERNEL; j++) {
            if (j < first || j >= end)
                continue;
            lanes value = lanes_load(row + j * it->channels);
            if (reads_act)
                value = lanes_clamp(value, it->read.low, it->read.high);
#pragma GCC unroll 2
            for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
                for (int t = 0; t < tile; t++) {
                    const int ky = i - r * stride, kx = j - t * stride;
                    if (ky >= 0 && ky < DIRECT_KERNEL && kx >= 0 && kx < DIRECT_KERNEL)
                        sums[r][t] = lanes_multiply_add(value, it->weights[ky * DIRECT_KERNEL + kx],
                                                        sums[r][t]);
                }
            }
        }
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int t = 0; t < tile; t++)
            put(y + r * it->y_row + t * it->channels,
                lanes_clamp(sums[r][t], it->range.low, it->range.high),
                CAN_STREAM && it->streams ? WAY_STREAM : WAY_WHOLE, LANES);
    }
    look_ahead(&it->ahead);
}

/* As many columns at a time as have their windows inside the picture; the others one by one. */
LANES_INLINE void direct_block(struct direct *it, const struct tdmi_depthwise *shape,
                               const int rows, const int stride, const bool reads_act)
{
    const int left = shape->left, out_w = shape->out_w;
    const int inside = (left + stride - 1) / stride;
    const int outside =
        shape->w < DIRECT_KERNEL ? 0 : (shape->w - DIRECT_KERNEL + left) / stride + 1;
    int column = 0;
    while (column < out_w) {
        const float *x = it->x + (int64_t)column * stride * it->channels;
        float *y = it->y + column * it->channels;
        const int end = outside < out_w ? outside : out_w;
        if (column >= inside && column + DIRECT_TILE <= end) {
            direct_tile(it, x, y, 0, INT_MAX, DIRECT_TILE, rows, stride, reads_act);
            column += DIRECT_TILE;
        } else {
            int from = column * stride - left;
            direct_tile(it, x, y, from < 0 ? -from : 0, shape->w - from, 1, rows, stride,
                        reads_act);
            column++;
        }
    }
}

typedef void direct_function(struct direct *it, const struct tdmi_depthwise *shape);

#define DIRECT(name, rows, stride, reads_act)                               \
    static void name(struct direct *it, const struct tdmi_depthwise *shape) \
    {                                                                       \
        direct_block(it, shape, rows, stride, reads_act);                   \
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

/* Which rows are in the picture, and what the next two rows of outputs will read. */
static void aim_rows(struct direct *it, const struct tdmi_depthwise *shape, int row, int n_rows,
                     const float *picture, int64_t n_tiles)
{
    const int from = row * shape->stride - shape->top;
    const int seen = (n_rows - 1) * shape->stride + DIRECT_KERNEL;
    it->first_row = from < 0 ? -from : 0;
    it->end_row = shape->h - from < seen ? shape->h - from : seen;
    int next = from + seen > 0 ? from + seen : 0, end = next + DIRECT_ROWS * shape->stride;
    it->ahead = (struct ahead){0};
    add_ahead(&it->ahead, picture, next * it->x_row, end * it->x_row, shape->h * it->x_row);
    begin_ahead(&it->ahead, n_tiles);
}

static void direct_picture(const struct tdmi_depthwise *shape,
                           const struct tdmi_depthwise_forward *call, int image, bool streams)
{
    const int64_t channels = shape->channels;
    const float *picture = call->x + (int64_t)image * shape->h * shape->w * channels;
    float *y = call->y + (int64_t)image * shape->out_h * shape->out_w * channels;
    struct direct it = {.x_row = shape->w * channels,
                        .y_row = shape->out_w * channels,
                        .channels = channels,
                        .streams = streams,
                        .read = range_of(call->form.act),
                        .range = range_of(call->act)};
    int64_t n_tiles =
        (channels + LANES - 1) / LANES * ((shape->out_w + DIRECT_TILE - 1) / DIRECT_TILE);
    for (int row = 0; row < shape->out_h; row += DIRECT_ROWS) {
        int n_rows = shape->out_h - row < DIRECT_ROWS ? shape->out_h - row : DIRECT_ROWS;
        direct_function *run =
            directs[call->form.act != TDMI_ACT_NONE][n_rows - 1][shape->stride - 1];
        aim_rows(&it, shape, row, n_rows, picture, n_tiles);
        int64_t corner = (row * shape->stride - shape->top) * it.x_row - shape->left * channels;
        for (int64_t c = 0; c < channels; c += LANES) {
            int64_t at = c + LANES <= channels ? c : channels - LANES;
            for (int tap = 0; tap < DIRECT_KERNEL * DIRECT_KERNEL; tap++)
                it.weights[tap] = lanes_load(call->weights + tap * channels + at);
            it.bias = call->bias ? lanes_load(call->bias + at) : lanes_all(0.0f);
            it.x = picture + corner + at;
            it.y = y + row * it.y_row + at;
            run(&it, shape);
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
    for (int i = 0; i < call->n; i++)
        direct_picture(shape, call, i, streams);
    if (streams)
        lanes_fence();
}

#endif
