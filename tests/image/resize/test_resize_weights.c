/*
 * The weights are Pillow's definition, computed here again the slow way, and groups begin where
 * they should.
 */
#include "image/pictures.h"
#include "image/resize/weights.h"
#include "unit.h"
#include <math.h>

static double sinc(double x)
{
    return x == 0.0 ? 1.0 : sin(x * M_PI) / (x * M_PI);
}

static double weight_of(enum tdmi_filter filter, double x)
{
    const double a = -0.5;
    if (filter == TDMI_FILTER_LANCZOS)
        return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
    x = fabs(x);
    if (filter == TDMI_FILTER_BILINEAR)
        return x < 1.0 ? 1.0 - x : 0.0;
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

static void check_output(const struct tdmi_axis *axis, enum tdmi_filter filter, int i,
                         const struct tdmi_resize_weights *weights)
{
    static const double supports[] = {
        [TDMI_FILTER_LANCZOS] = 3, [TDMI_FILTER_BICUBIC] = 2, [TDMI_FILTER_BILINEAR] = 1};
    const double scale = (double)(axis->high - axis->low) / axis->n_outputs;
    const double support = supports[filter] * fmax(scale, 1.0), narrow = 1.0 / fmax(scale, 1.0);
    const double centre = axis->low + (axis->first_output + i + 0.5) * scale;
    int first = (int)fmax((int)(centre - support + 0.5), 0);
    int end = (int)fmin((int)(centre + support + 0.5), axis->n_inputs);
    double sum = 0;
    for (int k = first; k < end; k++)
        sum += weight_of(filter, (k - centre + 0.5) * narrow);
    const int room = 4 * weights->n_groups, start = weights->spans[i].first;
    assert_in_range(start, 0, first);
    assert_true(end <= start + 4 * weights->spans[i].n && weights->spans[i].n <= weights->n_groups);
    for (int k = 0; k < room; k++) {
        double value = 0;
        if (k + start >= first && k + start < end)
            value = weight_of(filter, (k + start - centre + 0.5) * narrow) / sum;
        int wanted = (int)(value * (1 << 22) + (value < 0 ? -0.5 : 0.5));
        if (weights->taps[i * room + k] != wanted)
            fail_msg("%d inputs to %d, output %d, weight %d: %d, not %d", axis->n_inputs,
                     axis->n_outputs, i, k, weights->taps[i * room + k], wanted);
    }
}

static void check_axis(const struct tdmi_axis *axis, enum tdmi_filter filter)
{
    const int groups = tdmi_weights_max_groups(axis, filter);
    struct tdmi_resize_weights weights = {
        .spans = malloc((size_t)axis->part_output * sizeof *weights.spans),
        .taps = malloc((size_t)axis->part_output * (size_t)groups * 16),
        .real = malloc(tdmi_weights_real(groups) * sizeof(double)),
    };
    assert_true(weights.spans != NULL && weights.taps != NULL && weights.real != NULL);
    for (int grouping = TDMI_GROUPS_ANYWHERE; grouping <= TDMI_GROUPS_AT_FOURS; grouping++) {
        tdmi_weights_fill(axis, filter, (enum tdmi_grouping)grouping, &weights);
        assert_in_range(weights.n_groups, 1, groups);
        for (int i = 0; i < weights.n_outputs; i++) {
            check_output(axis, filter, i, &weights);
            const struct tdmi_span *span = &weights.spans[i];
            if (grouping == TDMI_GROUPS_AT_FOURS)
                assert_int_equal(span->first % 4, 0);
            else /* no group needs more than three inputs that do not exist */
                assert_true(span->first + 4 * span->n <= axis->n_inputs + 3);
        }
    }
    free(weights.spans);
    free(weights.taps);
    free(weights.real);
}

TEST(they_are_the_definition_to_the_last_bit)
{
    for (int filter = TDMI_FILTER_LANCZOS; filter <= TDMI_FILTER_BILINEAR; filter++) {
        for (int n_inputs = 1; n_inputs < 40; n_inputs++)
            for (int n_outputs = 1; n_outputs < 40; n_outputs += 3)
                check_axis(
                    &(struct tdmi_axis){n_inputs, n_outputs, 0, n_outputs, 0.0f, (float)n_inputs},
                    (enum tdmi_filter)filter);
        for (int n_inputs = 100; n_inputs < 3000; n_inputs += 77)
            check_axis(&(struct tdmi_axis){n_inputs, 299, 0, 299, 0.0f, (float)n_inputs},
                       (enum tdmi_filter)filter);
        check_axis(&(struct tdmi_axis){500, 333, 40, 211, 3.3f, 441.7f}, (enum tdmi_filter)filter);
    }
}

TEST_MAIN(NULL, NULL)
