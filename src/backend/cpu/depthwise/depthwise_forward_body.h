/*
 * Depthwise convolution forward, written once for every instruction set (isa.h). A band of output
 * rows at a time; the input rows it needs are read once, put through the read form and laid into
 * the ring, block by block, so that a block's window slides over neighbouring vectors:
 *
 *     x (row, column, channels)  ->  ring (row, block, column, lanes)  ->  y, and its sums
 */
#pragma once

#include "backend/cpu/depthwise/depthwise_direct_body.h"

LANES_INLINE void fill_forward_block(const struct job *job, const float *x, int b, float *to,
                                     const struct lanes_range *range, const enum access access,
                                     int n)
{
    lanes v =
        lanes_multiply_add(get(x + b * LANES, access, n), lanes_load(job->room.scale + b * LANES),
                           lanes_load(job->room.shift + b * LANES));
    v = lanes_clamp(v, range->low, range->high);
    if (access == ACCESS_PART) /* the lanes behind the last channel stay what they are: zero */
        lanes_store_part(to + b * job->block_values, v, n);
    else
        lanes_store(to + b * job->block_values, v);
}

/* An input row into its slot, as far as the blocks at work need it. */
static void fill_forward(const struct job *job, const struct tdmi_depthwise_slots *slots,
                         const float *x, int row, const struct lanes_range range)
{
    const struct tdmi_depthwise *shape = job->shape;
    const struct blocks blocks = job->at_work;
    const int whole = whole_blocks(job);
    int end = job->ring.columns - job->ring.before;
    float *to = slot(job, row) + (int64_t)job->ring.before * LANES;
    x += slot_of(slots, row) * shape->w * shape->channels;
    for (int j = 0; j < shape->w && j < end; j++, x += shape->channels, to += LANES) {
        for (int b = blocks.first; b < whole; b++)
            fill_forward_block(job, x, b, to, &range, ACCESS_WHOLE, LANES);
        if (whole < blocks.end)
            fill_forward_block(job, x, whole, to, &range, ACCESS_PART,
                               shape->channels - whole * LANES);
    }
}

/* One row of outputs of one block at work. */
struct forward_walk {
    const float *rows[LARGEST]; /* of the window, at this block; more than LARGEST: see all_rows */
    const float *const *all_rows;
    int64_t offset; /* of the block in all_rows */
    const float *weights;
    lanes kept[LARGEST];
    lanes bias, centre, sum, square;
    struct lanes_range range;
    float *y;
    int channels, n;
    struct ahead *ahead;
};

LANES_INLINE void forward_tile(struct forward_walk *walk, int column, const int tile, const int k,
                               const int stride, const int dilation, const enum access access,
                               const bool has_sums)
{
    lanes y[4];
#pragma GCC unroll 4
    for (int t = 0; t < tile; t++)
        y[t] = walk->bias;
#pragma GCC unroll 3
    for (int ky = 0; ky < k; ky++) {
        const float *row = k <= LARGEST && k * k <= LARGEST
                               ? walk->rows[ky]
                               : walk->all_rows[ky * dilation] + walk->offset;
        row += (int64_t)column * stride * LANES;
#pragma GCC unroll 3
        for (int kx = 0; kx < k; kx++) {
            const int tap = ky * k + kx;
            lanes w = k * k <= LARGEST ? walk->kept[tap] : lanes_load(walk->weights + tap * LANES);
#pragma GCC unroll 4
            for (int t = 0; t < tile; t++)
                y[t] = lanes_multiply_add(lanes_load(row + (t * stride + kx * dilation) * LANES), w,
                                          y[t]);
        }
    }
    lanes sum = lanes_all(0.0f), square = sum;
#pragma GCC unroll 4
    for (int t = 0; t < tile; t++) {
        if (has_sums) {
            lanes off = lanes_sub(y[t], walk->centre);
            sum = t ? lanes_add(sum, off) : off;
            square = t ? lanes_multiply_add(off, off, square) : lanes_multiply(off, off);
        } else {
            y[t] = lanes_clamp(y[t], walk->range.low, walk->range.high);
        }
        put(walk->y + (int64_t)(column + t) * walk->channels, y[t], access, walk->n);
    }
    if (has_sums) {
        walk->sum = lanes_add(walk->sum, sum);
        walk->square = lanes_add(walk->square, square);
    }
}

LANES_INLINE void forward_row(struct forward_walk *walk, int out_w, const int k, const int stride,
                              const int dilation, const enum access access, const bool has_sums)
{
    int column = 0;
    for (; column + 4 <= out_w; column += 4) {
        if (access == ACCESS_STREAM) /* else y is being brought in, and more at once is slower */
            look_ahead(walk->ahead);
        forward_tile(walk, column, 4, k, stride, dilation, access, has_sums);
    }
    if (column + 2 <= out_w) {
        forward_tile(walk, column, 2, k, stride, dilation, access, has_sums);
        column += 2;
    }
    if (column < out_w)
        forward_tile(walk, column, 1, k, stride, dilation, access, has_sums);
}

/* A block of channels of a band of rows; rows of the band's window are in room.rows. */
LANES_INLINE void forward_block(const struct job *job, const struct tdmi_depthwise_forward *call,
                                float *y, int n_rows, int b, const int k, const int stride,
                                const int dilation, const enum access access, const bool has_sums)
{
    const struct tdmi_depthwise *shape = job->shape;
    struct forward_walk walk = {.offset = b * job->block_values,
                                .weights = job->room.weights + (int64_t)b * k * k * LANES,
                                .bias = lanes_load(job->room.bias + b * LANES),
                                .centre = lanes_load(job->room.centre + b * LANES),
                                .sum = lanes_all(0.0f),
                                .square = lanes_all(0.0f),
                                .range = range_of(call->act),
                                .y = y + b * LANES,
                                .channels = shape->channels,
                                .n = block_channels(job, b),
                                .ahead = job->ahead};
    if (k * k <= LARGEST) {
#pragma GCC unroll 9
        for (int tap = 0; tap < k * k; tap++)
            walk.kept[tap] = lanes_load(walk.weights + tap * LANES);
    }
    for (int row = 0; row < n_rows; row++) {
        walk.all_rows = job->room.rows + row * stride;
        if (k * k <= LARGEST) {
#pragma GCC unroll 3
            for (int ky = 0; ky < k; ky++)
                walk.rows[ky] = walk.all_rows[ky * dilation] + walk.offset;
        }
        forward_row(&walk, shape->out_w, k, stride, dilation, access, has_sums);
        walk.y += (int64_t)shape->out_w * shape->channels;
    }
    if (has_sums) {
        end_sum(job, b, 0, job->room.sums[0] + b * LANES, walk.sum);
        end_sum(job, b, 1, job->room.sums[1] + b * LANES, walk.square);
    }
}

LANES_INLINE void forward_blocks(const struct job *job, const struct tdmi_depthwise_forward *call,
                                 float *y, int n_rows, const int k, const int stride,
                                 const int dilation, const bool has_sums)
{
    const int whole = whole_blocks(job);
    int b = job->at_work.first;
    if (CAN_STREAM && job->streams)
        for (; b < whole; b++)
            forward_block(job, call, y, n_rows, b, k, stride, dilation, ACCESS_STREAM, has_sums);
    for (; b < whole; b++)
        forward_block(job, call, y, n_rows, b, k, stride, dilation, ACCESS_WHOLE, has_sums);
    if (b < job->at_work.end)
        forward_block(job, call, y, n_rows, b, k, stride, dilation, ACCESS_PART, has_sums);
}

/* The sizes that networks use have loops of their own, for which the compiler knows all bounds. */
typedef void forward_band(const struct job *job, const struct tdmi_depthwise_forward *call,
                          float *y, int n_rows);

#define FORWARD_BAND(name, k, stride, dilation, has_sums)                                        \
    static void name(const struct job *job, const struct tdmi_depthwise_forward *call, float *y, \
                     int n_rows)                                                                 \
    {                                                                                            \
        forward_blocks(job, call, y, n_rows, k, stride, dilation, has_sums);                     \
    }
FORWARD_BAND(forward_3_1, 3, 1, 1, false)
FORWARD_BAND(forward_3_2, 3, 2, 1, false)
FORWARD_BAND(forward_sums_3_1, 3, 1, 1, true)
FORWARD_BAND(forward_sums_3_2, 3, 2, 1, true)
FORWARD_BAND(forward_any, job->shape->kernel, job->shape->stride, job->shape->dilation,
             call->sums.sum != NULL)
#undef FORWARD_BAND

static forward_band *choose_forward(const struct tdmi_depthwise *shape, bool has_sums)
{
    static forward_band *const bands[2][2] = {{forward_3_1, forward_3_2},
                                              {forward_sums_3_1, forward_sums_3_2}};
    const bool is_usual = shape->kernel == 3 && shape->stride <= 2 && shape->dilation == 1;
    return HAS_USUAL && is_usual ? bands[has_sums][shape->stride - 1] : forward_any;
}

/* The rows of x from `filled` on, of the picture or the one behind it, that a band is long, as far
 * as the member needs them. */
static void plan_ahead(const struct job *job, const struct tdmi_depthwise_forward *call,
                       int64_t picture, int filled, int n_rows)
{
    const struct tdmi_depthwise *shape = job->shape;
    const int64_t row = (int64_t)shape->w * shape->channels;
    const int64_t at = (picture * shape->h + filled) * row;
    const int64_t end = end_row(&job->units, shape->h);
    *job->ahead = (struct ahead){.at = NULL};
    if (call->slots.n > 0)
        return;
    add_ahead(job->ahead, call->x, at, at + job->ring.band_rows * shape->stride * row, end * row);
    begin_ahead(job->ahead,
                (int64_t)(job->at_work.end - job->at_work.first) * n_rows * (shape->out_w / 4));
}

static void forward_picture(struct job *job, const struct tdmi_depthwise_forward *call,
                            forward_band *band, int64_t picture)
{
    const struct tdmi_depthwise *shape = job->shape;
    const struct lanes_range range = range_of(call->form.act);
    const float *x = call->x + picture * shape->h * shape->w * shape->channels;
    float *y = call->y + picture * shape->out_h * shape->out_w * shape->channels;
    struct blocks kept = {0, 0}; /* that the ring holds */
    int filled = 0;              /* rows before it are in the ring, or past */
    for (int row = 0; row < shape->out_h; row += job->ring.band_rows) {
        int n_rows =
            shape->out_h - row < job->ring.band_rows ? shape->out_h - row : job->ring.band_rows;
        if (!enter_band(job, picture, row, n_rows))
            continue;
        filled = same_blocks(kept, job->at_work) ? filled : 0;
        kept = job->at_work;
        int first = row * shape->stride - shape->top;
        int end = first + (n_rows - 1) * shape->stride + (shape->kernel - 1) * shape->dilation + 1;
        filled = filled < first ? first : filled;
        for (; filled < end && filled < shape->h; filled++)
            fill_forward(job, &call->slots, x, filled, range);
        list_rows(job, first, shape->h);
        plan_ahead(job, call, picture, filled, n_rows);
        band(job, call, y + (int64_t)row * shape->out_w * shape->channels, n_rows);
    }
}

static void forward(const struct tdmi_depthwise *shape, const struct tdmi_depthwise_forward *call)
{
    struct ahead ahead;
    struct job job = {.ahead = &ahead};
    int64_t y_values = (int64_t)shape->out_h * shape->out_w * shape->channels;
    if (HAS_USUAL && is_direct(shape, call)) {
        direct(shape, call, may_stream(shape, call->y, call->n * y_values));
        return;
    }
    start(&job, shape, tdmi_depthwise_forward_ring(shape), call->workspace, call->member, call->n,
          shape->out_h, call->sums.sum ? TDMI_DEPTHWISE_FORWARD_SUMS : 0);
    job.streams = may_stream(shape, call->y, call->n * y_values);
    pack_weights(&job, call->weights);
    pack_read_form(&job, &call->form, call->sums.centre);
    pad_channels(&job, job.room.bias, call->bias, 0.0f);
    forward_band *band = choose_forward(shape, call->sums.sum != NULL);
    const struct tdmi_share pictures = pictures_of(&job.units);
    for (int64_t i = pictures.first; i < pictures.end; i++)
        forward_picture(&job, call, band, i);
    if (job.streams)
        lanes_fence();
    if (call->sums.sum && call->member) {
        tdmi_member_wait(call->member);
        add_pieces(&job, call->member, call->n,
                   (double *const[2]){call->sums.sum, call->sums.square}, NULL);
    } else if (call->sums.sum) {
        deliver(&job, call->sums.sum, job.room.sums[0]);
        deliver(&job, call->sums.square, job.room.sums[1]);
    }
}
