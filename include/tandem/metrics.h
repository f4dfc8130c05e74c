/*
 * What is counted when a model is judged: by class, by pairs of classes, and how far its
 * probabilities can be believed. All of it follows from whole numbers and three sums that are added
 * in the order of the pictures, so it is the same at any number of threads.
 */
#ifndef TANDEM_METRICS_H
#define TANDEM_METRICS_H

#include "tandem/event.h"
#include "tandem/stats.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tdm_class_score {
    const char *label;  /* lives as long as the model */
    int64_t n, correct; /* pictures of this class, and how many of them were taken for it */
    int64_t predicted;  /* pictures of any class that were taken for it */
};

/* Pictures by the probability of the class they were taken for. */
enum { TDM_CALIBRATION_BINS = 15 };
struct tdm_calibration_bin { /* of [k / 15, (k + 1) / 15), the last with 1 */
    int64_t n, correct;
    double confidence; /* mean probability; 0 where n is 0 */
};

struct tdm_confusion {
    int label, predicted;
    int64_t n; /* at least 1 */
};

struct tdm_metrics {
    tdm_score score;
    int64_t top5_correct; /* the label is among the five likeliest; -1 with at most five classes */
    /* Mean of the classes' recalls, those without pictures left out, and its 95 % interval: the
     * classes' Wilson intervals put together by their squared distances (Zou and Donner 2008). */
    double balanced_accuracy;
    tdm_interval balanced;
    double calibration_error; /* mean distance of confidence and accuracy, weighted with n */
    struct tdm_calibration_bin bins[TDM_CALIBRATION_BINS];
    int n_classes;
    struct tdm_class_score *per_class;
    struct tdm_confusion *confusion; /* every pair that was met, by label and then predicted */
    int64_t n_confusion;
};

/* As members of the object that is open: those of a score, "top5_correct", "top5", "top5_low",
 * "top5_high", "balanced_accuracy" …, "calibration_error". Small enough for a line an epoch. */
TDM_API void tdm_metrics_summary_to_json(const struct tdm_metrics *metrics,
                                         tdm_json_writer *writer);
/* These and "per_class", "calibration" and "confusion": rows of counts, a row a label; null above
 * 1,000 classes. */
TDM_API void tdm_metrics_to_json(const struct tdm_metrics *metrics, tdm_json_writer *writer);

/* The classes (with pictures) that are least often right, and the pairs most often mistaken, worst
 * first: at most so many into the caller's array. Returns how many. */
TDM_API int tdm_metrics_worst_classes(const struct tdm_metrics *metrics, int most, int *classes);
TDM_API int tdm_metrics_worst_confusions(const struct tdm_metrics *metrics, int most,
                                         struct tdm_confusion *confusions);

TDM_API void tdm_metrics_release(struct tdm_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
