/*
 * One page for one or several runs, a function of the run folders alone: the same runs give the
 * same bytes.
 */
#include "base/file/file.h"
#include "base/scope.h"
#include "train/config/options.h"
#include "train/report/html.h"
#include "train/report/review.h"

#include <math.h>
#include <string.h>

static const char style[] =
    ":root{--ink:#1d2530;--soft:#5c6672;--line:#d9dee4;--page:#fff;--c0:#2166ac;--c1:#d6604d;"
    "--c2:#2b8a57;--c3:#8e63b0;--c4:#b8860b;--c5:#4a4a4a}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#a2abb5;--line:#3a424c;"
    "--page:#171b20;--c0:#6aaee8;--c1:#f0907e;--c2:#63c394;--c3:#bd97dc;--c4:#e0b64c;--c5:#bbb}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);"
    "max-width:1060px;margin:2em auto;padding:0 1em;overflow-wrap:break-word}\n"
    "h1{font-size:1.6em;margin:0 0 .2em}h2{margin:2em 0 .5em;font-size:1.25em;"
    "border-bottom:1px solid var(--line)}h3{font-size:1em;margin:1.4em 0 .4em}\n"
    "p{margin:.3em 0}.soft,summary{color:var(--soft)}summary{cursor:pointer}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.15em .8em .15em 0;text-align:right;white-space:nowrap}"
    "td:first-child,th:first-child{text-align:left}td:first-child,th,.left td,td.why{"
    "white-space:normal;overflow-wrap:anywhere}td:first-child{min-width:6.5em}"
    "th{color:var(--soft);font-weight:normal;vertical-align:bottom;min-width:4em;"
    "border-bottom:1px solid var(--line)}.left td,td.why{text-align:left}td.why{min-width:14em}\n"
    /* On a narrow page a row of many columns becomes a list, each value behind its column's name.
     */
    "@media(max-width:600px){td,th{white-space:normal}.stack tr:first-child{display:none}"
    ".stack tr{display:block;padding:.4em 0;border-bottom:1px solid var(--line)}"
    ".stack td{display:flex;justify-content:space-between;gap:1em;padding:0}"
    ".stack td:first-child{font-weight:600}.stack td:empty{display:none}"
    ".stack td[data-of]::before{content:attr(data-of);color:var(--soft);text-align:left;"
    "overflow-wrap:anywhere}}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:"
    "1em}"
    "figure{margin:0}figure.heat{overflow-x:auto}svg{max-width:100%;height:auto}\n"
    ".pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));gap:1em}"
    ".pictures img{width:96px;height:96px;object-fit:contain;display:block;background:#fff;"
    "margin-bottom:.5em}"
    ".pictures figcaption{overflow-wrap:anywhere;line-height:1.3}"
    ".wrong img{outline:3px solid var(--c1)}\n"
    "svg text{font-size:115px;fill:var(--soft)}svg .t{font-size:135px;fill:var(--ink)}"
    "svg .r{text-anchor:end}svg .m{text-anchor:middle}svg .g{stroke:var(--line);stroke-width:8}"
    "svg .v{text-anchor:middle;fill:var(--ink)}svg "
    ".b{stroke:var(--soft);stroke-width:12;stroke-dasharray:40 40}"
    "svg .n{fill:var(--line)}svg .f{fill:none;stroke:var(--line);stroke-width:10}"
    "svg .l{fill:none;stroke-width:26}\n"
    ".c0{fill:var(--c0);stroke:var(--c0)}.c1{fill:var(--c1);stroke:var(--c1)}"
    ".c2{fill:var(--c2);stroke:var(--c2)}.c3{fill:var(--c3);stroke:var(--c3)}"
    ".c4{fill:var(--c4);stroke:var(--c4)}.c5{fill:var(--c5);stroke:var(--c5)}"
    "rect.c0,rect.c1,circle{stroke:none}\n";

static void put_percent(tdmi_text *out, double value, tdm_interval interval)
{
    tdmi_text_printf(out, "%.1f&nbsp;%% (%.1f&nbsp;to&nbsp;%.1f)", 100.0 * value,
                     100.0 * interval.low, 100.0 * interval.high);
}

/* The part of n distinct images, with its interval. */
static void put_share(tdmi_text *out, int64_t part, int64_t n)
{
    if (n <= 0)
        tdmi_text_printf(out, "–");
    else
        put_percent(out, (double)part / (double)n, tdm_wilson(part, n));
}

static void put_score(tdmi_text *out, const tdm_score *score)
{
    put_share(out, score->correct_distinct, score->n_distinct);
}

/* ---- all runs ----------------------------------------------------------------------------- */

static void put_top5(tdmi_text *out, const struct tdm_run *run)
{
    const struct tdm_metrics *metrics = run->metrics;
    if (metrics && metrics->top5_distinct >= 0)
        put_share(out, metrics->top5_distinct, metrics->score.n_distinct);
    else
        tdmi_text_printf(out, "–");
}

static void put_balanced(tdmi_text *out, const struct tdm_run *run)
{
    if (run->metrics)
        put_percent(out, tdm_balanced_distinct(run->metrics), run->metrics->balanced);
    else
        tdmi_text_printf(out, "–");
}

static void put_calibration(tdmi_text *out, const struct tdm_run *run)
{
    if (run->metrics)
        tdmi_text_printf(out, "%.1f points", 100.0 * run->metrics->calibration_error);
    else
        tdmi_text_printf(out, "–");
}

static void put_state(tdmi_text *out, const struct tdm_run *run)
{
    tdmi_html_text(out, run->state);
}

static void put_network(tdmi_text *out, const struct tdm_run *run)
{
    tdmi_html_text(out, run->network);
}

static void put_epochs(tdmi_text *out, const struct tdm_run *run)
{
    if (run->best_epoch > run->epochs)
        tdmi_text_printf(out, "%d (best within the next one)", run->epochs);
    else if (run->best_epoch == 0)
        tdmi_text_printf(out, "%d (none validated yet)", run->epochs);
    else
        tdmi_text_printf(out, "%d (best %d)", run->epochs, run->best_epoch);
}

static void put_time(tdmi_text *out, const struct tdm_run *run)
{
    char text[32];
    tdmi_text_printf(out, "%s", tdmi_duration_write(run->seconds, text));
}

static void put_right(tdmi_text *out, const struct tdm_run *run)
{
    put_score(out, &run->val);
}

static void put_pictures(tdmi_text *out, const struct tdm_run *run)
{
    tdmi_text_printf(out, "%lld of %lld", (long long)run->val.correct, (long long)run->val.n);
    if (run->val.n_distinct < run->val.n)
        tdmi_text_printf(out, " (distinct: %lld of %lld)", (long long)run->val.correct_distinct,
                         (long long)run->val.n_distinct);
}

static void put_test(tdmi_text *out, const struct tdm_run *run)
{
    put_score(out, &run->test);
}

static void put_times_tested(tdmi_text *out, const struct tdm_run *run)
{
    if (run->test.n == 0)
        tdmi_text_printf(out, "–");
    else if (run->tests_before == 0)
        tdmi_text_printf(out, "once");
    else
        tdmi_text_printf(out, "%d times, so the choice may have followed it",
                         run->tests_before + 1);
}

/* One column a run, so that several can be compared side by side. */
static void put_summary(tdmi_text *out, const tdm_runs *runs)
{
    static const struct {
        const char *name;
        void (*put)(tdmi_text *out, const struct tdm_run *run);
    } rows[] = {
        {"state", put_state},
        {"network", put_network},
        {"epochs", put_epochs},
        {"time", put_time},
        {"validation accuracy (95&nbsp;% interval)", put_right},
        {"validation images right", put_pictures},
        {"test accuracy (95&nbsp;% interval)", put_test},
        {"test evaluated", put_times_tested},
        {"validation: among the five most probable (95&nbsp;% interval)", put_top5},
        {"validation: balanced accuracy (95&nbsp;% interval)", put_balanced},
        {"validation: calibration error", put_calibration},
    };
    tdmi_text_printf(out, "<div class=\"wide\"><table%s><tr><th></th>",
                     runs->n > 1 ? " class=\"stack\"" : "");
    for (size_t i = 0; i < runs->n; i++)
        tdmi_html_put(out, "<th>", runs->runs[i].summary.path, "</th>");
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        tdmi_text_printf(out, "</tr>\n<tr><td>%s</td>", rows[r].name);
        for (size_t i = 0; i < runs->n; i++) {
            if (runs->n > 1)
                tdmi_html_put(out, "<td data-of=\"", runs->runs[i].summary.path, "\">");
            else
                tdmi_text_printf(out, "<td>");
            rows[r].put(out, &runs->runs[i].summary);
            tdmi_text_printf(out, "</td>");
        }
    }
    tdmi_text_printf(out, "</tr></table></div>\n<p class=\"soft\">Accuracies and their intervals, "
                          "Wilson's, are of distinct images: copies count once. The validation "
                          "images chose the best epoch, so "
                          "their accuracy is a "
                          "little better than on new images; a test (--split 0.8,0.1,0.1) is "
                          "evaluated when everything is chosen, and again by a resumed run that "
                          "finds a better epoch.</p>\n");
}

static tdm_status put_comparisons(tdmi_text *out, const tdm_runs *runs, tdm_error *err)
{
    tdmi_text_printf(out,
                     "<h2>Against the first run</h2>\n<div class=\"wide\"><table class=\"stack\">"
                     "<tr><th>run</th>"
                     "<th>verdict</th><th>difference (95&nbsp;%%)</th><th>p</th><th>right only in "
                     "the first</th><th>only in this</th><th>images</th><th></th></tr>\n");
    for (size_t i = 1; i < runs->n; i++) {
        struct tdm_comparison c = {.struct_bytes = sizeof c};
        TDM_TRY(tdm_runs_compare(runs, 0, i, &c, err), err, "comparing runs");
        tdmi_html_put(out, "<tr><td>", runs->runs[i].summary.path, "</td>");
        tdmi_text_printf(out, "<td data-of=\"verdict\"><b>%s</b></td>", c.verdict);
        if (c.is_comparable)
            tdmi_text_printf(out,
                             "<td data-of=\"difference (95&nbsp;%%)\">%+.1f points (%+.1f to "
                             "%+.1f)</td><td data-of=\"p\">%.4g</td>"
                             "<td data-of=\"right only in the first\">%lld</td>"
                             "<td data-of=\"only in this\">%lld</td>"
                             "<td data-of=\"images\">%lld</td>",
                             100.0 * c.difference, 100.0 * c.interval.low, 100.0 * c.interval.high,
                             c.p, (long long)c.only_a, (long long)c.only_b,
                             (long long)c.n_distinct);
        else
            tdmi_text_printf(out, "<td colspan=\"5\"></td>");
        tdmi_text_printf(out, "<td class=\"why\">%s</td></tr>\n", c.reason);
    }
    tdmi_text_printf(
        out,
        "</table></div>\n<p class=\"soft\">p: McNemar's exact test on the same images, copies "
        "counted once; interval of the paired difference: Tango's. Better and worse: p below 0.05. "
        "Perhaps worse: the interval lies below zero, but p is not below 0.05. "
        "No loss: the interval excludes a loss of more than %.1f points. Cannot tell: it contains "
        "a loss and a gain.</p>\n",
        100.0 * TDM_COMPARE_MARGIN);
    return TDM_OK;
}

/* ---- one run ------------------------------------------------------------------------------ */

static tdm_status put_curves(tdmi_text *out, const struct tdm_run *run, tdm_error *err)
{
    enum { X, TRAIN_LOSS, VAL_LOSS, TRAIN, VAL, RATE, SERIES };
    struct tdmi_review_epoch *epochs;
    size_t n;
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    TDMI_AT_END(tdmi_free_at) double *values = NULL;
    TDMI_TRY(tdmi_review_epochs(run->path, &arena, &epochs, &n, err));
    TDMI_TRY(TDMI_NEW(values, n * SERIES, err));
    const double none = (double)NAN, best = run->best_epoch > 0 ? run->best_epoch : none;
    const double *of[SERIES];
    for (size_t k = 0; k < SERIES; k++)
        of[k] = values + k * n;
    for (size_t i = 0; i < n; i++) {
        const struct tdmi_review_epoch *at = &epochs[i];
        const bool has_train = at->train.n > 0, has_val = at->val.n > 0;
        values[X * n + i] = at->epoch;
        values[TRAIN_LOSS * n + i] = has_train ? at->train.loss : none;
        values[VAL_LOSS * n + i] = has_val ? at->val.loss : none;
        values[TRAIN * n + i] = has_train ? 100.0 * at->train.accuracy : none;
        values[VAL * n + i] = has_val ? 100.0 * at->val.accuracy : none;
        values[RATE * n + i] = at->learning_rate;
    }
    const struct tdmi_series loss[] = {{"train", of[X], of[TRAIN_LOSS], n},
                                       {"validation", of[X], of[VAL_LOSS], n}};
    const struct tdmi_series right[] = {{"train", of[X], of[TRAIN], n},
                                        {"validation", of[X], of[VAL], n}};
    const struct tdmi_series rates[] = {{"learning rate", of[X], of[RATE], n}};
    tdmi_chart_lines(out, "Loss", "", loss, 2, best);
    tdmi_chart_lines(out, "Accuracy", " %", right, 2, best);
    tdmi_chart_lines(out, "Learning rate", "", rates, 1, best);
    return TDM_OK;
}

/* All of distinct images, as the intervals are. */
static void put_class_row(tdmi_text *out, const struct tdm_class_score *class)
{
    tdmi_html_put(out, "<tr><td>", class->label, "</td>");
    tdmi_text_printf(out,
                     "<td data-of=\"images\">%lld</td><td data-of=\"right\">%lld</td>"
                     "<td data-of=\"recall (95&nbsp;%%)\">",
                     (long long)class->n_distinct, (long long)class->correct_distinct);
    put_share(out, class->correct_distinct, class->n_distinct);
    tdmi_text_printf(out, "</td><td data-of=\"precision (95&nbsp;%%)\">");
    put_share(out, class->correct_distinct, class->predicted_distinct);
    tdmi_text_printf(out, "</td></tr>\n");
}

static void put_class_head(tdmi_text *out)
{
    tdmi_text_printf(
        out, "<div class=\"wide\"><table class=\"stack\"><tr><th>class</th><th>images</th><th>right"
             "</th><th>recall (95&nbsp;%%)</th><th>precision (95&nbsp;%%)</th></tr>\n");
}

static tdm_status put_classes(tdmi_text *out, const struct tdm_metrics *metrics, tdm_error *err)
{
    int shown[TDMI_HEAT_MOST];
    const int n_shown = tdm_metrics_worst_classes(metrics, TDMI_HEAT_MOST, shown);
    const bool is_part = metrics->n_classes > TDMI_HEAT_MOST;
    tdmi_text_printf(out, "<h3>Classes of the validation images, least often right first</h3>\n");
    put_class_head(out);
    for (int i = 0; i < n_shown; i++)
        put_class_row(out, &metrics->per_class[shown[i]]);
    tdmi_text_printf(out, "</table></div>\n");
    if (is_part) {
        tdmi_text_printf(out, "<details><summary>all %d classes</summary>\n", metrics->n_classes);
        put_class_head(out);
        for (int c = 0; c < metrics->n_classes; c++)
            put_class_row(out, &metrics->per_class[c]);
        tdmi_text_printf(out, "</table></div></details>\n");
    }
    tdmi_text_printf(
        out,
        "<h3>Confusions%s</h3>\n<p class=\"soft\">A row is a class, a column the "
        "prediction for its images: the darker, the larger its share of the row.</p>\n",
        is_part ? " of the 20 classes that are least often right" : "");
    if (is_part)
        return tdmi_chart_confusion(out, metrics, shown, n_shown, err);
    for (int c = 0; c < metrics->n_classes; c++)
        shown[c] = c;
    return tdmi_chart_confusion(out, metrics, shown, metrics->n_classes, err);
}

static void put_members(tdmi_text *out, const tdm_json_value *object);

static void put_value(tdmi_text *out, const tdm_json_value *value)
{
    char number[32];
    switch (tdm_json_kind_of(value)) {
    case TDM_JSON_NULL:
        tdmi_text_printf(out, "–");
        break;
    case TDM_JSON_BOOL:
        tdmi_text_printf(out, "%s", tdm_json_as_bool(value, false) ? "yes" : "no");
        break;
    case TDM_JSON_NUMBER:
        tdmi_number_write(tdm_json_as_number(value, 0.0), number);
        tdmi_text_printf(out, "%s", number);
        break;
    case TDM_JSON_STRING:
        tdmi_html_text(out, *tdm_json_as_string(value, "") ? tdm_json_as_string(value, "") : "–");
        break;
    case TDM_JSON_ARRAY:
        tdmi_text_printf(out, "%zu values", tdm_json_count(value));
        break;
    case TDM_JSON_OBJECT:
        put_members(out, value);
        break;
    }
}

/* beta1 0.9, beta2 0.999 */
static void put_members(tdmi_text *out, const tdm_json_value *object)
{
    if (tdm_json_count(object) == 0)
        tdmi_text_printf(out, "–");
    for (size_t i = 0; i < tdm_json_count(object); i++) {
        tdmi_text_printf(out, "%s", i > 0 ? ", " : "");
        tdmi_html_text(out, tdm_json_key_at(object, i));
        tdmi_text_printf(out, " ");
        put_value(out, tdm_json_at(object, i));
    }
}

/* Words for the keys of a run's record; "": internal, not shown. A key that is not in the list is
 * shown as it is. */
static const struct {
    const char *key, *words;
} record_words[] = {
    {"source", "data set"},
    {"kind", "form of the data set"},
    {"train", "training images"},
    {"val", "validation images"},
    {"test", "test images"},
    {"copies", "duplicate images"},
    {"torn", "images that occur in several classes"},
    {"labels", ""},
    {"order", "shuffling"},
    {"decoder", "images are decoded on"},
    {"unreadable", ""}, /* before training; put_run says how many at its end */
    {"first_trained", ""},
    {"thaws_to", ""},
    {"head", ""},
    {"views", "views of each image"},
    {"batch", "batch size"},
    {"batch_reason", "reason of the batch size"},
    {"shard", "images per batch-norm group"},
    {"split_products", ""},
    {"bn", "batch-norm statistics"},
    {"learning_rate", "learning rate"},
    {"thawed_rate", "learning rate after unfreezing"},
    {"scaling", "rule by which the learning rate follows the batch"},
    {"weight_decay", "weight decay"},
    {"warmup", "epochs of warm-up"},
    {"cpu", "CPU"},
    {"isa", "instruction sets"},
    {"planned_bytes", "planned memory"},
    {"recorded_bytes", "memory of recorded GPU steps"},
    {"kept_rows_bytes", "memory of features on the device"},
    {"world", "processes"},
};

static const char *words_of(const char *key)
{
    for (size_t i = 0; i < sizeof record_words / sizeof record_words[0]; i++)
        if (strcmp(record_words[i].key, key) == 0)
            return record_words[i].words;
    return key;
}

/* NULL: the value is said as it is. */
static const char *words_of_value(const char *key, const tdm_json_value *value)
{
    static const struct {
        const char *key, *value, *words;
    } of[] = {
        {"order", "full", "all images"},
        {"order", "grouped", "groups of images that lie together, and images in each"},
        {"bn", "shard", "of each group"},
        {"bn", "batch", "of the whole batch"},
        {"bn", "frozen", "kept as the weights brought them"},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (strcmp(of[i].key, key) == 0 && strcmp(of[i].value, tdm_json_as_string(value, "")) == 0)
            return of[i].words;
    return NULL;
}

/* A row a member. A member of the record that is an object gives rows of its own, but for the
 * learning rate, which is there already; objects further inside are one row. */
static void put_rows(tdmi_text *out, const tdm_json_value *object, bool is_options, bool is_inner)
{
    for (size_t i = 0; i < tdm_json_count(object); i++) {
        const char *key = tdm_json_key_at(object, i);
        const tdm_json_value *value = tdm_json_at(object, i);
        const char *name = is_options ? key : words_of(key);
        const char *words =
            is_options ? tdmi_options_words(key, value) : words_of_value(key, value);
        if (!is_inner && tdm_json_kind_of(value) == TDM_JSON_OBJECT) {
            put_rows(out, value, is_options, true);
            continue;
        }
        if (!*name || (is_inner && strcmp(key, "learning_rate") == 0))
            continue;
        tdmi_html_put(out, "<tr><td>", name, "</td><td>");
        if (words)
            tdmi_html_text(out, words);
        else if (tdmi_ends_with(key, "_bytes"))
            tdmi_text_printf(out, "%.1f MiB", tdm_json_as_number(value, 0.0) / (1 << 20));
        else
            put_value(out, value);
        tdmi_text_printf(out, "</td></tr>\n");
    }
}

static void put_section(tdmi_text *out, const tdm_json_value *section, const char *title,
                        bool is_options)
{
    if (tdm_json_count(section) == 0)
        return;
    tdmi_text_printf(out, "<details><summary>%s</summary><table class=\"left\">\n", title);
    put_rows(out, section, is_options, false);
    tdmi_text_printf(out, "</table></details>\n");
}

static tdm_status put_run(tdmi_text *out, const struct tdmi_review_run *run, tdm_error *err)
{
    const tdm_json_value *root = tdm_json_root(run->record);
    const struct tdm_run *summary = &run->summary;
    tdmi_html_put(out, "<h2>", summary->path, "</h2>\n<p>");
    tdmi_html_put(out, "", *summary->network ? summary->network : "a network", " on ");
    tdmi_html_put(out, "", *summary->source ? summary->source : "images", "; started ");
    tdmi_html_put(out, "", *summary->started ? summary->started : "some time", ", ");
    tdmi_html_put(out, "", summary->state, ".</p>\n");
    if (*summary->next_step) {
        tdmi_html_put(out, "<p>next: <b>", tdm_next_words(summary->next_step), "</b>; ");
        tdmi_html_put(out, "", summary->next_evidence, "</p>\n");
    }
    const int64_t skipped =
        tdm_json_as_integer(tdm_json_member(tdm_json_member(root, "result"), "skipped"), 0);
    if (skipped > 0)
        tdmi_text_printf(out, "<p>%lld of the images could not be read and %s left out.</p>\n",
                         (long long)skipped, skipped == 1 ? "was" : "were");
    put_section(out, tdm_json_member(root, "data"), "images and network", false);
    put_section(out, tdm_json_member(root, "options"), "options", true);
    put_section(out, tdm_json_member(root, "machine"), "machine", false);
    tdmi_text_printf(out, "<div class=\"charts\">\n");
    TDMI_TRY(put_curves(out, summary, err));
    if (summary->metrics)
        tdmi_chart_calibration(out, summary->metrics);
    tdmi_text_printf(out, "</div>\n<p class=\"soft\">Train is counted while training, each image "
                          "before the update it caused; the dashed line is the best epoch. "
                          "Calibration: of the predictions with a probability, the share that was "
                          "right; the best lies on the dashed line.</p>\n");
    if (!summary->metrics) {
        tdmi_text_printf(out, "<p>The outcome of each image was not kept.</p>\n");
        return TDM_OK;
    }
    TDM_TRY(tdmi_review_pictures(out, run, err), err, "showing images");
    return put_classes(out, summary->metrics, err);
}

/* ---- the page ----------------------------------------------------------------------------- */

tdm_status tdmi_report_write(const tdm_runs *runs, tdmi_text *out, tdm_error *err)
{
    tdmi_html_put(out,
                  "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                  "<meta name=\"viewport\" content=\"width=device-width\">"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                  "'none'; img-src data:; style-src 'unsafe-inline'\"><title>",
                  runs->runs[0].summary.path, " – tandem</title><style>");
    tdmi_text_add(out, style, sizeof style - 1);
    tdmi_text_printf(out, "</style></head><body>\n<h1>%s</h1>\n",
                     runs->n == 1 ? "Training run" : "Training runs");
    put_summary(out, runs);
    if (runs->n > 1)
        TDMI_TRY(put_comparisons(out, runs, err));
    for (size_t i = 0; i < runs->n; i++)
        TDM_TRY(put_run(out, &runs->runs[i], err), err, "writing of %s",
                runs->runs[i].summary.path);
    tdmi_text_printf(out, "<p class=\"soft\">tandem %s</p>\n</body></html>\n", tdm_version());
    return tdmi_text_status(out, err);
}

tdm_status tdm_runs_report(const tdm_runs *runs, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text page = {0};
    if (runs->n == 0)
        return TDM_FAIL(err, TDM_E_USAGE, "a report of no run; give at least one");
    TDM_TRY(tdmi_report_write(runs, &page, err), err, "writing the report %s", path);
    return TDM_WRAP(err, tdmi_file_write(path, page.bytes, page.length_bytes, err),
                    "writing the report %s", path);
}
