/*
 * One page for one or several runs. What is on it follows from the run folders alone, no time and
 * no chance, so the same runs give the same bytes.
 */
#include "base/file/file.h"
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
    "max-width:1060px;margin:2em auto;padding:0 1em}\n"
    "h1{font-size:1.6em;margin:0 0 .2em}h2{margin:2em 0 .5em;font-size:1.25em;"
    "border-bottom:1px solid var(--line)}h3{font-size:1em;margin:1.4em 0 .4em}\n"
    "p{margin:.3em 0}.soft,summary{color:var(--soft)}summary{cursor:pointer}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.15em .8em .15em 0;text-align:right;white-space:nowrap}"
    "td:first-child,th:first-child{text-align:left}th{color:var(--soft);font-weight:normal;"
    "border-bottom:1px solid var(--line)}.left td,td.why{text-align:left;white-space:normal;"
    "overflow-wrap:anywhere}td.why{min-width:14em}"
    "th.run{white-space:normal;overflow-wrap:anywhere}"
    "@media(max-width:600px){td,th{white-space:normal}td:first-child{min-width:6.5em}}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr));gap:"
    "1em}"
    "figure{margin:0}figure.heat{overflow-x:auto}svg{max-width:100%;height:auto}"
    ".heat svg{max-width:none}\n"
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

static void put_share(tdmi_text *out, int64_t part, int64_t n)
{
    const tdm_interval interval = tdm_wilson(part, n);
    if (n <= 0)
        tdmi_text_printf(out, "<td>–</td>");
    else
        tdmi_text_printf(out, "<td>%.2f&nbsp;%% (%.2f&nbsp;to&nbsp;%.2f)</td>",
                         100.0 * (double)part / (double)n, 100.0 * interval.low,
                         100.0 * interval.high);
}

/* ---- all runs ----------------------------------------------------------------------------- */

static void put_top5(tdmi_text *out, const struct tdm_run *run)
{
    const struct tdm_metrics *metrics = run->metrics;
    put_share(out, metrics ? metrics->top5_correct : 0,
              metrics && metrics->top5_correct >= 0 ? metrics->score.n : 0);
}

static void put_balanced(tdmi_text *out, const struct tdm_run *run)
{
    const struct tdm_metrics *metrics = run->metrics;
    if (metrics)
        tdmi_text_printf(out, "<td>%.2f&nbsp;%% (%.2f&nbsp;to&nbsp;%.2f)</td>",
                         100.0 * metrics->balanced_accuracy, 100.0 * metrics->balanced.low,
                         100.0 * metrics->balanced.high);
    else
        tdmi_text_printf(out, "<td>–</td>");
}

static void put_calibration(tdmi_text *out, const struct tdm_run *run)
{
    if (run->metrics)
        tdmi_text_printf(out, "<td>%.2f points</td>", 100.0 * run->metrics->calibration_error);
    else
        tdmi_text_printf(out, "<td>–</td>");
}

static void put_state(tdmi_text *out, const struct tdm_run *run)
{
    tdmi_text_printf(out, "<td>%s</td>", run->state);
}

static void put_network(tdmi_text *out, const struct tdm_run *run)
{
    tdmi_text_printf(out, "<td>");
    tdmi_html_text(out, run->network);
    tdmi_text_printf(out, "</td>");
}

static void put_epochs(tdmi_text *out, const struct tdm_run *run)
{
    if (run->best_epoch > run->epochs)
        tdmi_text_printf(out, "<td>%d (best within the next one)</td>", run->epochs);
    else
        tdmi_text_printf(out, "<td>%d (best %d)</td>", run->epochs, run->best_epoch);
}

static void put_time(tdmi_text *out, const struct tdm_run *run)
{
    tdmi_text_printf(out, "<td>%.1f s</td>", run->seconds);
}

static void put_right(tdmi_text *out, const struct tdm_run *run)
{
    put_share(out, run->val.correct, run->val.n);
}

static void put_pictures(tdmi_text *out, const struct tdm_run *run)
{
    tdmi_text_printf(out, "<td>%lld of %lld</td>", (long long)run->val.correct,
                     (long long)run->val.n);
}

static void put_test(tdmi_text *out, const struct tdm_run *run)
{
    put_share(out, run->test.correct, run->test.n);
}

static void put_times_tested(tdmi_text *out, const struct tdm_run *run)
{
    if (run->test.n == 0)
        tdmi_text_printf(out, "<td>–</td>");
    else if (run->tests_before == 0)
        tdmi_text_printf(out, "<td>once</td>");
    else
        tdmi_text_printf(out, "<td>%d times, so it may be chosen by</td>", run->tests_before + 1);
}

/* A column a run, so that more of them can be told side by side. */
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
        {"validation right (95&nbsp;%)", put_right},
        {"pictures right", put_pictures},
        {"test right (95&nbsp;%)", put_test},
        {"test judged", put_times_tested},
        {"among the five likeliest (95&nbsp;%)", put_top5},
        {"balanced accuracy (95&nbsp;%)", put_balanced},
        {"calibration error", put_calibration},
    };
    tdmi_text_printf(out, "<div class=\"wide\"><table><tr><th></th>");
    for (size_t i = 0; i < runs->n; i++) {
        tdmi_text_printf(out, "<th class=\"run\">");
        tdmi_html_text(out, runs->runs[i].told.path);
        tdmi_text_printf(out, "</th>");
    }
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        tdmi_text_printf(out, "</tr>\n<tr><td>%s</td>", rows[r].name);
        for (size_t i = 0; i < runs->n; i++)
            rows[r].put(out, &runs->runs[i].told);
    }
    tdmi_text_printf(out, "</tr></table></div>\n<p class=\"soft\">Intervals of counts are "
                          "Wilson's. The validation chose the best epoch, so its accuracy is a "
                          "little better than on new pictures; a test (--split 0.8,0.1,0.1) is "
                          "judged when everything is chosen, and again by a run that goes on and "
                          "finds a better epoch.</p>\n");
}

static tdm_status put_comparisons(tdmi_text *out, const tdm_runs *runs, tdm_error *err)
{
    tdmi_text_printf(out,
                     "<h2>Against the first run</h2>\n<div class=\"wide\"><table><tr><th>run</th>"
                     "<th>verdict</th><th>difference (95&nbsp;%%)</th><th>p</th><th>right only in "
                     "the first</th><th>only in this</th><th>pictures</th><th></th></tr>\n");
    for (size_t i = 1; i < runs->n; i++) {
        struct tdm_comparison c = {.struct_bytes = sizeof c};
        TDM_TRY(tdm_runs_compare(runs, 0, i, &c, err), err, "comparing runs");
        tdmi_text_printf(out, "<tr><td>");
        tdmi_html_text(out, runs->runs[i].told.path);
        tdmi_text_printf(out, "</td><td><b>%s</b></td>", c.verdict);
        if (c.is_comparable)
            tdmi_text_printf(out,
                             "<td>%+.2f points (%+.2f to %+.2f)</td><td>%.4g</td><td>%lld</td>"
                             "<td>%lld</td><td>%lld</td>",
                             100.0 * c.difference, 100.0 * c.interval.low, 100.0 * c.interval.high,
                             c.p, (long long)c.only_a, (long long)c.only_b, (long long)c.n);
        else
            tdmi_text_printf(out, "<td>–</td><td>–</td><td>–</td><td>–</td><td>–</td>");
        tdmi_text_printf(out, "<td class=\"why\">%s</td></tr>\n", c.reason);
    }
    tdmi_text_printf(
        out,
        "</table></div>\n<p class=\"soft\">p: McNemar's exact test on the same "
        "pictures; interval of the paired difference: Tango's. Better and worse: p "
        "below 0.05. No loss: the interval excludes a loss of more than %g of 100 pictures. "
        "Below %d pictures there is no verdict.</p>\n",
        100.0 * TDM_COMPARE_MARGIN, TDM_COMPARE_LEAST);
    return TDM_OK;
}

/* ---- one run ------------------------------------------------------------------------------ */

static tdm_status put_curves(tdmi_text *out, const struct tdm_run *run, tdm_error *err)
{
    struct tdmi_review_epoch *epochs;
    size_t n;
    tdmi_arena arena;
    tdmi_arena_init(&arena, 0);
    tdm_status status = tdmi_review_epochs(run->path, &arena, &epochs, &n, err);
    double *values = status == TDM_OK ? tdmi_arena_alloc(&arena, n * 6 + 1, sizeof *values) : NULL;
    if (status == TDM_OK && !values)
        status = TDM_FAIL(err, TDM_E_MEMORY, "drawing %zu epochs: out of memory", n);
    if (status == TDM_OK && n > 0) {
        double *x = values, *of_train = x + n, *of_val = of_train + n, *train = of_val + n;
        double *val = train + n, *rate = val + n;
        for (size_t i = 0; i < n; i++) {
            const struct tdmi_review_epoch *at = &epochs[i];
            x[i] = at->epoch;
            of_train[i] = at->train.n > 0 ? at->train.loss : (double)NAN;
            of_val[i] = at->val.n > 0 ? at->val.loss : (double)NAN;
            train[i] = at->train.n > 0 ? 100.0 * at->train.accuracy : (double)NAN;
            val[i] = at->val.n > 0 ? 100.0 * at->val.accuracy : (double)NAN;
            rate[i] = at->learning_rate;
        }
        const double best = run->best_epoch > 0 ? run->best_epoch : (double)NAN;
        const struct tdmi_series loss[] = {{"train", x, of_train, n}, {"validation", x, of_val, n}};
        const struct tdmi_series right[] = {{"train", x, train, n}, {"validation", x, val, n}};
        const struct tdmi_series rates[] = {{"learning rate", x, rate, n}};
        tdmi_chart_lines(out, "Loss", "", loss, 2, best);
        tdmi_chart_lines(out, "Right", " %", right, 2, best);
        tdmi_chart_lines(out, "Learning rate", "", rates, 1, best);
    }
    tdmi_arena_release(&arena);
    return status;
}

static void put_class_row(tdmi_text *out, const struct tdm_class_score *class)
{
    tdmi_text_printf(out, "<tr><td>");
    tdmi_html_text(out, class->label);
    tdmi_text_printf(out, "</td><td>%lld</td><td>%lld</td>", (long long)class->n,
                     (long long)class->correct);
    put_share(out, class->correct, class->n);
    put_share(out, class->correct, class->predicted);
    tdmi_text_printf(out, "</tr>\n");
}

static void put_class_head(tdmi_text *out)
{
    tdmi_text_printf(out,
                     "<div class=\"wide\"><table><tr><th>class</th><th>pictures</th><th>right"
                     "</th><th>recall (95&nbsp;%%)</th><th>precision (95&nbsp;%%)</th></tr>\n");
}

static tdm_status put_classes(tdmi_text *out, const struct tdm_metrics *metrics, tdm_error *err)
{
    int worst[TDMI_HEAT_MOST], shown[TDMI_HEAT_MOST];
    const int n_worst = tdm_metrics_worst_classes(metrics, TDMI_HEAT_MOST, worst);
    const bool is_part = metrics->n_classes > TDMI_HEAT_MOST;
    int n_shown = 0;
    if (!is_part)
        while (n_shown < metrics->n_classes) {
            shown[n_shown] = n_shown;
            n_shown++;
        }
    tdmi_text_printf(out, "<h3>Classes, least often right first</h3>\n");
    put_class_head(out);
    for (int i = 0; i < n_worst; i++)
        put_class_row(out, &metrics->per_class[worst[i]]);
    tdmi_text_printf(out, "</table></div>\n");
    if (is_part) {
        tdmi_text_printf(out, "<details><summary>all %d classes</summary>\n", metrics->n_classes);
        put_class_head(out);
        for (int c = 0; c < metrics->n_classes; c++)
            put_class_row(out, &metrics->per_class[c]);
        tdmi_text_printf(out, "</table></div></details>\n");
    }
    tdmi_text_printf(out,
                     "<h3>Confusions%s</h3>\n<p class=\"soft\">A row is a class, a column what "
                     "its pictures were taken for; shades are parts of the row.</p>\n",
                     is_part ? " of the 20 classes that are least often right" : "");
    return is_part ? tdmi_chart_confusion(out, metrics, worst, n_worst, err)
                   : tdmi_chart_confusion(out, metrics, shown, n_shown, err);
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

/* A row a member, below `above: ` where that is no empty string. */
static void put_rows(tdmi_text *out, const tdm_json_value *object, const char *above,
                     bool is_options)
{
    for (size_t i = 0; i < tdm_json_count(object); i++) {
        const char *name = tdm_json_key_at(object, i);
        const tdm_json_value *value = tdm_json_at(object, i);
        const char *words = is_options ? tdmi_options_words(name, value) : NULL;
        if (!*above && tdm_json_kind_of(value) == TDM_JSON_OBJECT) {
            put_rows(out, value, name, false);
            continue;
        }
        tdmi_text_printf(out, "<tr><td>");
        tdmi_html_text(out, above);
        tdmi_text_printf(out, "%s", *above ? ": " : "");
        tdmi_html_text(out, name);
        tdmi_text_printf(out, "</td><td>");
        if (words)
            tdmi_html_text(out, words);
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
    put_rows(out, section, "", is_options);
    tdmi_text_printf(out, "</table></details>\n");
}

static void put_next(tdmi_text *out, const struct tdm_run *told)
{
    if (!*told->next_step)
        return;
    tdmi_text_printf(out, "<p>next: <b>");
    tdmi_html_text(out, told->next_step);
    tdmi_text_printf(out, "</b>; ");
    tdmi_html_text(out, told->next_evidence);
    tdmi_text_printf(out, "</p>\n");
}

static tdm_status put_run(tdmi_text *out, const struct tdmi_review_run *run, tdm_error *err)
{
    const tdm_json_value *root = tdm_json_root(run->record);
    const struct tdm_run *told = &run->told;
    tdmi_text_printf(out, "<h2>");
    tdmi_html_text(out, told->path);
    tdmi_text_printf(out, "</h2>\n<p>");
    tdmi_html_text(out, *told->network ? told->network : "a network");
    tdmi_text_printf(out, " on ");
    tdmi_html_text(out, *told->source ? told->source : "pictures");
    tdmi_text_printf(out, "; begun ");
    tdmi_html_text(out, *told->started ? told->started : "some time");
    tdmi_text_printf(out, ", %s.</p>\n", told->state);
    put_next(out, told);
    put_section(out, tdm_json_member(root, "data"), "pictures and network", false);
    put_section(out, tdm_json_member(root, "options"), "options", true);
    put_section(out, tdm_json_member(root, "machine"), "machine", false);
    tdmi_text_printf(out, "<div class=\"charts\">\n");
    tdm_status status = put_curves(out, told, err);
    if (status != TDM_OK)
        return status;
    if (told->metrics)
        tdmi_chart_calibration(out, told->metrics);
    tdmi_text_printf(out, "</div>\n<p class=\"soft\">Train is counted while training, each picture "
                          "before the update it caused; the dashed line is the best epoch. "
                          "Calibration: of what was said with a probability, how much was right; "
                          "the best lies on the dashed line.</p>\n");
    if (!told->metrics) {
        tdmi_text_printf(out, "<p>What became of each picture was not kept.</p>\n");
        return TDM_OK;
    }
    TDM_TRY(tdmi_review_pictures(out, run, err), err, "showing pictures");
    return put_classes(out, told->metrics, err);
}

/* ---- the page ----------------------------------------------------------------------------- */

static tdm_status write_page(tdmi_text *out, const tdm_runs *runs, tdm_error *err)
{
    tdmi_text_printf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                          "<meta name=\"viewport\" content=\"width=device-width\">"
                          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                          "'none'; img-src data:; style-src 'unsafe-inline'\"><title>");
    tdmi_html_text(out, runs->runs[0].told.path);
    tdmi_text_printf(out, " – tandem</title><style>");
    tdmi_text_add(out, style, sizeof style - 1);
    tdmi_text_printf(out, "</style></head><body>\n<h1>%s</h1>\n",
                     runs->n == 1 ? "A training" : "Trainings");
    put_summary(out, runs);
    if (runs->n > 1)
        TDM_TRY(put_comparisons(out, runs, err), err, "writing the page");
    for (size_t i = 0; i < runs->n; i++)
        TDM_TRY(put_run(out, &runs->runs[i], err), err, "writing of %s", runs->runs[i].told.path);
    tdmi_text_printf(out, "<p class=\"soft\">tandem %s</p>\n</body></html>\n", tdm_version());
    return out->is_broken ? TDM_FAIL(err, TDM_E_MEMORY, "writing the page: out of memory") : TDM_OK;
}

tdm_status tdm_runs_report(const tdm_runs *runs, const char *path, tdm_error *err)
{
    tdmi_text page = {0};
    if (runs->n == 0)
        return TDM_FAIL(err, TDM_E_USAGE, "a report of no run; at least one is wanted");
    tdm_status status = write_page(&page, runs, err);
    if (status == TDM_OK)
        status = tdmi_file_write(path, page.bytes, page.length_bytes, err);
    tdmi_text_release(&page);
    return TDM_WRAP(err, status, "writing the report %s", path);
}
