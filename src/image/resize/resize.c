/*
 * Resampling in fixed point, equal to Pillow's bit by bit.
 *
 * One dimension after the other: every output pixel is a weighted sum of the input pixels under a
 * filter that is centred on it and, when shrinking, widened by the scale, so that nothing is
 * skipped (antialiasing). resize/weights.c has the weights, integers of 22 fractional bits; sums
 * are 32-bit integers, rounded and clipped to a byte after each of the two passes. The horizontal
 * pass runs first and only over the rows that the vertical one will read; where the height shrinks
 * much more than the width it is the other way round, with columns.
 *
 *     source ──horizontal──► quads, already as wide as the target ──vertical──► target
 *
 * The order matters by at most 1 of 255 and follows Pillow 13 (earlier ones always began with the
 * horizontal pass). resize/kernels.h says what a quad is and who multiplies; this file plans,
 * sets memory aside and hands out rows. Kernels may read a little behind a row; where that would be
 * behind the image, the rows are copied to a place with room.
 *
 * Workspace lives behind the target's own pixels, in the same memory, or in the caller's room: one
 * that is used again allocates nothing. It is small beside the two images unless one side shrinks
 * to next to nothing: then most of it is weights, whose number goes with the side. So there is a
 * limit, and an image above it is a bad image, not a lack of memory.
 */
#include "image/resize/resize.h"
#include "base/scope.h"
#include "image/formats/codec.h"
#include <math.h>
#include <string.h>

enum {
    QUAD = 4,                             /* rows */
    STRIP = QUAD * TDMI_RESIZE_MAX_QUADS, /* rows that one call of a kernel takes */
    STRETCH = 256,      /* bytes of a row that are woven at once where no horizontal pass does it */
    MOST_SIDE = 1 << 24 /* up to it a box's floats separate neighbouring pixels */
};

/* ---- plan ------------------------------------------------------------------------------------ */

static bool is_moved(const struct tdmi_axis *axis)
{
    return axis->n_inputs != axis->n_outputs || axis->low != 0 ||
           axis->high != (float)axis->n_outputs;
}

static tdm_status check(int width, int height, const struct tdmi_resize *how, tdm_error *err)
{
    const struct tdmi_box *box = &how->box;
    if (width < 1 || height < 1 || how->width < 1 || how->height < 1)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot resize an image of %d x %d pixels to %d x %d: both sizes must be "
                        "1 or more",
                        width, height, how->width, how->height);
    if (!(box->x >= 0 && box->y >= 0 && box->width > 0 && box->height > 0 &&
          box->x + box->width <= width && box->y + box->height <= height))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot resize the box of %g x %g pixels at (%g, %g): it is not inside the "
                        "image of %d x %d",
                        box->width, box->height, box->x, box->y, width, height);
    if (how->part_x < 0 || how->part_y < 0 || how->part_width < 1 || how->part_height < 1 ||
        how->part_width > how->width - how->part_x || how->part_height > how->height - how->part_y)
        return TDM_FAIL(
            err, TDM_E_USAGE, "cannot take %d x %d pixels at (%d, %d) of an image of %d x %d",
            how->part_width, how->part_height, how->part_x, how->part_y, how->width, how->height);
    if (width > MOST_SIDE || height > MOST_SIDE)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "cannot resize an image of %d x %d pixels: a side has at most %d", width,
                        height, MOST_SIDE);
    return TDM_OK;
}

static struct tdmi_resize_passes passes_of(int width, int height, const struct tdmi_resize *how)
{
    const struct tdmi_box *box = &how->box;
    struct tdmi_resize_passes passes = {.across = {width, how->width, how->part_x, how->part_width,
                                                   (float)box->x, (float)(box->x + box->width)},
                                        .down = {height, how->height, how->part_y, how->part_height,
                                                 (float)box->y, (float)(box->y + box->height)}};
    /* An axis that keeps its scale and is used whole needs no pass. */
    if (is_moved(&passes.across) || is_moved(&passes.down)) {
        passes.has_across = is_moved(&passes.across) || how->part_width != how->width;
        passes.has_down = is_moved(&passes.down) || how->part_height != how->height;
    }
    passes.is_transposed =
        how->height < height && (int64_t)height - how->height > 2 * ((int64_t)width - how->width);
    return passes;
}

tdm_status tdmi_resize_passes_of(int width, int height, const struct tdmi_resize *how,
                                 struct tdmi_resize_passes *passes, tdm_error *err)
{
    const tdm_status status = check(width, height, how, err);
    if (status == TDM_OK)
        *passes = passes_of(width, height, how);
    return status;
}

static size_t quad_bytes_of(size_t columns)
{
    size_t bytes = QUAD * columns + TDMI_RESIZE_QUAD_SLACK + TDMI_RESIZE_ALIGNMENT - 1;
    return bytes / TDMI_RESIZE_ALIGNMENT * TDMI_RESIZE_ALIGNMENT;
}

/* Quads that are woven here lie close together where they are narrow: nothing is written behind
 * them, and what is read there is the next one. */
static size_t woven_bytes_of(size_t source_bytes)
{
    return source_bytes < STRETCH ? QUAD * source_bytes : quad_bytes_of(STRETCH);
}

/* Everything that is set aside, in one order for counting and for taking. */
static void carve_all(uint8_t *base, size_t *used, const struct tdmi_resize *how,
                      const struct tdmi_axis *across, const struct tdmi_axis *down,
                      struct tdmi_resampler *r)
{
    const size_t source_bytes = 3 * (size_t)r->source_width;
    const size_t row_bytes = 3 * (size_t)how->part_width;
    const size_t all_quads = ((size_t)r->source_height + QUAD - 1) / QUAD;
    const int rows_across = r->has_down && r->is_transposed ? how->part_height : r->source_height;
    if (r->has_across) {
        tdmi_weights_carve(base, used, across, how->filter, &r->across);
        if (r->kernels->arranged_bytes != NULL)
            r->across.arranged = tdmi_resize_carve(
                base, used, 1,
                r->kernels->arranged_bytes(across->part_output,
                                           tdmi_weights_max_groups(across, how->filter)));
    }
    if (r->has_down)
        tdmi_weights_carve(base, used, down, how->filter, &r->down);
    if (r->has_down) {
        r->quad_bytes =
            tdmi_resampler_takes_rows(r) ? quad_bytes_of(row_bytes) : woven_bytes_of(source_bytes);
        r->quads =
            tdmi_resize_carve(base, used, 1, all_quads * r->quad_bytes + TDMI_RESIZE_QUAD_SLACK);
    }
    if (r->has_across) {
        r->strip_bytes = quad_bytes_of(row_bytes);
        r->strip = tdmi_resize_carve(base, used, TDMI_RESIZE_MAX_QUADS, r->strip_bytes);
        r->spare =
            tdmi_resize_carve(base, used, (size_t)(rows_across < STRIP ? rows_across : STRIP),
                              source_bytes + TDMI_RESIZE_SLACK);
    }
    if (r->has_across && r->has_down && r->is_transposed)
        r->between = tdmi_resize_carve(base, used, (size_t)how->part_height, source_bytes);
}

bool tdmi_resampler_takes_rows(const struct tdmi_resampler *resampler)
{
    return resampler->has_across && resampler->has_down && !resampler->is_transposed;
}

/* As much as the largest image that is decoded takes, and as both images take. To 299 pixels,
 * Lanczos takes 37 bytes for each pixel of a side that shrinks, so that 15 million a side pass. */
static tdm_status check_workspace(const struct tdmi_resampler *r, const struct tdmi_resize *how,
                                  size_t bytes, tdm_error *err)
{
    const size_t most =
        3 * ((size_t)TDMI_IMAGE_MOST_PIXELS + (size_t)r->source_width * (size_t)r->source_height +
             (size_t)how->part_width * (size_t)how->part_height);
    if (bytes <= most)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_INPUT,
                    "resizing an image of %d x %d pixels to %d x %d takes %zu bytes besides the "
                    "images; at most %zu are set aside, so its sides must be more alike",
                    r->source_width, r->source_height, how->width, how->height, bytes, most);
}

/* kept_bytes of room stay the caller's. */
static tdm_status plan(struct tdmi_resampler *r, int width, int height,
                       const struct tdmi_resize *how, size_t kept_bytes, tdmi_image *room,
                       tdm_error *err)
{
    const struct tdmi_resize_passes passes = passes_of(width, height, how);
    const struct tdmi_axis *across = &passes.across, *down = &passes.down;
    *r = (struct tdmi_resampler){.source_width = width,
                                 .source_height = height,
                                 .has_across = passes.has_across,
                                 .has_down = passes.has_down,
                                 .is_transposed = passes.is_transposed};
    r->kernels = how->kernels != NULL ? how->kernels : tdmi_resize_kernels_best();

    size_t used = 0; /* first only count, then set aside */
    carve_all(NULL, &used, how, across, down, r);
    tdm_status status = check_workspace(r, how, used, err);
    if (status == TDM_OK)
        status = tdmi_image_reserve(room, kept_bytes + TDMI_RESIZE_ALIGNMENT + used, err);
    if (status != TDM_OK)
        return status;
    uint8_t *base = room->pixels + kept_bytes;
    base += -(uintptr_t)base % TDMI_RESIZE_ALIGNMENT;
    used = 0;
    carve_all(base, &used, how, across, down, r);
    if (r->has_across) {
        tdmi_weights_fill(across, how->filter, TDMI_GROUPS_ANYWHERE, &r->across);
        r->kernels->pack(r->across.taps, (size_t)r->across.n_outputs * (size_t)r->across.n_groups);
        if (r->kernels->arrange != NULL)
            r->kernels->arrange(&r->across);
        r->columns = tdmi_weights_inputs(across, &r->across);
    }
    if (r->has_down) {
        tdmi_weights_fill(down, how->filter, TDMI_GROUPS_AT_FOURS, &r->down);
        r->kernels->pack(r->down.taps, (size_t)r->down.n_outputs * (size_t)r->down.n_groups);
        r->rows = tdmi_weights_inputs(down, &r->down);
    }
    return TDM_OK;
}

tdm_status tdmi_resampler_begin(struct tdmi_resampler *resampler, int width, int height,
                                const struct tdmi_resize *how, tdmi_image *room, tdm_error *err)
{
    TDMI_TRY(check(width, height, how, err));
    return plan(resampler, width, height, how, 0, room, err);
}

/* ---- across: rows become quads --------------------------------------------------------------- */

/* n rows -> their quads. The last row stands in for what its four lack; rows behind which a kernel
 * would read too far are copied. */
static void make_quads(const struct tdmi_resampler *r, const uint8_t *rows, size_t stride_bytes,
                       const uint8_t *end, int n, uint8_t *quads, size_t quad_bytes)
{
    const size_t row_bytes = 3 * (size_t)r->source_width;
    const size_t readable_bytes = row_bytes + TDMI_RESIZE_SLACK;
    for (int y = 0; y < n; y += STRIP) {
        const uint8_t *strip[STRIP];
        const int n_now = n - y < STRIP ? n - y : STRIP, n_quads = (n_now + QUAD - 1) / QUAD;
        for (int i = 0; i < QUAD * n_quads; i++) {
            if (i >= n_now) {
                strip[i] = strip[n_now - 1];
                continue;
            }
            strip[i] = rows + stride_bytes * (size_t)(y + i);
            if ((size_t)(end - strip[i]) >= readable_bytes)
                continue;
            uint8_t *copy = r->spare + readable_bytes * (size_t)i;
            memcpy(copy, strip[i], row_bytes);
            strip[i] = copy;
        }
        r->kernels->horizontal(strip, n_quads, &r->across, quads, quad_bytes);
        quads += quad_bytes * (size_t)n_quads;
    }
}

static void unweave(const uint8_t *quad, size_t row_bytes, int n_rows, struct tdmi_rows target)
{
    for (int y = 0; y < n_rows; y++) {
        uint8_t *row = target.pixels + target.stride_bytes * (size_t)y;
        for (size_t i = 0; i < row_bytes; i++)
            row[i] = quad[QUAD * i + (size_t)y];
    }
}

/* n rows -> n rows of the target's width. */
static void pass_across(const struct tdmi_resampler *r, const uint8_t *rows, size_t stride_bytes,
                        const uint8_t *end, int n, struct tdmi_rows target)
{
    const size_t row_bytes = 3 * (size_t)r->across.n_outputs;
    for (int y = 0; y < n; y += STRIP) {
        const int n_now = n - y < STRIP ? n - y : STRIP;
        make_quads(r, rows + stride_bytes * (size_t)y, stride_bytes, end, n_now, r->strip,
                   r->strip_bytes);
        for (int i = 0; i < n_now; i += QUAD) {
            struct tdmi_rows into = {target.pixels + target.stride_bytes * (size_t)(y + i),
                                     target.stride_bytes};
            unweave(r->strip + r->strip_bytes * (size_t)(i / QUAD), row_bytes,
                    n_now - i < QUAD ? n_now - i : QUAD, into);
        }
    }
}

/* ---- down: quads become rows ----------------------------------------------------------------- */

/* Rows of the target from begin on whose quads are there: those of source rows below n_rows.
 * Returns where it stopped. */
static int add_up(const struct tdmi_resampler *r, int begin, int n_rows, size_t n_bytes,
                  struct tdmi_rows target)
{
    const struct tdmi_resize_weights *down = &r->down;
    const int first_quad = r->rows.first / QUAD;
    int y = begin;
    for (; y < down->n_outputs; y++) {
        const struct tdmi_span span = down->spans[y];
        if (span.first + QUAD * (span.n - 1) >= n_rows)
            break;
        const int32_t *taps = down->taps + (ptrdiff_t)y * down->n_groups * TDMI_RESIZE_GROUP;
        r->kernels->vertical(r->quads + r->quad_bytes * (size_t)(span.first / QUAD - first_quad),
                             r->quad_bytes, taps, span.n, n_bytes,
                             target.pixels + target.stride_bytes * (size_t)y);
    }
    return y;
}

/* Copy n_bytes bytes of n_rows rows. Missing rows of the last quad keep old values: their weights
 * are 0. */
static void weave(const uint8_t *rows, size_t stride_bytes, size_t n_bytes, int n_rows,
                  uint8_t *quads, size_t quad_bytes)
{
    for (int y = 0; y < n_rows; y++) {
        const uint8_t *row = rows + stride_bytes * (size_t)y;
        uint8_t *quad = quads + quad_bytes * (size_t)(y / QUAD) + y % QUAD;
        for (size_t i = 0; i < n_bytes; i++)
            quad[QUAD * i] = row[i];
    }
}

/* Columns first … first + n of the source -> the target's rows, as wide. */
static void pass_down(const struct tdmi_resampler *r, const tdmi_image *source, size_t first_byte,
                      size_t n_bytes, struct tdmi_rows target)
{
    const size_t stride_bytes = 3 * (size_t)source->width;
    const int first_quad = r->rows.first / QUAD;
    const uint8_t *rows = source->pixels + stride_bytes * (size_t)(QUAD * first_quad) + first_byte;
    for (size_t at = 0; at < n_bytes; at += STRETCH) {
        const size_t n = n_bytes - at < STRETCH ? n_bytes - at : STRETCH;
        weave(rows + at, stride_bytes, n, r->rows.first + r->rows.n - QUAD * first_quad, r->quads,
              r->quad_bytes);
        struct tdmi_rows into = {target.pixels + at, target.stride_bytes};
        (void)add_up(r, 0, r->source_height, n, into);
    }
}

/* ---- the calls ------------------------------------------------------------------------------- */

void tdmi_resampler_feed(struct tdmi_resampler *r, const uint8_t *rows, size_t stride_bytes,
                         const uint8_t *end, int first, int n)
{
    const int begin = r->rows.first / QUAD * QUAD, stop = r->rows.first + r->rows.n;
    if (first < begin) { /* both are multiples of four */
        const int skipped = begin - first;
        if (skipped >= n)
            return;
        rows += stride_bytes * (size_t)skipped;
        first += skipped;
        n -= skipped;
    }
    if (first >= stop)
        return;
    n = n < stop - first ? n : stop - first;
    /* In strips, so that the second pass finds in the nearest cache what the first one made. */
    for (int n_now; n > 0; n -= n_now, first += n_now) {
        n_now = n < STRIP ? n : STRIP;
        make_quads(r, rows, stride_bytes, end, n_now,
                   r->quads + r->quad_bytes * (size_t)((first - begin) / QUAD), r->quad_bytes);
        r->n_done = add_up(r, r->n_done, first + n_now, 3 * (size_t)r->across.n_outputs, r->target);
        rows += stride_bytes * (size_t)n_now;
    }
}

static void copy_part(const tdmi_image *source, const struct tdmi_resize *how,
                      struct tdmi_rows target)
{
    for (size_t y = 0; y < (size_t)how->part_height; y++)
        memcpy(target.pixels + target.stride_bytes * y,
               source->pixels +
                   3 * ((size_t)source->width * ((size_t)how->part_y + y) + (size_t)how->part_x),
               3 * (size_t)how->part_width);
}

/* Both passes, down before across. Only the columns that the second one looks at are made. */
static void pass_turned(struct tdmi_resampler *r, const tdmi_image *source, struct tdmi_rows target)
{
    const size_t between_bytes = 3 * (size_t)r->columns.n;
    struct tdmi_rows between = {r->between, between_bytes};
    pass_down(r, source, 3 * (size_t)r->columns.first, between_bytes, between);
    for (int x = 0; x < r->across.n_outputs; x++)
        r->across.spans[x].first -= r->columns.first;
    pass_across(r, r->between, between_bytes,
                r->between + between_bytes * (size_t)r->down.n_outputs, r->down.n_outputs, target);
}

static void resample(struct tdmi_resampler *r, const tdmi_image *source,
                     const struct tdmi_resize *how, struct tdmi_rows target)
{
    const size_t source_bytes = 3 * (size_t)source->width;
    const uint8_t *end = source->pixels + source_bytes * (size_t)source->height;
    if (tdmi_resampler_takes_rows(r)) {
        r->target = target;
        tdmi_resampler_feed(r, source->pixels, source_bytes, end, 0, source->height);
    } else if (r->has_across && r->has_down) {
        pass_turned(r, source, target);
    } else if (r->has_across) {
        pass_across(r, source->pixels, source_bytes, end, source->height, target);
    } else if (r->has_down) {
        pass_down(r, source, 0, source_bytes, target);
    } else {
        copy_part(source, how, target);
    }
}

static bool is_reducing(const struct tdmi_resize *how)
{
    return how->reduce_x > 1 || how->reduce_y > 1;
}

/* Source and request after the reduction; small has no pixels yet. */
static void plan_reduction(const tdmi_image *source, struct tdmi_resize *how, tdmi_image *small)
{
    how->reduce_x = how->reduce_x > 1 ? how->reduce_x : 1;
    how->reduce_y = how->reduce_y > 1 ? how->reduce_y : 1;
    small->width = (source->width + how->reduce_x - 1) / how->reduce_x;
    small->height = (source->height + how->reduce_y - 1) / how->reduce_y;
    how->box.x /= how->reduce_x;
    how->box.width /= how->reduce_x;
    how->box.y /= how->reduce_y;
    how->box.height /= how->reduce_y;
}

/* Resamples with a workspace behind the first kept_bytes of room. Those are the target's where
 * its pixels are NULL. The reduced image lies between. */
static tdm_status run(const tdmi_image *source, const struct tdmi_resize *how, size_t kept_bytes,
                      struct tdmi_rows target, tdmi_image *room, tdm_error *err)
{
    struct tdmi_resampler resampler;
    struct tdmi_resize step = *how;
    tdmi_image small = {0};
    TDMI_TRY(check(source->width, source->height, how, err));
    if (is_reducing(how))
        plan_reduction(source, &step, &small);
    const tdmi_image *from = is_reducing(how) ? &small : source;
    const size_t small_bytes = 3 * (size_t)small.width * (size_t)small.height;
    TDMI_TRY(
        plan(&resampler, from->width, from->height, &step, kept_bytes + small_bytes, room, err));
    if (is_reducing(how)) {
        small.pixels = room->pixels + kept_bytes;
        tdmi_image_reduce(source, step.reduce_x, step.reduce_y, small.pixels);
    }
    if (target.pixels == NULL)
        target.pixels = room->pixels;
    resample(&resampler, from, &step, target);
    return TDM_OK;
}

tdm_status tdmi_image_resize_into(const tdmi_image *source, const struct tdmi_resize *how,
                                  struct tdmi_rows target, tdmi_image *room, tdm_error *err)
{
    return run(source, how, 0, target, room, err);
}

tdm_status tdmi_image_resize_part(const tdmi_image *source, const struct tdmi_resize *how,
                                  tdmi_image *target, tdm_error *err)
{
    const size_t row_bytes = 3 * (size_t)how->part_width;
    const size_t bytes = how->part_height > 0 ? row_bytes * (size_t)how->part_height : 0;
    tdm_status status = run(source, how, bytes, (struct tdmi_rows){NULL, row_bytes}, target, err);
    if (status == TDM_OK)
        status = tdmi_image_reshape(target, how->part_width, how->part_height, err);
    return status;
}

tdm_status tdmi_image_resize(const tdmi_image *source, struct tdmi_box box, int width, int height,
                             enum tdmi_filter filter, tdmi_image *target, tdm_error *err)
{
    const struct tdmi_resize how = {.box = box,
                                    .width = width,
                                    .height = height,
                                    .filter = filter,
                                    .part_width = width,
                                    .part_height = height};
    return tdmi_image_resize_part(source, &how, target, err);
}
