/*
 * Depthwise convolution backward, written once for every instruction set (isa.h). A band of input
 * rows at a time; the ring holds dy. Of each input pixel, read once, the gradient and the pixel's
 * share in the weights' gradient come from the same vectors of dy:
 *
 *     dx += w[tap] · dy[tap],    dw[tap] += v · dy[tap],    tap = (ky, kx): dy at (i + top - ky) /
 * s
 *
 * With stride s an input row meets every s-th ky only, columns alike: s · s phases, each of which
 * is a walk over its pixels with its taps in registers.
 */
#pragma once

#include "backend/cpu/depthwise/depthwise_job_body.h"

LANES_INLINE void fill_backward_block(const struct job *job, const float *g, const float *y, int b,
                                      float *to, const bool has_y, const enum access access, int n)
{
    const struct tdmi_depthwise_room *room = &job->room;
    lanes dy = lanes_multiply_add(get(g + b * LANES, access, n), lanes_load(room->of_g + b * LANES),
                                  lanes_load(room->one + b * LANES));
    if (has_y)
        dy = lanes_multiply_add(get(y + b * LANES, access, n), lanes_load(room->of_y + b * LANES),
                                dy);
    if (access == ACCESS_PART)
        lanes_store_part(to + b * job->block_values, dy, n);
    else
        lanes_store(to + b * job->block_values, dy);
}

/* A row of dy into its slot, as far as the blocks at work need it. */
LANES_INLINE void fill_backward_row(const struct job *job,
                                    const struct tdmi_depthwise_backward *call, int64_t picture,
                                    int row, const bool has_y)
{
    const struct tdmi_depthwise *shape = job->shape;
    const struct blocks blocks = job->at_work;
    const int whole = whole_blocks(job);
    float *to = slot(job, row) + (int64_t)job->ring.before * LANES;
    int64_t at = (picture * shape->out_h + row) * shape->out_w * shape->channels;
    for (int j = 0; j < shape->out_w; j++, at += shape->channels, to += LANES) {
        const float *g = call->g + at, *y = has_y ? call->y + at : NULL;
        for (int b = blocks.first; b < whole; b++)
            fill_backward_block(job, g, y, b, to, has_y, ACCESS_WHOLE, LANES);
        if (whole < blocks.end)
            fill_backward_block(job, g, y, whole, to, has_y, ACCESS_PART,
                                shape->channels - whole * LANES);
    }
}

static void add_to_dbias(const struct job *job, int row)
{
    for (int b = job->at_work.first; b < job->at_work.end; b++) {
        const float *dy = slot(job, row) + b * job->block_values;
        lanes sum = lanes_all(0.0f);
        for (int j = 0; j < job->ring.columns; j++)
            sum = lanes_add(sum, lanes_load(dy + (int64_t)j * LANES));
        lanes_add_to_doubles(job->room.sums[2] + b * LANES, sum);
    }
}

static void fill_backward(const struct job *job, const struct tdmi_depthwise_backward *call,
                          int64_t picture, int row, bool counts_bias)
{
    if (call->gradient.of_y)
        fill_backward_row(job, call, picture, row, true);
    else
        fill_backward_row(job, call, picture, row, false);
    if (counts_bias)
        add_to_dbias(job, row);
}

/* Which columns of a row a phase has: j = q · stride + phase - left for q from first to last. */
struct phase {
    int first, last;
};

static struct phase phase_of(const struct tdmi_depthwise *shape, int phase)
{
    int least = shape->left - phase, most = shape->w - 1 + shape->left - phase;
    return (struct phase){least > 0 ? (least + shape->stride - 1) / shape->stride : 0,
                          most >= 0 ? most / shape->stride : -1};
}

/* Constants of a walk along the pixels of one phase of one row, in one block. */
struct backward_walk {
    const float *rows[3]; /* of dy: the one of tap (a, b) and column q is rows[a], q - b */
    lanes w[LARGEST], dw[LARGEST];
    lanes scale, shift, centre, sum, product;
    struct lanes_range range;
    const float *x, *add; /* of the pixel at q = 0, which need not exist */
    float *dx;
    int64_t step; /* from q to q + 1 */
    int n;
};

/* The end of a gradient's way: the mask, what others wrote, the sums. */
LANES_INLINE void finish_pixel(struct backward_walk *walk, int64_t at, lanes x, lanes z, lanes dx,
                               const enum access access)
{
    dx = lanes_between(dx, z, walk->range.low, walk->range.high);
    if (walk->add)
        dx = lanes_add(dx, get(walk->add + at, access, walk->n));
    put(walk->dx + at, dx, access, walk->n);
    walk->sum = lanes_add(walk->sum, dx);
    walk->product = lanes_multiply_add(dx, lanes_sub(x, walk->centre), walk->product);
}

LANES_INLINE void backward_tile(struct backward_walk *walk, int q, const int tile, const int n_y,
                                const int n_x, const enum access access)
{
    lanes x[2], z[2], v[2], dx[2];
#pragma GCC unroll 2
    for (int t = 0; t < tile; t++) {
        x[t] = get(walk->x + (q + t) * walk->step, access, walk->n);
        z[t] = lanes_multiply_add(x[t], walk->scale, walk->shift);
        v[t] = lanes_clamp(z[t], walk->range.low, walk->range.high);
        dx[t] = lanes_all(0.0f);
    }
#pragma GCC unroll 3
    for (int a = 0; a < n_y; a++) {
#pragma GCC unroll 3
        for (int b = 0; b < n_x; b++) {
            const int tap = a * n_x + b;
#pragma GCC unroll 2
            for (int t = 0; t < tile; t++) {
                lanes dy = lanes_load(walk->rows[a] + (int64_t)(q + t - b) * LANES);
                dx[t] = lanes_multiply_add(dy, walk->w[tap], dx[t]);
                walk->dw[tap] = lanes_multiply_add(dy, v[t], walk->dw[tap]);
            }
        }
    }
#pragma GCC unroll 2
    for (int t = 0; t < tile; t++)
        if (walk->dx)
            finish_pixel(walk, (q + t) * walk->step, x[t], z[t], dx[t], access);
}

/* Taps of a phase: ky = y_phase + a · stride, kx = x_phase + b · stride. */
LANES_INLINE void backward_phase(const struct job *job, struct backward_walk *walk, int b,
                                 int y_phase, int x_phase, const int n_y, const int n_x,
                                 const enum access access)
{
    const struct tdmi_depthwise *shape = job->shape;
    const int k = shape->kernel, stride = shape->stride;
    struct phase phase = phase_of(shape, x_phase);
    struct backward_walk at_work = *walk;
#pragma GCC unroll 3
    for (int a = 0; a < n_y; a++)
#pragma GCC unroll 3
        for (int c = 0; c < n_x; c++) {
            int tap = (y_phase + a * stride) * k + x_phase + c * stride;
            at_work.w[a * n_x + c] =
                lanes_load(job->room.weights + ((int64_t)b * k * k + tap) * LANES);
            at_work.dw[a * n_x + c] = lanes_load(job->room.band_dweights + tap * LANES);
        }
    int q = phase.first;
    for (; q + 1 <= phase.last; q += 2) {
        look_ahead(job->ahead);
        backward_tile(&at_work, q, 2, n_y, n_x, access);
    }
    if (q <= phase.last)
        backward_tile(&at_work, q, 1, n_y, n_x, access);
#pragma GCC unroll 3
    for (int a = 0; a < n_y; a++)
#pragma GCC unroll 3
        for (int c = 0; c < n_x; c++) {
            int tap = (y_phase + a * stride) * k + x_phase + c * stride;
            lanes_store(job->room.band_dweights + tap * LANES, at_work.dw[a * n_x + c]);
        }
    walk->sum = at_work.sum;
    walk->product = at_work.product;
}

/* A row and phase with n_y · n_x taps. */
LANES_INLINE void backward_phase_of(const struct job *job, struct backward_walk *walk, int b,
                                    int y_phase, int x_phase, int n_y, int n_x,
                                    const enum access access)
{
    if (n_y == 3)
        backward_phase(job, walk, b, y_phase, x_phase, 3, 3, access);
    else if (n_y == 2 && n_x == 2)
        backward_phase(job, walk, b, y_phase, x_phase, 2, 2, access);
    else if (n_y == 2)
        backward_phase(job, walk, b, y_phase, x_phase, 2, 1, access);
    else if (n_x == 2)
        backward_phase(job, walk, b, y_phase, x_phase, 1, 2, access);
    else
        backward_phase(job, walk, b, y_phase, x_phase, 1, 1, access);
}

/* Taps of a phase when the kernel has so many in all. */
static int taps_of(const struct tdmi_depthwise *shape, int phase)
{
    return (shape->kernel - phase + shape->stride - 1) / shape->stride;
}

/* Row by row of few taps: those that stay in registers. rows: of dy, at this block, by q. */
LANES_INLINE void backward_row(const struct job *job, struct backward_walk *walk, int b, int row,
                               int first_dy, const enum access access)
{
    const struct tdmi_depthwise *shape = job->shape;
    int y_phase = (row + shape->top) % shape->stride, q_y = (row + shape->top) / shape->stride;
    int n_y = taps_of(shape, y_phase);
    struct backward_walk at_phase = *walk;
    for (int a = 0; a < n_y; a++)
        at_phase.rows[a] = job->room.rows[q_y - a - first_dy] + b * job->block_values +
                           (int64_t)job->ring.before * LANES;
    for (int x_phase = 0; x_phase < shape->stride; x_phase++) {
        int64_t at = (int64_t)(x_phase - shape->left) * shape->channels;
        at_phase.x = walk->x + at;
        at_phase.add = walk->add ? walk->add + at : NULL;
        at_phase.dx = walk->dx ? walk->dx + at : NULL;
        backward_phase_of(job, &at_phase, b, y_phase, x_phase, n_y, taps_of(shape, x_phase),
                          access);
    }
    walk->sum = at_phase.sum;
    walk->product = at_phase.product;
}

/* Any kernel, any dilation: taps one by one, their sums in memory. */
LANES_INLINE void backward_row_any(const struct job *job, struct backward_walk *walk, int b,
                                   int row, int first_dy, const enum access access)
{
    const struct tdmi_depthwise *shape = job->shape;
    const int k = shape->kernel, stride = shape->stride;
    const float *weights = job->room.weights + (int64_t)b * k * k * LANES;
    for (int j = 0; j < shape->w; j++) {
        int64_t at = (int64_t)j * shape->channels;
        lanes x = get(walk->x + at, access, walk->n), dx = lanes_all(0.0f);
        lanes z = lanes_multiply_add(x, walk->scale, walk->shift);
        lanes v = lanes_clamp(z, walk->range.low, walk->range.high);
        for (int tap = 0; tap < k * k; tap++) {
            int y_at = row + shape->top - tap / k * shape->dilation;
            int x_at = j + shape->left - tap % k * shape->dilation;
            if (y_at < 0 || x_at < 0 || y_at % stride != 0 || x_at % stride != 0)
                continue;
            lanes dy = lanes_load(job->room.rows[y_at / stride - first_dy] + b * job->block_values +
                                  (int64_t)(job->ring.before + x_at / stride) * LANES);
            float *dw = job->room.band_dweights + tap * LANES;
            dx = lanes_multiply_add(dy, lanes_load(weights + tap * LANES), dx);
            lanes_store(dw, lanes_multiply_add(dy, v, lanes_load(dw)));
        }
        if (walk->dx)
            finish_pixel(walk, at, x, z, dx, access);
    }
}

/* Kernel 3 with stride 1, and what has at most two taps a phase, on each axis. */
static bool has_few_taps(const struct tdmi_depthwise *shape)
{
    bool is_three = shape->kernel == 3 && shape->stride == 1;
    return HAS_USUAL && shape->dilation == 1 && shape->kernel >= shape->stride &&
           (is_three || taps_of(shape, 0) <= 2);
}

/* A band of input rows at work: the first of it, and the first row of dy in room.rows. */
struct backward_band {
    int64_t at; /* of the band in x */
    int row, n_rows, first_dy;
};

LANES_INLINE void backward_block(const struct job *job, const struct tdmi_depthwise_backward *call,
                                 const struct backward_band *band, int b, const enum access access)
{
    const struct tdmi_depthwise *shape = job->shape;
    const int taps = shape->kernel * shape->kernel;
    const struct tdmi_depthwise_room *room = &job->room;
    struct backward_walk walk = {.scale = lanes_load(room->scale + b * LANES),
                                 .shift = lanes_load(room->shift + b * LANES),
                                 .centre = lanes_load(room->centre + b * LANES),
                                 .sum = lanes_all(0.0f),
                                 .product = lanes_all(0.0f),
                                 .range = range_of(call->form.act),
                                 .step = (int64_t)shape->stride * shape->channels,
                                 .n = block_channels(job, b)};
    const bool has_few = has_few_taps(shape);
    memset(room->band_dweights, 0, sizeof(float) * (size_t)taps * LANES);
    for (int i = 0; i < band->n_rows; i++) {
        int64_t at = band->at + (int64_t)i * shape->w * shape->channels + b * LANES;
        walk.x = call->x + at;
        walk.add = call->add ? call->add + at : NULL;
        walk.dx = call->dx ? call->dx + at : NULL;
        if (HAS_USUAL && has_few)
            backward_row(job, &walk, b, band->row + i, band->first_dy, access);
        else
            backward_row_any(job, &walk, b, band->row + i, band->first_dy, access);
    }
    for (int tap = 0; tap < taps; tap++)
        end_sum(job, b, 2 + tap, room->dweights + ((int64_t)b * taps + tap) * LANES,
                lanes_load(room->band_dweights + tap * LANES));
    end_sum(job, b, 0, room->sums[0] + b * LANES, walk.sum);
    end_sum(job, b, 1, room->sums[1] + b * LANES, walk.product);
}

static void backward_blocks(const struct job *job, const struct tdmi_depthwise_backward *call,
                            const struct backward_band *band)
{
    const int whole = whole_blocks(job);
    int b = job->at_work.first;
    if (CAN_STREAM && job->streams)
        for (; b < whole; b++)
            backward_block(job, call, band, b, ACCESS_STREAM);
    for (; b < whole; b++)
        backward_block(job, call, band, b, ACCESS_WHOLE);
    if (b < job->at_work.end)
        backward_block(job, call, band, b, ACCESS_PART);
}

static int floor_divided(int a, int b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Prefetch the rows that the next band reads, as far as the member needs them: dy's from `filled`
 * on, and those it walks along. Both tensors of an image are followed by those of the next. */
static void backward_ahead(const struct job *job, const struct tdmi_depthwise_backward *call,
                           const struct backward_band *band, int64_t picture, int filled)
{
    const struct tdmi_depthwise *shape = job->shape;
    const int64_t x_row = (int64_t)shape->w * shape->channels, x_at = band->at;
    const int64_t dy_row = (int64_t)shape->out_w * shape->channels;
    const int64_t dy_at = (picture * shape->out_h + filled) * dy_row;
    const int64_t x_first = x_at + band->n_rows * x_row;
    const int64_t x_end = x_first + job->ring.band_rows * x_row;
    const int64_t x_all = end_row(&job->units, shape->h) * x_row;
    const int64_t dy_end = dy_at + (job->ring.band_rows / shape->stride + 1) * dy_row;
    const int64_t dy_all = end_row(&job->units, shape->out_h) * dy_row;
    *job->ahead = (struct ahead){.at = NULL};
    add_ahead(job->ahead, call->add, x_first, x_end, x_all);
    add_ahead(job->ahead, call->x, x_first, x_end, x_all);
    add_ahead(job->ahead, call->gradient.of_y ? call->y : NULL, dy_at, dy_end, dy_all);
    add_ahead(job->ahead, call->g, dy_at, dy_end, dy_all);
    begin_ahead(job->ahead,
                (int64_t)(job->at_work.end - job->at_work.first) * band->n_rows * (shape->w / 2));
}

static void backward_picture(struct job *job, const struct tdmi_depthwise_backward *call,
                             int64_t picture)
{
    const struct tdmi_depthwise *shape = job->shape;
    const bool counts_bias = call->dbias && !call->member;
    struct blocks kept = {0, 0};
    int reach = (shape->kernel - 1) * shape->dilation;
    int filled = 0;
    for (int row = 0; row < shape->h; row += job->ring.band_rows) {
        int n_rows = shape->h - row < job->ring.band_rows ? shape->h - row : job->ring.band_rows;
        if (!enter_band(job, picture, row, n_rows))
            continue;
        filled = same_blocks(kept, job->at_work) ? filled : 0;
        kept = job->at_work;
        int end = (row + n_rows - 1 + shape->top) / shape->stride + 1;
        int first = floor_divided(row + shape->top - reach + shape->stride - 1, shape->stride);
        struct backward_band band = {.at = (picture * shape->h + row) * shape->w * shape->channels,
                                     .row = row,
                                     .n_rows = n_rows,
                                     .first_dy = first};
        /* Rows of dy that no pixel meets count for the bias alone. */
        for (; filled < first && filled < shape->out_h; filled++)
            if (counts_bias)
                fill_backward(job, call, picture, filled, true);
        for (; filled < end && filled < shape->out_h; filled++)
            fill_backward(job, call, picture, filled, counts_bias);
        list_rows(job, first, shape->out_h);
        backward_ahead(job, call, &band, picture, filled);
        backward_blocks(job, call, &band);
    }
    for (; counts_bias && filled < shape->out_h; filled++)
        fill_backward(job, call, picture, filled, true);
}

static void deliver_dbias(const struct job *job, float *dbias)
{
    for (int c = job->at_work.first * LANES;
         c < job->at_work.end * LANES && c < job->shape->channels; c++)
        dbias[c] = (float)job->room.sums[2][c];
}

/* In a team, rows of dy are prepared twice where members meet; so each member adds up all rows of
 * its blocks once more. */
static void add_bias_of_team(struct job *job, const struct tdmi_depthwise_backward *call)
{
    const struct tdmi_share mine = tdmi_member_share(call->member, job->blocks);
    job->at_work = (struct blocks){(int)mine.first, (int)mine.end};
    for (int picture = 0; picture < call->n; picture++)
        for (int row = 0; row < job->shape->out_h; row++)
            fill_backward(job, call, picture, row, true);
    deliver_dbias(job, call->dbias);
}

static void deliver_dweights(const struct job *job, float *dweights)
{
    int taps = job->shape->kernel * job->shape->kernel, channels = job->shape->channels;
    for (int tap = 0; tap < taps; tap++)
        for (int c = 0; c < channels; c++)
            dweights[tap * channels + c] =
                (float)job->room.dweights[(c / LANES * taps + tap) * LANES + c % LANES];
}

static void backward(const struct tdmi_depthwise *shape, const struct tdmi_depthwise_backward *call)
{
    struct ahead ahead;
    struct job job = {.ahead = &ahead};
    start(&job, shape, tdmi_depthwise_backward_ring(shape), call->workspace, call->member, call->n,
          shape->h, tdmi_depthwise_backward_sums(shape));
    job.streams = call->dx && may_stream(shape, call->dx,
                                         (int64_t)call->n * shape->h * shape->w * shape->channels);
    pack_weights(&job, call->weights);
    pack_read_form(&job, &call->form, call->sums.centre);
    pad_channels(&job, job.room.of_g, call->gradient.of_g, call->gradient.of_g ? 0.0f : 1.0f);
    pad_channels(&job, job.room.of_y, call->gradient.of_y, 0.0f);
    pad_channels(&job, job.room.one, call->gradient.one, 0.0f);
    memset(job.room.sums[2], 0, sizeof(double) * (size_t)job.blocks * LANES);
    memset(job.room.dweights, 0,
           sizeof(double) * (size_t)(shape->kernel * shape->kernel * job.blocks) * LANES);
    const struct tdmi_share pictures = pictures_of(&job.units);
    for (int64_t i = pictures.first; i < pictures.end; i++)
        backward_picture(&job, call, i);
    if (job.streams)
        lanes_fence();
    if (call->member) {
        tdmi_member_wait(call->member);
        add_pieces(&job, call->member, call->n,
                   (double *const[2]){call->sums.sum, call->sums.product}, call->dweights);
        if (call->dbias)
            add_bias_of_team(&job, call);
        return;
    }
    deliver_dweights(&job, call->dweights);
    if (call->sums.sum) {
        deliver(&job, call->sums.sum, job.room.sums[0]);
        deliver(&job, call->sums.product, job.room.sums[1]);
    }
    if (call->dbias)
        deliver_dbias(&job, call->dbias);
}
