/*
 * Finished and running run folders: listed, compared, and reported as one page. Nothing here
 * changes a run; a run that is being written can be read.
 */
#ifndef TANDEM_RUNS_H
#define TANDEM_RUNS_H

#include "tandem/error.h"
#include "tandem/json.h"
#include "tandem/metrics.h"
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Strings live as long as the runs; "" where nothing was recorded. */
struct tdm_run {
    const char *path;
    const char *state; /* "running", "finished", "stopped", "failed"; "killed": it says running, and
                          nobody works on it */
    const char *network, *source, *started;
    int epochs; /* complete */
    int best_epoch;
    int64_t steps;
    double seconds;
    tdm_score train, val, test; /* of the best epoch; n is 0 while there is none */
    int tests_before;           /* earlier tests, for other epochs */
    /* The next step advised at the end, and its figures. */
    const char *next_step, *next_evidence;
    const struct tdm_metrics *metrics; /* all of val; NULL: not read, or not kept */
};

typedef struct tdm_runs tdm_runs;

/* Every run in folder and the folders below it, by path; folder may be a run. A run whose record is
 * damaged is left out with a warning. TDM_E_INPUT: there is no such folder. */
TDM_API tdm_status tdm_runs_find(const char *folder, tdm_runs **runs, tdm_error *err) TDM_MUST_USE;
/* These, with metrics. TDM_E_INPUT where one is none. */
TDM_API tdm_status tdm_runs_read(const char *const *paths, size_t n_paths, tdm_runs **runs,
                                 tdm_error *err) TDM_MUST_USE;
TDM_API void tdm_runs_close(tdm_runs *runs);
TDM_API size_t tdm_runs_count(const tdm_runs *runs);
TDM_API const struct tdm_run *tdm_runs_at(const tdm_runs *runs, size_t index);

/* As an object; is_whole: with "validation", its metrics, or null. */
TDM_API void tdm_run_to_json(const struct tdm_run *run, bool is_whole, tdm_json_writer *writer);

/* ---- is B better than A? ------------------------------------------------------------------ */

/* "No loss" excludes a loss of more than this. */
#define TDM_COMPARE_MARGIN 0.01

struct tdm_comparison {
    size_t struct_bytes; /* see tandem/api.h */
    bool is_comparable;  /* validated on the same images; else there is only a reason */
    char reason[200];    /* why there is no comparison or no decision; "" otherwise */
    int64_t n;           /* images */
    /* Distinct images by who predicted them correctly; everything below rests on these. */
    int64_t both, only_a, only_b, neither;
    double p;                 /* McNemar, exact, two-sided */
    double difference;        /* B's accuracy minus A's */
    tdm_interval interval;    /* 95 % interval of the difference: tdm_paired_interval */
    bool is_better, is_worse; /* p below 0.05, in this direction */
    bool is_no_loss;          /* the interval excludes a loss of more than the margin */
    /* The first of these that holds: "not comparable", "better", "worse", "no loss", "perhaps
     * worse" (the interval lies below 0, and p is not below 0.05), "cannot tell" (the interval
     * contains both signs). Static storage. */
    const char *verdict;
    int64_t n_distinct; /* the sum of both, only_a, only_b and neither */
};

/* B against A, both from tdm_runs_read. Pictures are matched by content and class name. */
TDM_API tdm_status tdm_runs_compare(const tdm_runs *runs, size_t a, size_t b,
                                    struct tdm_comparison *comparison, tdm_error *err) TDM_MUST_USE;

/* As members of the object that is open; null where there is no comparison. */
TDM_API void tdm_comparison_to_json(const struct tdm_comparison *comparison,
                                    tdm_json_writer *writer);

/* ---- one page ----------------------------------------------------------------------------- */

/* Where a run's own is, in its folder: tdm_train writes it when it ends. */
#define TDM_REPORT_NAME "report.html"
/* Where the command puts a page of several runs, in the folder of the first: its own stays. */
#define TDM_COMPARISON_NAME "comparison.html"

/* One HTML file that needs nothing else: each run from tdm_runs_read with its curves and tables,
 * and each against the first. */
TDM_API tdm_status tdm_runs_report(const tdm_runs *runs, const char *path,
                                   tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
