/*
 * Resampling in fixed point, equal to Pillow's bit by bit.
 *
 * One dimension after the other: every output pixel is a weighted sum of the input pixels under a
 * filter that is centred on it and, when shrinking, widened by the scale, so that nothing is
 * skipped (antialiasing). Weights are computed in double, normalised to sum to 1 and rounded to
 * 22 fractional bits; sums are 32-bit integers, rounded and clipped to a byte after each of the two
 * passes. The horizontal pass runs first and only over the rows that the vertical one will read;
 * where the height shrinks much more than the width it is the other way round, with columns.
 *
 *     source ──horizontal──► rows first..last, already as wide as the target ──vertical──► target
 *
 * The order matters by at most 1 of 255 and follows Pillow 13 (earlier ones always began with the
 * horizontal pass).
 *
 * Workspace (the weights and the intermediate picture) lives behind the target's own pixels, in the
 * same memory: a target that is used again allocates nothing.
 */
#include "image/codec.h"
#include "image/resize.h"
#include <math.h>
#include <string.h>

enum { FRACTION_BITS = 32 - 8 - 2 }; /* 8 bits of value, 2 of head room for overshoot and sign */

/* ---- filters --------------------------------------------------------------------------------- */

struct filter {
    double (*weight)(double x);
    double support; /* the weight is 0 beyond it */
};

static double sinc(double x)
{
    if (x == 0.0)
        return 1.0;
    x *= M_PI;
    return sin(x) / x;
}

static double lanczos(double x)
{
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

/* Keys' cubic with a = -0.5. */
static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static const struct filter filters[] = {
    [TDMI_FILTER_LANCZOS] = {lanczos, 3.0},
    [TDMI_FILTER_BICUBIC] = {bicubic, 2.0},
    [TDMI_FILTER_BILINEAR] = {bilinear, 1.0},
};

/* ---- weights of one dimension ---------------------------------------------------------------- */

struct span { /* the input pixels under one output pixel */
    int first, n;
};

struct weights {
    int n_outputs, n_taps; /* taps: the most input pixels under any output pixel */
    struct span *spans;    /* (n_outputs) */
    int32_t *taps;         /* (n_outputs, n_taps) */
    double *real;          /* (n_taps), scratch */
};

struct axis {
    int n_inputs, n_outputs;       /* of the whole target */
    int first_output, part_output; /* the outputs that are wanted */
    float low, high;               /* of the box; float, because Pillow's box is */
};

static double scale_of(const struct axis *axis)
{
    return (double)(axis->high - axis->low) / axis->n_outputs;
}

static int taps_of(const struct axis *axis, const struct filter *filter)
{
    double widened = filter->support * fmax(scale_of(axis), 1.0);
    double taps = ceil(widened) * 2 + 1;
    return taps < axis->n_inputs ? (int)taps : axis->n_inputs;
}

static void weigh(const struct axis *axis, const struct filter *filter, struct weights *weights)
{
    const double scale = scale_of(axis), stretch = fmax(scale, 1.0);
    const double support = filter->support * stretch, per_stretch = 1.0 / stretch;
    for (int i = 0; i < weights->n_outputs; i++) {
        double centre = axis->low + (axis->first_output + i + 0.5) * scale;
        int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
        if (first < 0)
            first = 0;
        if (end > axis->n_inputs)
            end = axis->n_inputs;
        const int n = end - first;
        double sum = 0.0;
        for (int k = 0; k < n; k++) {
            weights->real[k] = filter->weight((k + first - centre + 0.5) * per_stretch);
            sum += weights->real[k];
        }
        int32_t *taps = weights->taps + (ptrdiff_t)i * weights->n_taps;
        for (int k = 0; k < n; k++) {
            double real = sum != 0.0 ? weights->real[k] / sum : weights->real[k];
            taps[k] = (int32_t)(real * (1 << FRACTION_BITS) + (real < 0 ? -0.5 : 0.5));
        }
        weights->spans[i] = (struct span){first, n};
    }
}

/* ---- the two passes -------------------------------------------------------------------------- */

static uint8_t to_byte(int32_t sum)
{
    sum >>= FRACTION_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* Input and output of a pass: rows of RGB, from a first row or column of the source on. */

/* n_rows rows, stride_bytes apart, that begin at column first_column -> (n_rows, n_outputs, 3). */
static void pass_horizontal(const uint8_t *rows, size_t stride_bytes, int first_column, int n_rows,
                            const struct weights *weights, uint8_t *out)
{
    for (int y = 0; y < n_rows; y++, rows += stride_bytes) {
        for (int x = 0; x < weights->n_outputs; x++, out += 3) {
            const uint8_t *from = rows + 3 * (ptrdiff_t)(weights->spans[x].first - first_column);
            const int32_t *taps = weights->taps + (ptrdiff_t)x * weights->n_taps;
            int32_t red = 1 << (FRACTION_BITS - 1), green = red, blue = red;
            for (int k = 0; k < weights->spans[x].n; k++, from += 3) {
                red += from[0] * taps[k];
                green += from[1] * taps[k];
                blue += from[2] * taps[k];
            }
            out[0] = to_byte(red);
            out[1] = to_byte(green);
            out[2] = to_byte(blue);
        }
    }
}

/* Columns do not meet here, so a row is just bytes: sums of a stretch of them stay in registers and
 * the first-level cache, and the compiler turns the inner loops into vector code. rows, of
 * row_bytes and stride_bytes apart, begin at row first_row -> (n_outputs, row_bytes). */
static void pass_vertical(const uint8_t *rows, size_t stride_bytes, int first_row, size_t row_bytes,
                          const struct weights *weights, uint8_t *out)
{
    enum { STRETCH = 256 };
    int32_t sums[STRETCH];
    for (int y = 0; y < weights->n_outputs; y++, out += row_bytes) {
        const struct span span = weights->spans[y];
        const int32_t *taps = weights->taps + (ptrdiff_t)y * weights->n_taps;
        const uint8_t *from = rows + stride_bytes * (size_t)(span.first - first_row);
        for (size_t start = 0; start < row_bytes; start += STRETCH) {
            const size_t n = row_bytes - start < STRETCH ? row_bytes - start : STRETCH;
            for (size_t i = 0; i < n; i++)
                sums[i] = 1 << (FRACTION_BITS - 1);
            for (int k = 0; k < span.n; k++) {
                const uint8_t *row = from + stride_bytes * (size_t)k + start;
                const int32_t tap = taps[k];
                for (size_t i = 0; i < n; i++)
                    sums[i] += row[i] * tap;
            }
            for (size_t i = 0; i < n; i++)
                out[start + i] = to_byte(sums[i]);
        }
    }
}

/* ---- the call -------------------------------------------------------------------------------- */

/* Set *at aside in a workspace of which *used bytes are taken; only counts when base is NULL. */
static void *carve(uint8_t *base, size_t *used, size_t count, size_t item_bytes)
{
    size_t start = (*used + 15) & ~(size_t)15;
    *used = start + count * item_bytes;
    return base == NULL ? NULL : base + start;
}

static void carve_weights(uint8_t *base, size_t *used, struct weights *weights)
{
    size_t n_outputs = (size_t)weights->n_outputs, n_taps = (size_t)weights->n_taps;
    weights->real = carve(base, used, n_taps, sizeof *weights->real);
    weights->spans = carve(base, used, n_outputs, sizeof *weights->spans);
    weights->taps = carve(base, used, n_outputs * n_taps, sizeof *weights->taps);
}

static bool is_moved(const struct axis *axis)
{
    return axis->n_inputs != axis->n_outputs || axis->low != 0 ||
           axis->high != (float)axis->n_outputs;
}

static tdm_status check(const tdmi_image *source, const struct tdmi_resize *how, tdm_error *err)
{
    const struct tdmi_box *box = &how->box;
    if (source->pixels == NULL || how->width < 1 || how->height < 1)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot resize a picture of %d x %d pixels to %d x %d: both sizes must be "
                        "1 or more",
                        source->width, source->height, how->width, how->height);
    if (!(box->x >= 0 && box->y >= 0 && box->width > 0 && box->height > 0 &&
          box->x + box->width <= source->width && box->y + box->height <= source->height))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "cannot resize the box of %g x %g pixels at (%g, %g): it is not inside the "
                        "picture of %d x %d",
                        box->width, box->height, box->x, box->y, source->width, source->height);
    if (how->part_x < 0 || how->part_y < 0 || how->part_width < 1 || how->part_height < 1 ||
        how->part_width > how->width - how->part_x || how->part_height > how->height - how->part_y)
        return TDM_FAIL(
            err, TDM_E_USAGE, "cannot take %d x %d pixels at (%d, %d) of a picture of %d x %d",
            how->part_width, how->part_height, how->part_x, how->part_y, how->width, how->height);
    return TDM_OK;
}

static tdm_status copy_part(const tdmi_image *source, const struct tdmi_resize *how,
                            tdmi_image *target, tdm_error *err)
{
    tdm_status status = tdmi_image_reshape(target, how->part_width, how->part_height, err);
    if (status != TDM_OK)
        return status;
    const size_t row_bytes = 3 * (size_t)target->width;
    for (size_t y = 0; y < (size_t)target->height; y++)
        memcpy(target->pixels + row_bytes * y,
               source->pixels +
                   3 * ((size_t)source->width * ((size_t)how->part_y + y) + (size_t)how->part_x),
               row_bytes);
    return TDM_OK;
}

/* The inputs that a pass reads, from the first to the last. */
static struct span inputs_of(const struct weights *weights)
{
    struct span first = weights->spans[0], last = weights->spans[weights->n_outputs - 1];
    return (struct span){first.first, last.first + last.n - first.first};
}

/* An upper bound of their number, known before the weights are. */
static size_t inputs_bound(const struct axis *axis, const struct weights *weights)
{
    double inputs = ceil(axis->part_output * scale_of(axis)) + weights->n_taps + 1;
    return inputs < axis->n_inputs ? (size_t)inputs : (size_t)axis->n_inputs;
}

static bool is_vertical_first(const tdmi_image *source, const struct tdmi_resize *how)
{
    return how->height < source->height &&
           (int64_t)source->height - how->height > 2 * ((int64_t)source->width - how->width);
}

/* Both passes; between is room for what the first one makes. */
static void resample(const tdmi_image *source, bool is_turned, const struct weights *horizontal,
                     const struct weights *vertical, uint8_t *between, tdmi_image *target)
{
    const size_t source_bytes = 3 * (size_t)source->width, row_bytes = 3 * (size_t)target->width;
    if (is_turned) {
        const struct span columns = inputs_of(horizontal);
        const size_t between_bytes = 3 * (size_t)columns.n;
        pass_vertical(source->pixels + 3 * (ptrdiff_t)columns.first, source_bytes, 0, between_bytes,
                      vertical, between);
        pass_horizontal(between, between_bytes, columns.first, target->height, horizontal,
                        target->pixels);
    } else {
        const struct span rows = inputs_of(vertical);
        pass_horizontal(source->pixels + source_bytes * (size_t)rows.first, source_bytes, 0, rows.n,
                        horizontal, between);
        pass_vertical(between, row_bytes, rows.first, row_bytes, vertical, target->pixels);
    }
}

tdm_status tdmi_image_resize_part(const tdmi_image *source, const struct tdmi_resize *how,
                                  tdmi_image *target, tdm_error *err)
{
    tdm_status status = check(source, how, err);
    if (status != TDM_OK)
        return status;
    const struct axis across = {source->width,     how->width,
                                how->part_x,       how->part_width,
                                (float)how->box.x, (float)(how->box.x + how->box.width)};
    const struct axis down = {source->height,    how->height,
                              how->part_y,       how->part_height,
                              (float)how->box.y, (float)(how->box.y + how->box.height)};
    if (!is_moved(&across) && !is_moved(&down))
        return copy_part(source, how, target, err);

    /* An axis that keeps its scale and is wanted whole needs no pass. */
    const bool has_across = is_moved(&across) || how->part_width != how->width;
    const bool has_down = is_moved(&down) || how->part_height != how->height;
    const struct filter *filter = &filters[how->filter];
    struct weights horizontal = {.n_outputs = how->part_width, .n_taps = taps_of(&across, filter)};
    struct weights vertical = {.n_outputs = how->part_height, .n_taps = taps_of(&down, filter)};
    const bool is_turned = is_vertical_first(source, how);
    const size_t source_bytes = 3 * (size_t)source->width, row_bytes = 3 * (size_t)how->part_width;
    const size_t target_bytes = row_bytes * (size_t)how->part_height;
    const size_t between_bytes = is_turned ? 3 * inputs_bound(&across, &horizontal) : row_bytes;
    const size_t between_rows =
        is_turned ? (size_t)how->part_height : inputs_bound(&down, &vertical);

    size_t used = target_bytes; /* first only count, then set aside */
    carve_weights(NULL, &used, &horizontal);
    carve_weights(NULL, &used, &vertical);
    (void)carve(NULL, &used, between_rows, between_bytes);
    status = tdmi_image_reserve(target, used, err);
    if (status == TDM_OK)
        status = tdmi_image_reshape(target, how->part_width, how->part_height, err);
    if (status != TDM_OK)
        return status;
    used = target_bytes;
    carve_weights(target->pixels, &used, &horizontal);
    carve_weights(target->pixels, &used, &vertical);
    uint8_t *between = carve(target->pixels, &used, between_rows, between_bytes);

    weigh(&across, filter, &horizontal);
    weigh(&down, filter, &vertical);
    if (has_across && has_down)
        resample(source, is_turned, &horizontal, &vertical, between, target);
    else if (has_across)
        pass_horizontal(source->pixels, source_bytes, 0, source->height, &horizontal,
                        target->pixels);
    else
        pass_vertical(source->pixels, source_bytes, 0, row_bytes, &vertical, target->pixels);
    return TDM_OK;
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
