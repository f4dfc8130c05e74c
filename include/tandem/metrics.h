/*
 * Counts of an evaluation and what they prove: by class, by pairs of classes, and how well its
 * probabilities are calibrated. All of it follows from whole numbers and three sums that are added
 * in the order of the images, so it is the same at any number of threads. Every accuracy that
 * tandem reports carries n and a Wilson interval; every "better" rests on a paired test on the same
 * images. Counts are of images; intervals and tests rest on distinct ones: of images with equal
 * content one counts, a wrong one where they differ.
 */
#ifndef TANDEM_METRICS_H
#define TANDEM_METRICS_H

#include "tandem/api.h"
#include "tandem/event.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- intervals and tests --------------------------------------------------------------------- */

typedef struct tdm_interval {
    double low, high;
} tdm_interval;

/* The 95 % Wilson score interval of correct out of n; [0, 1] when n is 0. */
TDM_API tdm_interval tdm_wilson(int64_t correct, int64_t n);

/* Exact two-sided McNemar test: only_a images right in A alone, only_b in B alone. Returns the
 * probability of a split at least this uneven when A and B are equally good; 1 when both are 0. */
TDM_API double tdm_mcnemar_exact(int64_t only_a, int64_t only_b);

/* The 95 % score interval (Tango 1998) of how much larger B's rate is than A's on the same n
 * images: around (only_b - only_a) / n. It fits McNemar's test, holds its level at few discordant
 * images and is never empty where there are none. [-1, 1] when n is 0. */
TDM_API tdm_interval tdm_paired_interval(int64_t only_a, int64_t only_b, int64_t n);

/* Streaming mean and variance (Welford). Start from a zeroed object. */
typedef struct tdm_moments {
    int64_t n;
    double mean, m2;
} tdm_moments;

TDM_API void tdm_moments_add(tdm_moments *moments, double value);
/* Sample variance (n - 1); 0 below two values. */
TDM_API double tdm_moments_variance(const tdm_moments *moments);

/* ---- metrics --------------------------------------------------------------------------------- */

struct tdm_class_score {
    const char *label;  /* lives as long as the model */
    int64_t n, correct; /* images of this class, and those predicted as it */
    int64_t predicted;  /* images of any class predicted as it */
    int64_t n_distinct, correct_distinct, predicted_distinct;
};

/* Images by the probability of their predicted class. */
enum { TDM_CALIBRATION_BINS = 15 };
struct tdm_calibration_bin { /* of [k / 15, (k + 1) / 15), the last with 1 */
    int64_t n, correct;
    double confidence; /* mean probability; 0 where n is 0 */
    int64_t n_distinct, correct_distinct;
};

struct tdm_confusion {
    int label, predicted;
    int64_t n; /* at least 1 */
};

struct tdm_metrics {
    tdm_score score;
    int64_t top5_correct;  /* the label is among the five likeliest; -1 with at most five classes */
    int64_t top5_distinct; /* likewise, of the distinct images */
    /* Mean of the classes' recalls, those without images left out, and its 95 % interval: the
     * classes' Wilson intervals put together by their squared distances (Zou and Donner 2008). */
    double balanced_accuracy;
    tdm_interval balanced;
    double calibration_error; /* mean distance of confidence and accuracy, weighted with n */
    struct tdm_calibration_bin bins[TDM_CALIBRATION_BINS];
    int n_classes;
    struct tdm_class_score *per_class;
    struct tdm_confusion *confusion; /* every pair with images, by label and then predicted */
    int64_t n_confusion;
};

/* As members of the object that is open: those of a score, "top5_correct", "top5", "top5_low",
 * "top5_high", "balanced_accuracy" …, "calibration_error". Small enough for a line an epoch. */
TDM_API void tdm_metrics_summary_to_json(const struct tdm_metrics *metrics,
                                         tdm_json_writer *writer);
/* These and "per_class", "calibration" and "confusion": rows of counts, a row a label; null above
 * 1,000 classes. */
TDM_API void tdm_metrics_to_json(const struct tdm_metrics *metrics, tdm_json_writer *writer);

/* The parts that the intervals of a score and of the balanced accuracy belong to: those of the
 * distinct images, where accuracy and balanced_accuracy are of all. 0 where there are no images. */
TDM_API double tdm_accuracy_distinct(const tdm_score *score);
TDM_API double tdm_balanced_distinct(const struct tdm_metrics *metrics);

/* Write at most so many classes (with images) of the lowest recall, or pairs most often confused,
 * worst first, into the caller's array; return their number. */
TDM_API int tdm_metrics_worst_classes(const struct tdm_metrics *metrics, int most, int *classes);
TDM_API int tdm_metrics_worst_confusions(const struct tdm_metrics *metrics, int most,
                                         struct tdm_confusion *confusions);

TDM_API void tdm_metrics_release(struct tdm_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
