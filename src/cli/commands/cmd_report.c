/* tandem report RUN…: one page of HTML that needs nothing else, to look at or to send. */
#include "cli/command.h"
#include "base/scope.h"
#include "tandem/runs.h"

#include <stdio.h>

TDMI_POINTER_RELEASE(tdm_runs, tdm_runs_close)

struct values {
    const char *out;
};

static void defaults(void *values)
{
    *(struct values *)values = (struct values){0};
}

static tdm_status run(struct tdmi_call *call, tdm_error *err)
{
    const struct values *values = call->values;
    char beside[4096];
    TDMI_AT_END(tdm_runs_close_at) tdm_runs *runs = NULL;
    const char *path = values->out;
    if (!path) {
        const int length = snprintf(beside, sizeof beside, "%s/%s", call->arguments[0],
                                    call->n_arguments == 1 ? TDM_REPORT_NAME : TDM_COMPARISON_NAME);
        if (length < 0 || (size_t)length >= sizeof beside)
            return TDM_FAIL(err, TDM_E_USAGE, "the path of the run is longer than %zu bytes",
                            sizeof beside);
        path = beside;
    }
    TDMI_TRY(tdm_runs_read(call->arguments, (size_t)call->n_arguments, &runs, err));
    TDMI_TRY(tdm_runs_report(runs, path, err));
    tdm_json_string(call->json, "path", path);
    tdm_json_array_begin(call->json, "runs");
    for (int i = 0; i < call->n_arguments; i++) {
        tdm_json_object_begin(call->json, NULL);
        tdm_json_string(call->json, "run", call->arguments[i]);
        tdm_json_object_end(call->json);
    }
    tdm_json_array_end(call->json);
    tdmi_print(call->out, "%s: %d %s; any browser shows it\n", path, call->n_arguments,
               call->n_arguments == 1 ? "run" : "runs");
    return TDM_OK;
}

static const struct tdmi_argument arguments[] = {
    {.name = "RUN",
     .help = "run folders; each further one is compared with the first",
     .is_many = true},
    {.name = NULL},
};

static const struct tdmi_option options[] = {
    TDMI_ROW(PATH, "out", out, "Result", "page to write", .letter = 'o', .value_name = "FILE",
             .default_words = "report.html in the first run, comparison.html there for several"),
    {.name = NULL},
};

static const char *const examples[] = {
    "tandem report runs/first",
    "runs/first/report.html",
    "tandem report runs/first runs/second -o both.html",
    "two runs side by side, and whether the second is better",
    NULL,
};

TDMI_COMMAND(report, "write an HTML page: curves, classes, confusions, calibration",
             "The page is one file: no network, no scripts, no other files. Each further run "
             "is compared with the first.");
