/*
 * The tables of evaluate and runs show. With hundreds of classes what matters is what goes wrong:
 * both tables begin with the worst and end after so many rows. An accuracy beside an interval, and
 * the counts of its row, are of distinct images, as the interval is.
 */
#include "cli/scores.h"
#include "cli/watch.h"

enum { widest_name = 40 };

static void print_class(struct tdmi_output *out, const struct tdm_class_score *class, int widest)
{
    const int64_t n = class->n_distinct, correct = class->correct_distinct;
    const tdm_interval interval = tdm_wilson(correct, n);
    tdmi_print(out, "  %-*s  %7lld  %7lld", widest, class->label, (long long)n, (long long)correct);
    if (n > 0)
        tdmi_print(out, "  %6.1f %%", 100.0 * (double)correct / (double)n);
    else
        tdmi_print(out, "  %8s", "-");
    tdmi_print(out, "  %5.1f to %5.1f %%", 100.0 * interval.low, 100.0 * interval.high);
    if (class->predicted_distinct > 0)
        tdmi_print(out, "  %7.1f %%\n",
                   100.0 * (double)correct / (double)class->predicted_distinct);
    else
        tdmi_print(out, "  %9s\n", "-");
}

static void print_classes(struct tdmi_output *out, const struct tdm_metrics *metrics, int most)
{
    int worst[TDMI_SHOW_MOST], n = 0, widest = 5;
    const int shown = tdm_metrics_worst_classes(metrics, most, worst);
    for (int c = 0; c < metrics->n_classes; c++)
        n += metrics->per_class[c].n > 0;
    for (int i = 0; i < shown; i++)
        widest = tdmi_widest(widest, metrics->per_class[worst[i]].label, widest_name);
    if (shown > 0)
        tdmi_print(out, "  %-*s  %7s  %7s  %8s  %-16s  %9s\n", widest, "class", "n", "right",
                   "accuracy", "95 % interval", "precision");
    for (int i = 0; i < shown; i++)
        print_class(out, &metrics->per_class[worst[i]], widest);
    if (shown > 0 && metrics->score.n_distinct < metrics->score.n)
        tdmi_print(out, "  of images with equal content one is counted here\n");
    if (shown > 0 && shown < n)
        tdmi_print(out, "  … and %d that do no worse (--show)\n", n - shown);
    if (n < metrics->n_classes)
        tdmi_print(out, "  %d of %d classes %s no image here\n", metrics->n_classes - n,
                   metrics->n_classes, metrics->n_classes - n == 1 ? "has" : "have");
}

static void print_confusions(struct tdmi_output *out, const struct tdm_metrics *metrics, int most)
{
    struct tdm_confusion worst[TDMI_SHOW_MOST];
    const int shown = tdm_metrics_worst_confusions(metrics, most, worst);
    if (shown > 0)
        tdmi_print(out, "\n  most often mistaken%s\n",
                   metrics->score.n_distinct < metrics->score.n ? " (copies counted)" : "");
    for (int i = 0; i < shown; i++) {
        const struct tdm_class_score *class = &metrics->per_class[worst[i].label];
        tdmi_print(out, "  %7lld of %lld %s taken for %s\n", (long long)worst[i].n,
                   (long long)class->n, class->label, metrics->per_class[worst[i].predicted].label);
    }
}

static void print_whole(struct tdmi_output *out, const char *title,
                        const struct tdm_metrics *metrics)
{
    char text[160];
    const tdm_score *score = &metrics->score;
    tdmi_print(out, "\n%s%s%s; loss %.4f\n", title, *title ? ": " : "",
               tdmi_format_score(score, text, sizeof text), score->loss);
    if (metrics->top5_distinct >= 0 && score->n_distinct > 0) {
        const tdm_interval interval = tdm_wilson(metrics->top5_distinct, score->n_distinct);
        tdmi_print(out, "among the five likeliest: %.1f %% (95 %%: %.1f to %.1f), %lld of %lld\n",
                   100.0 * (double)metrics->top5_distinct / (double)score->n_distinct,
                   100.0 * interval.low, 100.0 * interval.high, (long long)metrics->top5_distinct,
                   (long long)score->n_distinct);
    }
    tdmi_print(out,
               "balanced accuracy %.1f %% (95 %%: %.1f to %.1f); probabilities are off by %.1f "
               "points on average\n",
               100.0 * tdm_balanced_distinct(metrics), 100.0 * metrics->balanced.low,
               100.0 * metrics->balanced.high, 100.0 * metrics->calibration_error);
}

void tdmi_print_score(struct tdmi_output *out, const char *name, const tdm_score *score)
{
    char text[160];
    if (score->n > 0)
        tdmi_print(out, "  %-10s  %s\n", name, tdmi_format_score(score, text, sizeof text));
}

void tdmi_print_train_score(struct tdmi_output *out, const tdm_score *score)
{
    char text[160];
    tdmi_print(out, "  train       %s%s\n", tdmi_format_score(score, text, sizeof text),
               score->n > 0 ? ", counted during that epoch" : "");
}

void tdmi_print_metrics(struct tdmi_output *out, const char *title,
                        const struct tdm_metrics *metrics, int most)
{
    print_classes(out, metrics, most);
    print_confusions(out, metrics, most / 2);
    print_whole(out, title, metrics);
}
