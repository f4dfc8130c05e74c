/*
 * tandem runs list|show|compare: what was trained, how well, and whether one is better than
 * another.
 */
#include "cli/command.h"
#include "base/text/text.h"
#include "base/scope.h"
#include "cli/scores.h"
#include "tandem/runs.h"
#include "tandem/train.h"
#include "cli/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

TDMI_POINTER_RELEASE(tdm_runs, tdm_runs_close)

struct values {
    int show;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){.show = TDMI_SHOW_DEFAULT};
}

/* ---- one run ----------------------------------------------------------------------------- */

static void write_runs(tdm_json_writer *json, const tdm_runs *runs, bool is_whole)
{
    tdm_json_array_begin(json, "runs");
    for (size_t i = 0; i < tdm_runs_count(runs); i++)
        tdm_run_to_json(tdm_runs_at(runs, i), is_whole, json);
    tdm_json_array_end(json);
}

static void print_line(struct tdmi_output *out, const struct tdm_run *run, int widest)
{
    char text[160], time[40];
    tdmi_print(out, "  %-*s  %-8s  %6d  %-16s  %12s", widest, run->path, run->state, run->epochs,
               run->network, tdmi_duration_write(run->seconds, time));
    if (run->val.n > 0)
        tdmi_print(out, "  %s\n", tdmi_format_score(&run->val, text, sizeof text));
    else
        tdmi_print(out, "  not validated yet\n");
}

static void print_table(struct tdmi_output *out, const tdm_runs *runs)
{
    int widest = 3;
    for (size_t i = 0; i < tdm_runs_count(runs); i++)
        widest = tdmi_widest(widest, tdm_runs_at(runs, i)->path, 60);
    tdmi_print(out, "  %-*s  %-8s  %6s  %-16s  %12s  %s\n", widest, "run", "state", "epochs",
               "network", "time", "validation");
    for (size_t i = 0; i < tdm_runs_count(runs); i++)
        print_line(out, tdm_runs_at(runs, i), widest);
}

/* ---- list and show ------------------------------------------------------------------------ */

static tdm_status list(struct tdmi_call *call, tdm_error *err)
{
    const char *folder = call->n_arguments > 1 ? call->arguments[1] : "runs";
    TDMI_AT_END(tdm_runs_close_at) tdm_runs *runs = NULL;
    TDMI_TRY(tdm_runs_find(folder, &runs, err));
    write_runs(call->json, runs, false);
    if (tdm_runs_count(runs) == 0)
        tdmi_print(call->out, "there is no run in %s\n", folder);
    else
        print_table(call->out, runs);
    return TDM_OK;
}

static void print_run(struct tdmi_call *call, const struct tdm_run *run)
{
    const struct values *values = call->values;
    char duration[32];
    struct tdmi_output *out = call->out;
    tdmi_print(out, "%s: %s, %d %s, best: ", run->path, run->state, run->epochs,
               run->epochs == 1 ? "epoch" : "epochs");
    if (run->best_epoch > run->epochs)
        tdmi_print(out, "within the next one");
    else if (run->best_epoch > 0)
        tdmi_print(out, "%d", run->best_epoch);
    else
        tdmi_print(out, "none");
    tdmi_print(out, ", %s\n", tdmi_duration_write(run->seconds, duration));
    tdmi_print(out, "  network     %s\n  images      %s\n  started     %s\n", run->network,
               run->source, run->started);
    if (run->train.n > 0)
        tdmi_print_train_score(out, &run->train);
    tdmi_print_score(out, "validation", &run->val);
    tdmi_print_score(out, "test", &run->test);
    if (run->tests_before > 0)
        tdmi_print(out, "              tested %d times\n", run->tests_before + 1);
    if (*run->next_step)
        tdmi_print(out, "  next        %s; %s\n", tdm_next_words(run->next_step),
                   run->next_evidence);
    if (!run->metrics)
        return;
    tdmi_print(out, "\n");
    tdmi_print_metrics(out, TDMI_TITLE_VALIDATION, run->metrics, values->show);
}

static tdm_status show(struct tdmi_call *call, tdm_error *err)
{
    TDMI_AT_END(tdm_runs_close_at) tdm_runs *runs = NULL;
    TDMI_TRY(tdm_runs_read(call->arguments + 1, 1, &runs, err));
    write_runs(call->json, runs, true);
    print_run(call, tdm_runs_at(runs, 0));
    return TDM_OK;
}

/* ---- compare ------------------------------------------------------------------------------ */

static double in_points(double part)
{
    return 100.0 * part;
}

/* The verdict, and where the test decides the effect with its interval. */
static void print_verdict(struct tdmi_output *out, const char *a, const char *b,
                          const struct tdm_comparison *comparison)
{
    const double sign = comparison->is_worse ? -1.0 : 1.0;
    const double near = sign * in_points(comparison->interval.low);
    const double far = sign * in_points(comparison->interval.high);
    const double margin = in_points(TDM_COMPARE_MARGIN);
    tdmi_print(out, "%s compared with %s: %s", b, a, comparison->verdict);
    if (comparison->is_better || comparison->is_worse)
        tdmi_print(out, " by %.1f points (95 %%: %.1f to %.1f)",
                   sign * in_points(comparison->difference), fmin(near, far), fmax(near, far));
    else if (strcmp(comparison->verdict, "no loss") == 0)
        tdmi_print(out, " of more than %.1f points", margin);
    tdmi_print(out, "\n");
    if (comparison->is_worse && comparison->is_no_loss)
        tdmi_print(out, "the loss is real, and smaller than %.1f points\n", margin);
    if (*comparison->reason)
        tdmi_print(out, "%s\n", comparison->reason);
}

static void print_comparison(struct tdmi_output *out, const char *a, const char *b,
                             const struct tdm_comparison *comparison)
{
    if (comparison->n_distinct == comparison->n)
        tdmi_print(out, "\nof %lld images: ", (long long)comparison->n);
    else
        tdmi_print(out, "\n%lld images, copies counted once: of %lld, ", (long long)comparison->n,
                   (long long)comparison->n_distinct);
    tdmi_print(out, "%lld right in both, %lld only in %s, %lld only in %s, %lld in neither\n",
               (long long)comparison->both, (long long)comparison->only_a, a,
               (long long)comparison->only_b, b, (long long)comparison->neither);
    tdmi_print(
        out, "%s minus %s: %+.1f points (95 %%: %+.1f to %+.1f); McNemar's exact test: p = %.4g\n",
        b, a, in_points(comparison->difference), in_points(comparison->interval.low),
        in_points(comparison->interval.high), comparison->p);
    print_verdict(out, a, b, comparison);
}

static void report_comparison(const struct tdmi_call *call, const tdm_runs *runs,
                              const struct tdm_comparison *comparison)
{
    tdm_comparison_to_json(comparison, call->json);
    if (comparison->is_comparable)
        print_comparison(call->out, tdm_runs_at(runs, 0)->path, tdm_runs_at(runs, 1)->path,
                         comparison);
    else
        tdmi_print(call->out, "\nnot comparable: %s\n", comparison->reason);
}

static tdm_status compare(struct tdmi_call *call, tdm_error *err)
{
    TDMI_AT_END(tdm_runs_close_at) tdm_runs *runs = NULL;
    struct tdm_comparison comparison = {.struct_bytes = sizeof comparison};
    TDMI_TRY(tdm_runs_read(call->arguments + 1, 2, &runs, err));
    TDMI_TRY(tdm_runs_compare(runs, 0, 1, &comparison, err));
    write_runs(call->json, runs, false);
    print_table(call->out, runs);
    report_comparison(call, runs, &comparison);
    return TDM_OK;
}

/* ---- the command -------------------------------------------------------------------------- */

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    static const struct tdmi_verb verbs[] = {{"list", "at most one folder", 1, 2, list},
                                             {"show", "one RUN", 2, 2, show},
                                             {"compare", "two runs, A and B", 3, 3, compare},
                                             {.name = NULL}};
    const struct tdmi_verb *verb;
    TDMI_TRY(tdmi_verb_find(call, verbs, &verb, err));
    return verb->run(call, err);
}

static const struct tdmi_argument arguments[] = {
    {.name = "WHAT",
     .help = "list, show or compare",
     .is_optional = true,
     .choices = "list|show|compare"},
    {.name = "DIR|RUN",
     .help = "list: folder to search (default: runs); show and compare: a run folder",
     .is_optional = true},
    {.name = "B", .help = "compare: the run to compare with the first", .is_optional = true},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW_SHOW(show),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem runs",
    "every run in runs/, one a line",
    "tandem runs show runs/first",
    "one of them, class by class",
    "tandem runs compare runs/first runs/second",
    "is the second better, image by image?",
    NULL,
};

TDMI_COMMAND(runs, "list, show and compare runs",
             "Compares two runs on each validation image of both. The verdict is 'better' or "
             "'worse', with the difference and its 95 % interval (Tango's), where McNemar's "
             "exact test gives p < 0.05; 'no loss' where the interval excludes a loss of more "
             "than one point; 'perhaps worse' where it lies below zero and p is not below 0.05; "
             "'cannot tell' where it contains a loss and a gain. Copies count once. Runs validated "
             "on different images are shown side by side and not "
             "compared.");
