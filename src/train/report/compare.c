/*
 * B against A on the same images. The verdict is McNemar's exact test first, then Tango's interval.
 * Where the test says p < 0.05 the interval excludes 0; the reverse does not hold, as the exact
 * test is the more careful one.
 */
#include "base/scope.h"
#include "base/sized.h"
#include "train/evaluate/pairs.h"
#include "train/report/review.h"

#include <stdio.h>

static double points(double part)
{
    return 100.0 * part;
}

static void choose_verdict(struct tdm_comparison *comparison)
{
    const tdm_interval interval = comparison->interval;
    const bool has_one_sign = interval.low > 0.0 || interval.high < 0.0;
    char *reason = comparison->reason;
    const size_t reason_bytes = sizeof comparison->reason;
    if (comparison->is_better || comparison->is_worse) {
        comparison->verdict = comparison->is_better ? "better" : "worse";
        return;
    }
    if (has_one_sign)
        snprintf(reason, reason_bytes,
                 "the interval excludes 0, but the exact test does not (p = %.2g): more validation "
                 "images would decide",
                 comparison->p);
    if (comparison->is_no_loss) {
        comparison->verdict = "no loss";
    } else if (has_one_sign) {
        comparison->verdict = "perhaps worse";
    } else {
        comparison->verdict = "cannot tell";
        snprintf(reason, reason_bytes,
                 "the interval reaches from a loss of %.1f to a gain of %.1f points: more "
                 "validation images narrow it",
                 points(-interval.low), points(interval.high));
    }
}

static void conclude(struct tdm_comparison *comparison)
{
    const int64_t only_a = comparison->only_a, only_b = comparison->only_b;
    const int64_t n = comparison->n_distinct;
    comparison->p = tdm_mcnemar_exact(only_a, only_b);
    comparison->difference = (double)(only_b - only_a) / (double)n;
    comparison->interval = tdm_paired_interval(only_a, only_b, n);
    comparison->is_better = comparison->p < 0.05 && only_b > only_a;
    comparison->is_worse = comparison->p < 0.05 && only_b < only_a;
    comparison->is_no_loss = comparison->interval.low > -TDM_COMPARE_MARGIN;
    choose_verdict(comparison);
}

static tdm_status compare(const tdmi_outcomes *a, const tdmi_outcomes *b,
                          struct tdm_comparison *comparison, tdm_error *err)
{
    struct tdmi_pairs pairs;
    if (a->n != b->n) {
        snprintf(comparison->reason, sizeof comparison->reason,
                 "they were evaluated on different images: %lld and %lld", (long long)a->n,
                 (long long)b->n);
        return TDM_OK;
    }
    TDMI_TRY(tdmi_outcomes_pair(a, b, &pairs, &comparison->is_comparable, err));
    if (!comparison->is_comparable) {
        snprintf(comparison->reason, sizeof comparison->reason,
                 "they were evaluated on different images");
        return TDM_OK;
    }
    comparison->n = a->n;
    comparison->both = pairs.both;
    comparison->only_a = pairs.only_a;
    comparison->only_b = pairs.only_b;
    comparison->neither = pairs.neither;
    comparison->n_distinct = pairs.both + pairs.only_a + pairs.only_b + pairs.neither;
    conclude(comparison);
    return TDM_OK;
}

tdm_status tdm_runs_compare(const tdm_runs *runs, size_t a, size_t b,
                            struct tdm_comparison *comparison, tdm_error *err)
{
    TDMI_RESULT(tdm_comparison, comparison, err);
    *comparison = (struct tdm_comparison){.verdict = "not comparable", .p = 1.0};
    if (a >= runs->n || b >= runs->n)
        return TDM_FAIL(err, TDM_E_BUG, "comparing run %zu with run %zu of %zu", a, b, runs->n);
    const struct tdmi_review_run *left = &runs->runs[a], *right = &runs->runs[b];
    if (!left->summary.metrics || !right->summary.metrics || left->outcomes.n == 0) {
        snprintf(comparison->reason, sizeof comparison->reason,
                 "%s run has no record of the outcomes of its images",
                 left->summary.metrics && left->outcomes.n > 0 ? "the second" : "the first");
        return TDM_OK;
    }
    return TDM_WRAP(err, compare(&left->outcomes, &right->outcomes, comparison, err),
                    "comparing %s with %s", left->summary.path, right->summary.path);
}
