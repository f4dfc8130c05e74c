/*
 * Metrics: one pass over the outcomes counts, the rest are quotients of counts. Pairs of classes
 * are counted by sorting one number for each image, so memory grows with images and not with the
 * square of classes.
 */
#include "train/evaluate/metrics.h"
#include "base/hash/hash.h"
#include "base/scope.h"
#include "train/evaluate/score.h"

#include <math.h>
#include <string.h>

/* A confidence that is not a number falls into the first bin. */
static int bin_of(float confidence)
{
    if (!(confidence > 0.0f))
        return 0;
    return confidence < 1.0f ? (int)((double)confidence * TDM_CALIBRATION_BINS)
                             : TDM_CALIBRATION_BINS - 1;
}

/* counts: see tdmi_outcomes_distinct. */
static void count(const tdmi_outcomes *outcomes, const bool *counts, struct tdm_metrics *metrics)
{
    int64_t correct = 0, top5 = 0, n_distinct = 0, correct_distinct = 0, top5_distinct = 0;
    double loss = 0.0;
    for (int64_t i = 0; i < outcomes->n; i++) {
        const bool is_right = outcomes->labels[i] == outcomes->predicted[i];
        struct tdm_class_score *class = &metrics->per_class[outcomes->labels[i]];
        struct tdm_calibration_bin *bin = &metrics->bins[bin_of(outcomes->confidences[i])];
        class->n++;
        class->correct += is_right;
        metrics->per_class[outcomes->predicted[i]].predicted++;
        bin->n++;
        bin->correct += is_right;
        bin->confidence += (double)outcomes->confidences[i];
        correct += is_right;
        top5 += outcomes->ranks[i] < 5;
        loss += (double)outcomes->losses[i];
        if (!counts[i])
            continue;
        class->n_distinct++;
        class->correct_distinct += is_right;
        metrics->per_class[outcomes->predicted[i]].predicted_distinct++;
        bin->n_distinct++;
        bin->correct_distinct += is_right;
        n_distinct++;
        correct_distinct += is_right;
        top5_distinct += outcomes->ranks[i] < 5;
    }
    metrics->score = tdmi_score_of(outcomes->n, correct, loss);
    tdmi_score_count_distinct(&metrics->score, n_distinct, correct_distinct);
    metrics->top5_correct = metrics->n_classes > 5 ? top5 : -1;
    metrics->top5_distinct = metrics->n_classes > 5 ? top5_distinct : -1;
}

static void calibrate(struct tdm_metrics *metrics)
{
    double distance = 0.0;
    for (int b = 0; b < TDM_CALIBRATION_BINS; b++) {
        struct tdm_calibration_bin *bin = &metrics->bins[b];
        if (bin->n == 0)
            continue;
        distance += fabs((double)bin->correct - bin->confidence);
        bin->confidence /= (double)bin->n;
    }
    metrics->calibration_error = metrics->score.n > 0 ? distance / (double)metrics->score.n : 0.0;
}

/* Recall of a class that has images, of the distinct ones. */
static double recall_distinct(const struct tdm_class_score *class)
{
    return class->n_distinct > 0 ? (double)class->correct_distinct / (double)class->n_distinct
                                 : 0.0;
}

double tdm_accuracy_distinct(const tdm_score *score)
{
    return score->n_distinct > 0 ? (double)score->correct_distinct / (double)score->n_distinct
                                 : 0.0;
}

double tdm_balanced_distinct(const struct tdm_metrics *metrics)
{
    double sum = 0.0;
    int n = 0;
    for (int c = 0; c < metrics->n_classes; c++)
        if (metrics->per_class[c].n_distinct > 0) {
            sum += recall_distinct(&metrics->per_class[c]);
            n++;
        }
    return n > 0 ? sum / n : 0.0;
}

/* The interval lies around the mean recall of distinct images. A class may have none: copies of
 * images that are counted in another. */
static void balance(struct tdm_metrics *metrics)
{
    double sum = 0.0, below = 0.0, above = 0.0;
    int n = 0, n_distinct = 0;
    for (int c = 0; c < metrics->n_classes; c++) {
        const struct tdm_class_score *class = &metrics->per_class[c];
        if (class->n == 0)
            continue;
        sum += (double)class->correct / (double)class->n;
        n++;
        if (class->n_distinct == 0)
            continue;
        const double recall = recall_distinct(class);
        const tdm_interval interval = tdm_wilson(class->correct_distinct, class->n_distinct);
        below += (recall - interval.low) * (recall - interval.low);
        above += (interval.high - recall) * (interval.high - recall);
        n_distinct++;
    }
    metrics->balanced = (tdm_interval){0.0, 1.0};
    if (n_distinct == 0)
        return;
    metrics->balanced_accuracy = sum / n;
    const double distinct = tdm_balanced_distinct(metrics);
    metrics->balanced.low = fmax(0.0, distinct - sqrt(below) / n_distinct);
    metrics->balanced.high = fmin(1.0, distinct + sqrt(above) / n_distinct);
}

static tdm_status pair_up(const tdmi_outcomes *outcomes, struct tdm_metrics *metrics,
                          tdm_error *err)
{
    const int64_t n = outcomes->n;
    int64_t n_pairs = 0;
    TDMI_AT_END(tdmi_free_at) uint64_t *pairs = NULL;
    TDMI_TRY(TDMI_NEW(pairs, n, err));
    for (int64_t i = 0; i < n; i++)
        pairs[i] = (uint64_t)outcomes->labels[i] << 32 | (uint64_t)outcomes->predicted[i];
    tdmi_hashes_sort(pairs, n);
    for (int64_t i = 0; i < n; i++)
        n_pairs += i == 0 || pairs[i] != pairs[i - 1];
    TDMI_TRY(TDMI_NEW(metrics->confusion, n_pairs, err));
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || pairs[i] != pairs[i - 1])
            metrics->confusion[metrics->n_confusion++] =
                (struct tdm_confusion){(int)(pairs[i] >> 32), (int)(pairs[i] & 0xffffffff), 0};
        metrics->confusion[metrics->n_confusion - 1].n++;
    }
    return TDM_OK;
}

tdm_status tdmi_metrics_of(const tdmi_outcomes *outcomes, const char *const *classes,
                           struct tdm_metrics *metrics, tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) bool *counts = NULL;
    *metrics = (struct tdm_metrics){.n_classes = outcomes->n_classes};
    TDMI_TRY(TDMI_NEW(counts, outcomes->n, err));
    TDMI_TRY(tdmi_outcomes_distinct(outcomes, counts, err));
    TDMI_TRY(TDMI_NEW(metrics->per_class, metrics->n_classes, err));
    for (int c = 0; c < metrics->n_classes; c++)
        metrics->per_class[c].label = classes[c];
    count(outcomes, counts, metrics);
    calibrate(metrics);
    balance(metrics);
    const tdm_status status = pair_up(outcomes, metrics, err);
    if (status != TDM_OK)
        tdm_metrics_release(metrics);
    return status;
}

void tdm_metrics_release(struct tdm_metrics *metrics)
{
    tdmi_free(metrics->confusion);
    tdmi_free(metrics->per_class);
    *metrics = (struct tdm_metrics){0};
}

/* ---- the worst classes and confusions -------------------------------------------------------- */

/* Order: lower accuracy of distinct images first, then more of them, then the order of the classes;
 * classes without any are last. */
static bool class_is_worse(const struct tdm_class_score *a, const struct tdm_class_score *b)
{
    if (a->n_distinct == 0 || b->n_distinct == 0)
        return a->n_distinct > b->n_distinct;
    const double left = (double)a->correct_distinct * (double)b->n_distinct,
                 right = (double)b->correct_distinct * (double)a->n_distinct;
    return left != right ? left < right : a->n_distinct > b->n_distinct;
}

int tdm_metrics_worst_classes(const struct tdm_metrics *metrics, int most, int *classes)
{
    int kept = 0;
    for (int c = 0; c < metrics->n_classes; c++) {
        const struct tdm_class_score *class = &metrics->per_class[c];
        int at = kept;
        if (class->n == 0)
            continue;
        while (at > 0 && class_is_worse(class, &metrics->per_class[classes[at - 1]]))
            at--;
        if (at == most)
            continue;
        kept += kept < most;
        memmove(classes + at + 1, classes + at, sizeof *classes * (size_t)(kept - 1 - at));
        classes[at] = c;
    }
    return kept;
}

int tdm_metrics_worst_confusions(const struct tdm_metrics *metrics, int most,
                                 struct tdm_confusion *confusions)
{
    int kept = 0;
    for (int64_t i = 0; i < metrics->n_confusion; i++) {
        const struct tdm_confusion pair = metrics->confusion[i];
        int at = kept;
        if (pair.label == pair.predicted)
            continue;
        while (at > 0 && pair.n > confusions[at - 1].n)
            at--;
        if (at == most)
            continue;
        kept += kept < most;
        memmove(confusions + at + 1, confusions + at, sizeof pair * (size_t)(kept - 1 - at));
        confusions[at] = pair;
    }
    return kept;
}
