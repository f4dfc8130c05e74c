/*
 * Pooling, written once for every instruction set (isa.h). Forward goes from window to window:
 * where all of it lies in the picture its taps are always the same distances from its corner, at
 * the border they are listed anew. Backward goes from pixel to pixel of the input and collects from
 * the windows that see it, in their order. Averages, which no network of ours has, are left to the
 * general loops.
 */
#include "backend/cpu/gradient_output.h"
#include "backend/cpu/pointwise/pooling.h"

enum { MAX_KERNEL = 15 };

/* May a run of channels that ends inside a vector be written as a whole vector? Only where the
 * values behind it exist, since they are written later on. */
LANES_INLINE bool may_spill(int64_t at, int64_t values)
{
    return at + LANES <= values;
}

/* ---- forward ----------------------------------------------------------------------------------
 */

/* A pixel of a window: how far it is from the window's corner, and its number in the window. */
struct tap {
    int64_t offset;
    float number;
};

struct window {
    struct tap taps[MAX_KERNEL * MAX_KERNEL];
    int n_taps;
};

struct reader {
    int channels, divisor; /* 0: the taps of the window */
    const float *x;
    struct tdmi_read_form form;
    float *y;
    uint8_t *winners;
    struct lanes_range range;
    int64_t x_values, y_values;
    int64_t row; /* floats from one of x to the next */
};

static struct reader reader_of(const struct tdmi_pooling *pool,
                               const struct tdmi_pooling_forward *call, int64_t end_row)
{
    return (struct reader){pool->channels,
                           pool->counts_padding ? pool->kernel * pool->kernel : 0,
                           call->x,
                           call->form,
                           call->y,
                           call->winners,
                           range_of(call->form.act),
                           (int64_t)call->n * pool->h * pool->w * pool->channels,
                           end_row * pool->out_w * pool->channels,
                           (int64_t)pool->w * pool->channels};
}

/* The taps of the window at (row, column) that are inside the image. */
static void list_taps(const struct tdmi_pooling *pool, int row, int column, struct window *window)
{
    window->n_taps = 0;
    for (int tap = 0; tap < pool->kernel * pool->kernel; tap++) {
        int y = tap / pool->kernel, x = tap % pool->kernel;
        if (row + y < 0 || row + y >= pool->h || column + x < 0 || column + x >= pool->w)
            continue;
        window->taps[window->n_taps++] =
            (struct tap){((int64_t)y * pool->w + x) * pool->channels, (float)tap};
    }
}

static bool is_inside(const struct tdmi_pooling *pool, int row, int column)
{
    return row >= 0 && column >= 0 && row + pool->kernel <= pool->h &&
           column + pool->kernel <= pool->w;
}

LANES_INLINE lanes read_value(const struct reader *from, int64_t at, int c,
                              const enum access access, int n)
{
    lanes v = apply(&from->form, get(from->x + at + c, access, n), c, access, n);
    return lanes_clamp(v, from->range.low, from->range.high);
}

/* Prefetch the part of a block that the window of 3 and stride 2 below is the first to read: there
 * is too little to compute for the CPU to look so far ahead. */
LANES_INLINE void ask_for_below(const struct reader *from, const float *corner)
{
    UNROLL(2)
    for (int row = 3; row < 5; row++) {
        lanes_prefetch(corner + row * from->row);
        lanes_prefetch(corner + row * from->row + from->channels);
    }
}

LANES_INLINE void max_block(const struct reader *from, const struct window *window,
                            const int n_taps, int64_t corner, int64_t at, int c,
                            const enum access access, int n)
{
    lanes number = lanes_all(window->taps[0].number);
    lanes best = read_value(from, corner + window->taps[0].offset, c, access, n);
    UNROLL_BY(9)
    for (int t = 1; t < n_taps; t++)
        best = lanes_larger(best, read_value(from, corner + window->taps[t].offset, c, access, n),
                            &number, lanes_all(window->taps[t].number));
    if (n_taps == 9)
        ask_for_below(from, from->x + corner + c);
    put(from->y + at + c, best, access, n);
    if (from->winners && access == ACCESS_PART) { /* what lies behind may be another thread's */
        uint8_t bytes[LANES];
        lanes_store_bytes(bytes, number);
        memcpy(from->winners + at + c, bytes, (size_t)n);
    } else if (from->winners) {
        lanes_store_bytes(from->winners + at + c, number);
    }
}

LANES_INLINE void average_block(const struct reader *from, const struct window *window,
                                const int n_taps, int64_t corner, int64_t at, int c,
                                const enum access access, int n)
{
    int divisor = from->divisor ? from->divisor : n_taps;
    lanes sum = read_value(from, corner + window->taps[0].offset, c, access, n);
    UNROLL_BY(9)
    for (int t = 1; t < n_taps; t++)
        sum = lanes_add(sum, read_value(from, corner + window->taps[t].offset, c, access, n));
    put(from->y + at + c, lanes_multiply(sum, lanes_all(1.0f / (float)divisor)), access, n);
}

LANES_INLINE void one_block(const struct reader *from, const struct window *window,
                            const int n_taps, int64_t corner, int64_t at, int c,
                            const enum access access, int n, const bool is_max)
{
    if (is_max)
        max_block(from, window, n_taps, corner, at, c, access, n);
    else
        average_block(from, window, n_taps, corner, at, c, access, n);
}

/* All channels of one window; corner and at: floats into x and y. */
LANES_INLINE void one_window(const struct reader *from, const struct window *window,
                             const int n_taps, int64_t corner, int64_t at, const bool is_max)
{
    const int channels = from->channels, whole = channels / LANES * LANES;
    for (int c = 0; c < whole; c += LANES)
        one_block(from, window, n_taps, corner, at, c, ACCESS_WHOLE, LANES, is_max);
    if (whole == channels)
        return;
    int64_t furthest = corner + window->taps[n_taps - 1].offset + whole;
    if (may_spill(furthest, from->x_values) && may_spill(at + whole, from->y_values))
        one_block(from, window, n_taps, corner, at, whole, ACCESS_OVER, channels - whole, is_max);
    else
        one_block(from, window, n_taps, corner, at, whole, ACCESS_PART, channels - whole, is_max);
}

LANES_INLINE void pool_forward(const struct tdmi_pooling *pool,
                               const struct tdmi_pooling_forward *call, const bool is_max)
{
    const int64_t end_row = call->rows.end ? call->rows.end : (int64_t)call->n * pool->out_h;
    const struct reader from = reader_of(pool, call, end_row);
    const int64_t image = (int64_t)pool->h * pool->w * pool->channels;
    struct window full, part;
    int64_t at = call->rows.first * pool->out_w * pool->channels;
    list_taps(&(struct tdmi_pooling){.h = pool->kernel, .w = pool->kernel, .kernel = pool->kernel},
              0, 0, &full);
    for (int t = 0; t < full.n_taps; t++)
        full.taps[t].offset =
            ((int64_t)(t / pool->kernel) * pool->w + t % pool->kernel) * pool->channels;
    for (int64_t line = call->rows.first; line < end_row; line++) {
        const int i = (int)(line / pool->out_h), r = (int)(line % pool->out_h);
        for (int o = 0; o < pool->out_w; o++, at += pool->channels) {
            int row = r * pool->stride - pool->top, column = o * pool->stride - pool->left;
            int64_t corner = i * image + ((int64_t)row * pool->w + column) * pool->channels;
            const bool is_full = is_inside(pool, row, column);
            if (!is_full)
                list_taps(pool, row, column, &part);
            const struct window *window = is_full ? &full : &part;
            if (HAS_USUAL && is_max && is_full && full.n_taps == 4)
                one_window(&from, &full, 4, corner, at, is_max);
            else if (HAS_USUAL && is_max && is_full && full.n_taps == 9)
                one_window(&from, &full, 9, corner, at, is_max);
            else
                one_window(&from, window, window->n_taps, corner, at, is_max);
        }
    }
}

static void forward(const struct tdmi_pooling *pool, const struct tdmi_pooling_forward *call)
{
    if (pool->is_max)
        pool_forward(pool, call, true);
    else
        pool_forward(pool, call, false);
}

/* ---- backward ---------------------------------------------------------------------------------
 */

/* A window that sees the pixel at hand. */
struct view {
    int64_t at;   /* floats into dy */
    float number; /* max: of the pixel in the window; average: what dy is multiplied with */
};

struct views {
    struct view of[MAX_KERNEL * MAX_KERNEL];
    int n;
};

struct writer {
    const struct tdmi_pooling *pool;
    struct tdmi_share rows; /* of dx, counted over images */
    const float *dy;
    const uint8_t *winners;
    struct gradient_output to;
    int end; /* channel of the slab */
    int64_t x_values, y_values;
    bool may_spill; /* what a vector spills is written later, and not read */
};

/* Windows along one side that see the pixel at hand, first to last, perhaps none; last may lie
 * beyond the last window there is. */
struct span {
    int first, last;
};

/* From the pixels before to pixel at. */
LANES_INLINE void advance(struct span *span, int at, int pad, int kernel, int stride)
{
    while ((span->last + 1) * stride - pad <= at)
        span->last++;
    while (span->first * stride - pad + kernel <= at)
        span->first++;
}

static int at_most(int value, int most)
{
    return value < most ? value : most;
}

static int inside(int begin, int kernel, int size)
{
    int end = begin + kernel < size ? begin + kernel : size;
    return end - (begin > 0 ? begin : 0);
}

static float share_of(const struct tdmi_pooling *pool, int r, int o)
{
    int seen = pool->kernel * pool->kernel;
    if (!pool->counts_padding)
        seen = inside(r * pool->stride - pool->top, pool->kernel, pool->h) *
               inside(o * pool->stride - pool->left, pool->kernel, pool->w);
    return 1.0f / (float)seen;
}

static void list_views(const struct tdmi_pooling *pool, int image, int row, struct span rows,
                       int column, struct span columns, const bool is_max, struct views *views)
{
    views->n = 0;
    for (int r = rows.first; r <= at_most(rows.last, pool->out_h - 1); r++)
        for (int o = columns.first; o <= at_most(columns.last, pool->out_w - 1); o++) {
            int y = row + pool->top - r * pool->stride, x = column + pool->left - o * pool->stride;
            views->of[views->n++] = (struct view){
                (((int64_t)image * pool->out_h + r) * pool->out_w + o) * pool->channels,
                is_max ? (float)(y * pool->kernel + x) : share_of(pool, r, o)};
        }
}

LANES_INLINE lanes collect(const struct writer *by, const struct view *view, lanes g, int c,
                           const enum access access, int n, const bool is_max)
{
    lanes dy = get(by->dy + view->at + c, access, n);
    if (!is_max)
        return lanes_multiply_add(dy, lanes_all(view->number), g);
    lanes winner = lanes_load_bytes(by->winners + view->at + c);
    return lanes_add(g, lanes_where_equal(dy, winner, lanes_all(view->number)));
}

LANES_INLINE void spread_block(const struct writer *by, const struct views *views, int64_t at,
                               int c, const enum access access, int n, const bool is_max)
{
    lanes g = lanes_all(0.0f);
    for (int k = 0; k < views->n; k++)
        g = collect(by, &views->of[k], g, c, access == ACCESS_STREAM ? ACCESS_WHOLE : access, n,
                    is_max);
    store_gradient(&by->to, at + c, c, g, access, n);
}

/* The slab's channels of one pixel of the input. */
LANES_INLINE void spread_pixel(const struct writer *by, const struct views *views, int64_t at,
                               const enum access access, const bool is_max)
{
    const int whole = by->to.first + (by->end - by->to.first) / LANES * LANES;
    for (int c = by->to.first; c < whole; c += LANES)
        spread_block(by, views, at, c, access, LANES, is_max);
    if (whole == by->end)
        return;
    bool has_room = by->may_spill && may_spill(at + whole, by->x_values) &&
                    (views->n == 0 || may_spill(views->of[views->n - 1].at + whole, by->y_values));
    if (has_room)
        spread_block(by, views, at, whole, ACCESS_OVER, by->end - whole, is_max);
    else
        spread_block(by, views, at, whole, ACCESS_PART, by->end - whole, is_max);
}

LANES_INLINE void spread_row(const struct writer *by, int image, int row, struct span rows,
                             const enum access access, const bool is_max)
{
    const struct writer own = *by; /* which no store can change */
    const struct tdmi_pooling *pool = own.pool;
    struct views views;
    struct span columns = {0, -1};
    int64_t at = ((int64_t)image * pool->h + row) * pool->w * pool->channels;
    for (int column = 0; column < pool->w; column++, at += pool->channels) {
        advance(&columns, column, pool->left, pool->kernel, pool->stride);
        list_views(pool, image, row, rows, column, columns, is_max, &views);
        spread_pixel(&own, &views, at, access, is_max);
    }
}

/* One window that no other overlaps, its row of pixels from at on; channels fit one vector, and
 * there is room for all of it. */
LANES_INLINE void spread_small_tile(const struct writer *by, int64_t window, int64_t at, int kernel,
                                    int channels, int first)
{
    const lanes dy = lanes_load(by->dy + window);
    const lanes winner = lanes_load_bytes(by->winners + window);
    for (int x = 0; x < kernel; x++, at += channels) {
        lanes g = lanes_where_equal(dy, winner, lanes_all((float)(first + x)));
        store_gradient(&by->to, at, 0, g, ACCESS_OVER, channels);
    }
}

/* Windows of the largest value side by side: each pixel is seen by one, or none at the far borders.
 */
LANES_INLINE void spread_tiles(const struct writer *by, int image, int row,
                               const enum access access)
{
    const struct writer own = *by;
    const int kernel = own.pool->kernel, channels = own.pool->channels, w = own.pool->w;
    const int r = row / kernel, first = row % kernel * kernel;
    const int columns = own.pool->out_w, values = columns * channels;
    const int n_views = r < own.pool->out_h ? 1 : 0;
    struct views views;
    int64_t at = ((int64_t)image * own.pool->h + row) * w * channels;
    int64_t window = ((int64_t)image * own.pool->out_h + r) * values;
    int o = 0;
    if (n_views && channels < LANES && own.may_spill &&
        may_spill(at + (int64_t)w * channels, own.x_values) &&
        may_spill(window + values, own.y_values))
        for (; o < columns; o++, window += channels, at += (int64_t)kernel * channels)
            spread_small_tile(&own, window, at, kernel, channels, first);
    for (int column = o * kernel, x = 0; column < w; column++, at += channels) {
        views.n = column < columns * kernel ? n_views : 0;
        views.of[0].at = window;
        views.of[0].number = (float)(first + x);
        spread_pixel(&own, &views, at, access, true);
        if (++x == kernel) {
            x = 0;
            window += channels;
        }
    }
}

LANES_INLINE void spread_slab(const struct writer *by, const enum access access, const bool is_max)
{
    const struct tdmi_pooling *pool = by->pool;
    const bool has_tiles = pool->kernel == pool->stride && pool->top == 0 && pool->left == 0 &&
                           pool->out_w * pool->kernel <= pool->w &&
                           pool->out_h * pool->kernel <= pool->h;
    const int64_t of_stretch = tdmi_pooling_stretch_rows(pool);
    struct span rows = {0, -1};
    for (int64_t line = by->rows.first; line < by->rows.end; line++) {
        const int i = (int)(line / pool->h), row = (int)(line % pool->h);
        if (by->to.slab && line % of_stretch == 0)
            memset(by->to.slab, 0, sizeof *by->to.slab);
        if (row == 0)
            rows = (struct span){0, -1};
        advance(&rows, row, pool->top, pool->kernel, pool->stride);
        if (HAS_USUAL && is_max && has_tiles)
            spread_tiles(by, i, row, access);
        else
            spread_row(by, i, row, rows, access, is_max);
        if ((line + 1) % of_stretch == 0 || line + 1 == by->rows.end)
            end_stretch(&by->to, by->end, line / of_stretch);
    }
}

LANES_INLINE void pool_backward(const struct tdmi_pooling *pool,
                                const struct tdmi_pooling_backward *call, const bool is_max)
{
    struct slab slab;
    const int64_t all = (int64_t)call->n * pool->h, of_stretch = tdmi_pooling_stretch_rows(pool);
    const int64_t end = call->stretches.end * of_stretch;
    const struct tdmi_share rows = {call->stretches.first * of_stretch,
                                    end == 0 || end > all ? all : end};
    const bool streams = is_max && may_stream(call->dx, all * pool->w, pool->channels);
    struct writer by = {.pool = pool,
                        .rows = rows,
                        .dy = call->dy,
                        .winners = call->winners,
                        .to = {.x = call->x,
                               .form = call->form,
                               .range = range_of(call->form.act),
                               .dx = call->dx,
                               .add = call->add,
                               .sums = call->sums,
                               .slab = call->sums.sum ? &slab : NULL,
                               .pieces = call->pieces,
                               .channels = pool->channels},
                        .x_values = rows.end * pool->w * pool->channels,
                        .y_values = (int64_t)call->n * pool->out_h * pool->out_w * pool->channels,
                        .may_spill = pool->channels <= SLAB && call->add != call->dx};
    if (!call->pieces)
        start_sums(&call->sums, pool->channels);
    for (; by.to.first < pool->channels; by.to.first += SLAB) {
        by.end = pool->channels - by.to.first < SLAB ? pool->channels : by.to.first + SLAB;
        if (streams)
            spread_slab(&by, ACCESS_STREAM, is_max);
        else
            spread_slab(&by, ACCESS_WHOLE, is_max);
    }
    if (streams)
        lanes_fence();
}

static void backward(const struct tdmi_pooling *pool, const struct tdmi_pooling_backward *call)
{
    if (pool->is_max)
        pool_backward(pool, call, true);
    else
        pool_backward(pool, call, false);
}

const struct tdmi_pooling_kernels TDMI_THIS_ISA(tdmi_pooling) = {forward, backward};
