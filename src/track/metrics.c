/* Scores and metrics as JSON: one spelling for results, records and lines. */
#include "tandem/metrics.h"
#include "tandem/event.h"

#include <math.h>

enum { most_rows = 1000 };

void tdm_score_members_to_json(const tdm_score *score, tdm_json_writer *writer)
{
    tdm_json_integer(writer, "n", score->n);
    tdm_json_integer(writer, "n_distinct", score->n_distinct);
    tdm_json_integer(writer, "correct", score->correct);
    tdm_json_integer(writer, "correct_distinct", score->correct_distinct);
    tdm_json_number(writer, "accuracy", score->accuracy);
    tdm_json_number(writer, "low", score->low);
    tdm_json_number(writer, "high", score->high);
    tdm_json_number(writer, "loss", score->loss);
}

void tdm_score_to_json(const tdm_score *score, tdm_json_writer *writer, const char *key)
{
    tdm_json_object_begin(writer, key);
    tdm_score_members_to_json(score, writer);
    tdm_json_object_end(writer);
}

/* The counts are of distinct images. */
static void put_interval(tdm_json_writer *writer, const char *low, const char *high, int64_t part,
                         int64_t n)
{
    const tdm_interval interval = tdm_wilson(part, n);
    tdm_json_number(writer, low, interval.low);
    tdm_json_number(writer, high, interval.high);
}

/* null: nothing was there to be counted. */
static void put_quotient(tdm_json_writer *writer, const char *key, int64_t part, int64_t n)
{
    tdm_json_number(writer, key, n > 0 ? (double)part / (double)n : NAN);
}

void tdm_metrics_summary_to_json(const struct tdm_metrics *metrics, tdm_json_writer *writer)
{
    const int64_t n = metrics->score.n, top5 = metrics->top5_correct;
    tdm_score_members_to_json(&metrics->score, writer);
    if (top5 >= 0) {
        tdm_json_integer(writer, "top5_correct", top5);
        put_quotient(writer, "top5", top5, n);
        put_interval(writer, "top5_low", "top5_high", metrics->top5_distinct,
                     metrics->score.n_distinct);
    } else {
        tdm_json_null(writer, "top5_correct");
        tdm_json_null(writer, "top5");
        tdm_json_null(writer, "top5_low");
        tdm_json_null(writer, "top5_high");
    }
    tdm_json_number(writer, "balanced_accuracy", metrics->balanced_accuracy);
    tdm_json_number(writer, "balanced_low", metrics->balanced.low);
    tdm_json_number(writer, "balanced_high", metrics->balanced.high);
    tdm_json_number(writer, "calibration_error", metrics->calibration_error);
}

static void put_classes(const struct tdm_metrics *metrics, tdm_json_writer *writer)
{
    tdm_json_array_begin(writer, "per_class");
    for (int i = 0; i < metrics->n_classes; i++) {
        const struct tdm_class_score *class = &metrics->per_class[i];
        tdm_json_object_begin(writer, NULL);
        tdm_json_string(writer, "label", class->label);
        tdm_json_integer(writer, "n", class->n);
        tdm_json_integer(writer, "n_distinct", class->n_distinct);
        tdm_json_integer(writer, "correct", class->correct);
        tdm_json_integer(writer, "correct_distinct", class->correct_distinct);
        put_quotient(writer, "accuracy", class->correct, class->n);
        put_interval(writer, "low", "high", class->correct_distinct, class->n_distinct);
        put_quotient(writer, "recall", class->correct, class->n);
        tdm_json_integer(writer, "predicted", class->predicted);
        put_quotient(writer, "precision", class->correct, class->predicted);
        put_interval(writer, "precision_low", "precision_high", class->correct_distinct,
                     class->predicted_distinct);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
}

static void put_calibration(const struct tdm_metrics *metrics, tdm_json_writer *writer)
{
    tdm_json_array_begin(writer, "calibration");
    for (int b = 0; b < TDM_CALIBRATION_BINS; b++) {
        const struct tdm_calibration_bin *bin = &metrics->bins[b];
        tdm_json_object_begin(writer, NULL);
        tdm_json_integer(writer, "n", bin->n);
        tdm_json_integer(writer, "correct", bin->correct);
        tdm_json_number(writer, "confidence", bin->n > 0 ? bin->confidence : NAN);
        tdm_json_object_end(writer);
    }
    tdm_json_array_end(writer);
}

static void put_confusion(const struct tdm_metrics *metrics, tdm_json_writer *writer)
{
    int64_t at = 0;
    if (metrics->n_classes > most_rows) {
        tdm_json_null(writer, "confusion");
        return;
    }
    tdm_json_array_begin(writer, "confusion");
    for (int label = 0; label < metrics->n_classes; label++) {
        tdm_json_array_begin(writer, NULL);
        for (int predicted = 0; predicted < metrics->n_classes; predicted++) {
            const struct tdm_confusion *pair =
                at < metrics->n_confusion ? &metrics->confusion[at] : NULL;
            const bool is_met = pair && pair->label == label && pair->predicted == predicted;
            tdm_json_integer(writer, NULL, is_met ? pair->n : 0);
            at += is_met;
        }
        tdm_json_array_end(writer);
    }
    tdm_json_array_end(writer);
}

void tdm_metrics_to_json(const struct tdm_metrics *metrics, tdm_json_writer *writer)
{
    tdm_metrics_summary_to_json(metrics, writer);
    put_classes(metrics, writer);
    put_calibration(metrics, writer);
    put_confusion(metrics, writer);
}
