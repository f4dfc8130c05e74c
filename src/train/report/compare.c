/*
 * B against A on the same images. Images are the same when content and class are; both lists are
 * sorted by these and must be equal to the last entry, or no test is computed: a test on the part
 * that two runs share would be one of other images than either run was chosen by.
 */
#include "base/scope.h"
#include "base/sized.h"
#include "train/report/review.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct evaluated {
    uint64_t content;
    int32_t label; /* in A's classes; -1: A lacks it */
    bool is_right;
};

static int by_picture(const void *a, const void *b)
{
    const struct evaluated *left = a, *right = b;
    if (left->content != right->content)
        return left->content < right->content ? -1 : 1;
    if (left->label != right->label)
        return left->label < right->label ? -1 : 1;
    return (int)left->is_right - (int)right->is_right;
}

struct named {
    const char *name;
    int index;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* map[class of b] is the class of a with this name, or -1. */
static void match_classes(const tdmi_outcomes *a, const tdmi_outcomes *b, struct named *sorted,
                          int *map)
{
    for (int c = 0; c < a->n_classes; c++)
        sorted[c] = (struct named){a->classes[c], c};
    qsort(sorted, (size_t)a->n_classes, sizeof *sorted, by_name);
    for (int c = 0; c < b->n_classes; c++) {
        const struct named key = {b->classes[c], -1};
        const struct named *found =
            bsearch(&key, sorted, (size_t)a->n_classes, sizeof *sorted, by_name);
        map[c] = found ? found->index : -1;
    }
}

static void sort_pictures(const tdmi_outcomes *outcomes, const int *map, struct evaluated *pictures)
{
    for (int64_t i = 0; i < outcomes->n; i++) {
        const int label = outcomes->labels[i];
        pictures[i] = (struct evaluated){outcomes->contents[i], map ? map[label] : label,
                                         label == outcomes->predicted[i]};
    }
    qsort(pictures, (size_t)outcomes->n, sizeof *pictures, by_picture);
}

/* false, and why, where the images differ. */
static bool pair_up(const struct evaluated *a, const struct evaluated *b, int64_t n,
                    struct tdm_comparison *comparison)
{
    for (int64_t i = 0; i < n; i++) {
        if (a[i].content == 0 || a[i].content != b[i].content || a[i].label != b[i].label) {
            snprintf(comparison->reason, sizeof comparison->reason,
                     "they were evaluated on different images");
            return false;
        }
        comparison->both += a[i].is_right && b[i].is_right;
        comparison->only_a += a[i].is_right && !b[i].is_right;
        comparison->only_b += !a[i].is_right && b[i].is_right;
        comparison->neither += !a[i].is_right && !b[i].is_right;
    }
    return true;
}

static void conclude(struct tdm_comparison *comparison)
{
    const int64_t only_a = comparison->only_a, only_b = comparison->only_b, n = comparison->n;
    comparison->p = tdm_mcnemar_exact(only_a, only_b);
    comparison->difference = (double)(only_b - only_a) / (double)n;
    comparison->interval = tdm_paired_interval(only_a, only_b, n);
    comparison->verdict = "cannot tell";
    if (n < TDM_COMPARE_LEAST) {
        snprintf(comparison->reason, sizeof comparison->reason,
                 "%lld images are fewer than the %d that a verdict needs", (long long)n,
                 TDM_COMPARE_LEAST);
        return;
    }
    comparison->is_better = comparison->p < 0.05 && only_b > only_a;
    comparison->is_worse = comparison->p < 0.05 && only_b < only_a;
    comparison->is_no_loss = comparison->interval.low > -TDM_COMPARE_MARGIN;
    if (comparison->is_better)
        comparison->verdict = "better";
    else if (comparison->is_worse)
        comparison->verdict = "worse";
    else if (comparison->is_no_loss)
        comparison->verdict = "no loss";
    else
        snprintf(comparison->reason, sizeof comparison->reason,
                 "the test does not separate them, and a loss of more than %g of 100 images is not "
                 "excluded",
                 100.0 * TDM_COMPARE_MARGIN);
}

static tdm_status compare(const tdmi_outcomes *a, const tdmi_outcomes *b,
                          struct tdm_comparison *comparison, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) struct evaluated *left = NULL;
    TDMI_AT_END(tdmi_free_at) struct evaluated *right = NULL;
    TDMI_AT_END(tdmi_free_at) struct named *sorted = NULL;
    TDMI_AT_END(tdmi_free_at) int *map = NULL;
    TDMI_TRY(TDMI_NEW(left, a->n, err));
    TDMI_TRY(TDMI_NEW(right, b->n, err));
    TDMI_TRY(TDMI_NEW(sorted, a->n_classes, err));
    TDMI_TRY(TDMI_NEW(map, b->n_classes, err));
    match_classes(a, b, sorted, map);
    sort_pictures(a, NULL, left);
    sort_pictures(b, map, right);
    comparison->n = a->n;
    comparison->is_comparable = pair_up(left, right, a->n, comparison);
    if (comparison->is_comparable)
        conclude(comparison);
    else
        comparison->n = comparison->both = comparison->only_a = comparison->only_b =
            comparison->neither = 0;
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
    if (left->outcomes.n != right->outcomes.n) {
        snprintf(comparison->reason, sizeof comparison->reason,
                 "they were evaluated on different images: %lld and %lld",
                 (long long)left->outcomes.n, (long long)right->outcomes.n);
        return TDM_OK;
    }
    return TDM_WRAP(err, compare(&left->outcomes, &right->outcomes, comparison, err),
                    "comparing %s with %s", left->summary.path, right->summary.path);
}
