/*
 * Weights equal Pillow's: computed in double, normalised to sum to 1, rounded to 22 fractional
 * bits.
 *
 * Lanczos needs two sines a weight, which for a small image would cost more than resampling it.
 * So they are first computed by a polynomial, many at once, whose error is far below a rounding
 * step. Where a weight falls so close to the middle of two steps that the error could decide, that
 * output's weights are computed again as Pillow does it: the integers are the same in every case.
 */
#include "image/resize/weights.h"
#include "base/system/multiversion.h"
#include <math.h>
#include <string.h>

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

/* ---- Lanczos, fast --------------------------------------------------------------------------- */

/* sin(pi x) up to its sign: x less the nearest integer, then the Taylor series, whose first term
 * left out is below 2e-18. The sign is that of the integer's lowest bit, which adding a large
 * number moves to the bottom of the sum. */
static inline double sine_of_pi(double x)
{
    const double integers = 6755399441055744.0; /* 1.5 * 2^52 */
    double shifted = x + integers;
    double r = x - (shifted - integers), square = r * r;
    double sum = 5.392664662608129e-10;
    sum = sum * square - 2.2948428997269873e-08;
    sum = sum * square + 7.952054001475513e-07;
    sum = sum * square - 2.1915353447830217e-05;
    sum = sum * square + 4.6630280576761255e-04;
    sum = sum * square - 7.3704309457143504e-03;
    sum = sum * square + 8.2145886611128230e-02;
    sum = sum * square - 5.9926452932079210e-01;
    sum = sum * square + 2.5501640398773450e+00;
    sum = sum * square - 5.1677127800499700e+00;
    sum = sum * square + 3.1415926535897930e+00;
    sum *= r;
    uint64_t bits, sign;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&sign, &sum, sizeof sign);
    sign ^= bits << 63;
    memcpy(&sum, &sign, sizeof sum);
    return sum;
}

/* Absolute errors stay below 1e-14. Near 0 the sine is as exact, relatively, as its argument. */
static inline double lanczos_by_series(double x)
{
    double square = x * x;
    double product = sine_of_pi(x) * sine_of_pi(x * (1.0 / 3.0));
    double weight = product * (3.0 / (M_PI * M_PI)) / (square + 1e-300);
    weight = square < 1e-30 ? 1.0 : weight;
    return square < 9.0 ? weight : 0.0;
}

/* ---- places ---------------------------------------------------------------------------------- */

static double scale_of(const struct tdmi_axis *axis)
{
    return (double)(axis->high - axis->low) / axis->n_outputs;
}

/* How far the filter is widened. */
static double stretch_of(const struct tdmi_axis *axis)
{
    double scale = scale_of(axis);
    return scale > 1.0 ? scale : 1.0;
}

int tdmi_weights_max_groups(const struct tdmi_axis *axis, enum tdmi_filter filter)
{
    double taps = ceil(filters[filter].support * stretch_of(axis)) * 2 + 1;
    int n = taps < axis->n_inputs ? (int)taps : axis->n_inputs;
    return n / TDMI_RESIZE_GROUP + 2; /* wherever the first one begins */
}

enum { LANES = 32 }; /* outputs whose weights are computed at once */

size_t tdmi_weights_real(int max_groups)
{
    return 2 * LANES * TDMI_RESIZE_GROUP * (size_t)max_groups; /* as numbers, as integers */
}

/* Where outputs lie among the inputs. */
struct places {
    double start, scale, support, per_stretch;
    int n_inputs;
};

static struct places places_of(const struct tdmi_axis *axis, const struct filter *filter)
{
    return (struct places){.start = axis->low,
                           .scale = scale_of(axis),
                           .support = filter->support * stretch_of(axis),
                           .per_stretch = 1.0 / stretch_of(axis),
                           .n_inputs = axis->n_inputs};
}

struct place { /* of one output */
    double centre;
    int first, n; /* the inputs under it */
};

static inline struct place place_at(const struct places *places, int output)
{
    struct place place = {places->start + (output + 0.5) * places->scale, 0, 0};
    int end = (int)(place.centre + places->support + 0.5);
    place.first = (int)(place.centre - places->support + 0.5);
    if (place.first < 0)
        place.first = 0;
    if (end > places->n_inputs)
        end = places->n_inputs;
    place.n = end - place.first;
    return place;
}

static void group(const struct tdmi_axis *axis, const struct places *places,
                  enum tdmi_grouping grouping, struct tdmi_resize_weights *weights)
{
    int widest = 0;
    for (int i = 0; i < weights->n_outputs; i++) {
        struct place place = place_at(places, axis->first_output + i);
        int lead = grouping == TDMI_GROUPS_AT_FOURS ? place.first % TDMI_RESIZE_GROUP : 0;
        int n = (lead + place.n + TDMI_RESIZE_GROUP - 1) / TDMI_RESIZE_GROUP;
        weights->spans[i] = (struct tdmi_span){place.first - lead, n};
        widest = n > widest ? n : widest;
    }
    weights->n_groups = widest;
    if (grouping == TDMI_GROUPS_AT_FOURS)
        return;
    int last = axis->n_inputs - TDMI_RESIZE_GROUP * widest;
    for (int i = 0; i < weights->n_outputs; i++) {
        struct tdmi_span *span = &weights->spans[i];
        if (span->first > last)
            span->first = last > 0 ? last : 0;
        span->n = widest;
    }
}

struct tdmi_span tdmi_weights_inputs(const struct tdmi_axis *axis,
                                     const struct tdmi_resize_weights *weights)
{
    struct tdmi_span first = weights->spans[0], last = weights->spans[weights->n_outputs - 1];
    int end = last.first + TDMI_RESIZE_GROUP * last.n;
    if (end > axis->n_inputs)
        end = axis->n_inputs;
    return (struct tdmi_span){first.first, end - first.first};
}

/* ---- weights --------------------------------------------------------------------------------- */

/* The definition, for one output. taps are zeros before. */
static void weigh_exactly(const struct place *place, const struct filter *filter,
                          double per_stretch, double *real, int32_t *taps)
{
    double sum = 0.0;
    for (int k = 0; k < place->n; k++) {
        real[k] = filter->weight((k + place->first - place->centre + 0.5) * per_stretch);
        sum += real[k];
    }
    for (int k = 0; k < place->n; k++) {
        double value = sum != 0.0 ? real[k] / sum : real[k];
        taps[k] = (int32_t)(value * (1 << TDMI_RESIZE_FRACTION_BITS) + (value < 0 ? -0.5 : 0.5));
    }
}

struct lanes {
    double centre[LANES], sum[LANES], worst[LANES];
    int first[LANES], n[LANES];
};

/* n_taps weights of LANES outputs -> taps (n_taps, LANES). worst is how far the farthest weight was
 * from the integer it became: at a half it could have been another one. */
TDMI_MULTIVERSION static void weigh_lanes(struct lanes *lanes, int n_taps, double per_stretch,
                                          double *restrict real, int32_t *restrict taps)
{
    double factor[LANES];
    for (int i = 0; i < LANES; i++)
        lanes->sum[i] = lanes->worst[i] = 0.0;
    for (int k = 0; k < n_taps; k++)
        for (int i = 0; i < LANES; i++) {
            double x = (k + lanes->first[i] - lanes->centre[i] + 0.5) * per_stretch;
            double weight = lanczos_by_series(x);
            weight = k < lanes->n[i] ? weight : 0.0;
            real[LANES * k + i] = weight;
            lanes->sum[i] += weight;
        }
    for (int i = 0; i < LANES; i++)
        factor[i] = (1 << TDMI_RESIZE_FRACTION_BITS) / lanes->sum[i];
    for (int k = 0; k < n_taps; k++)
        for (int i = 0; i < LANES; i++) {
            double value = real[LANES * k + i] * factor[i];
            int32_t tap = (int32_t)(value + (value < 0 ? -0.5 : 0.5));
            double distance = fabs(value - tap);
            taps[LANES * k + i] = tap;
            lanes->worst[i] = distance > lanes->worst[i] ? distance : lanes->worst[i];
        }
}

static void weigh_lanczos(const struct tdmi_axis *axis, const struct filter *filter,
                          const struct places *places, struct tdmi_resize_weights *weights)
{
    const int room = TDMI_RESIZE_GROUP * weights->n_groups;
    int32_t *found = (int32_t *)(weights->real + LANES * (ptrdiff_t)room);
    for (int begin = 0; begin < weights->n_outputs; begin += LANES) {
        struct lanes lanes;
        int n_taps = 1;
        for (int i = 0; i < LANES; i++) { /* past the last output: the last one again */
            int output = begin + i < weights->n_outputs ? begin + i : weights->n_outputs - 1;
            struct place place = place_at(places, axis->first_output + output);
            lanes.centre[i] = place.centre;
            lanes.first[i] = place.first;
            lanes.n[i] = place.n;
            n_taps = place.n > n_taps ? place.n : n_taps;
        }
        weigh_lanes(&lanes, n_taps, places->per_stretch, weights->real, found);
        for (int i = 0; i < LANES && begin + i < weights->n_outputs; i++) {
            int32_t *taps = weights->taps + (ptrdiff_t)(begin + i) * room +
                            (lanes.first[i] - weights->spans[begin + i].first);
            const struct place place = {lanes.centre[i], lanes.first[i], lanes.n[i]};
            if (!(lanes.worst[i] < 0.5 - 1e-5)) {
                weigh_exactly(&place, filter, places->per_stretch, weights->real, taps);
                continue;
            }
            for (int k = 0; k < place.n; k++)
                taps[k] = found[LANES * k + i];
        }
    }
}

void *tdmi_resize_carve(uint8_t *base, size_t *used, size_t count, size_t item_bytes)
{
    const size_t start =
        (*used + TDMI_RESIZE_ALIGNMENT - 1) / TDMI_RESIZE_ALIGNMENT * TDMI_RESIZE_ALIGNMENT;
    *used = start + count * item_bytes;
    return base ? base + start : NULL;
}

void tdmi_weights_carve(uint8_t *base, size_t *used, const struct tdmi_axis *axis,
                        enum tdmi_filter filter, struct tdmi_resize_weights *weights)
{
    const size_t n = (size_t)axis->part_output;
    const int groups = tdmi_weights_max_groups(axis, filter);
    weights->spans = tdmi_resize_carve(base, used, n, sizeof *weights->spans);
    weights->taps =
        tdmi_resize_carve(base, used, n * (size_t)groups * TDMI_RESIZE_GROUP, sizeof(int32_t));
    weights->real = tdmi_resize_carve(base, used, tdmi_weights_real(groups), sizeof(double));
}

void tdmi_weights_fill(const struct tdmi_axis *axis, enum tdmi_filter which,
                       enum tdmi_grouping grouping, struct tdmi_resize_weights *weights)
{
    const struct filter *filter = &filters[which];
    const struct places places = places_of(axis, filter);
    weights->n_outputs = axis->part_output;
    group(axis, &places, grouping, weights);
    const int room = TDMI_RESIZE_GROUP * weights->n_groups;
    memset(weights->taps, 0, (size_t)weights->n_outputs * (size_t)room * sizeof *weights->taps);
    if (filter->weight == lanczos) {
        weigh_lanczos(axis, filter, &places, weights);
        return;
    }
    for (int i = 0; i < weights->n_outputs; i++) {
        struct place place = place_at(&places, axis->first_output + i);
        weigh_exactly(&place, filter, places.per_stretch, weights->real,
                      weights->taps + (ptrdiff_t)i * room +
                          (place.first - weights->spans[i].first));
    }
}
