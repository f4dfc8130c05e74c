/* A run, and a comparison of two, as JSON. */
#include "base/sized.h"
#include "tandem/runs.h"

static void write_score(tdm_json_writer *json, const tdm_score *score, const char *key)
{
    if (score->n > 0)
        tdm_score_to_json(score, json, key);
    else
        tdm_json_null(json, key);
}

static void write_next(tdm_json_writer *json, const struct tdm_run *run)
{
    if (!*run->next_step) {
        tdm_json_null(json, "next");
        return;
    }
    tdm_json_object_begin(json, "next");
    tdm_json_string(json, "step", run->next_step);
    tdm_json_string(json, "evidence", run->next_evidence);
    tdm_json_object_end(json);
}

void tdm_run_to_json(const struct tdm_run *run, bool is_whole, tdm_json_writer *json)
{
    tdm_json_object_begin(json, NULL);
    tdm_json_string(json, "run", run->path);
    tdm_json_string(json, "state", run->state);
    tdm_json_string(json, "network", *run->network ? run->network : NULL);
    tdm_json_string(json, "source", *run->source ? run->source : NULL);
    tdm_json_string(json, "started", *run->started ? run->started : NULL);
    tdm_json_integer(json, "epochs", run->epochs);
    tdm_json_integer(json, "best_epoch", run->best_epoch);
    tdm_json_integer(json, "steps", run->steps);
    tdm_json_number(json, "seconds", run->seconds);
    write_score(json, &run->train, "train");
    write_score(json, &run->val, "val");
    write_score(json, &run->test, "test");
    tdm_json_integer(json, "tests_before", run->tests_before);
    write_next(json, run);
    if (is_whole && run->metrics) {
        tdm_json_object_begin(json, "validation");
        tdm_metrics_to_json(run->metrics, json);
        tdm_json_object_end(json);
    } else if (is_whole) {
        tdm_json_null(json, "validation");
    }
    tdm_json_object_end(json);
}

void tdm_comparison_to_json(const struct tdm_comparison *comparison, tdm_json_writer *json)
{
    static const char *const unknown[] = {"n",       "n_distinct", "both",       "only_a", "only_b",
                                          "neither", "p",          "difference", "low",    "high",
                                          "better",  "worse",      "no_loss"};
    struct tdm_comparison own = {.verdict = ""};
    if (tdmi_options_copy("tdm_comparison", comparison, &own, sizeof own, NULL) != TDM_OK)
        return;
    tdm_json_bool(json, "comparable", own.is_comparable);
    tdm_json_string(json, "verdict", own.verdict);
    tdm_json_string(json, "reason", *own.reason ? own.reason : NULL);
    tdm_json_number(json, "margin", TDM_COMPARE_MARGIN);
    if (!own.is_comparable) {
        for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
            tdm_json_null(json, unknown[i]);
        return;
    }
    tdm_json_integer(json, "n", own.n);
    tdm_json_integer(json, "n_distinct", own.n_distinct);
    tdm_json_integer(json, "both", own.both);
    tdm_json_integer(json, "only_a", own.only_a);
    tdm_json_integer(json, "only_b", own.only_b);
    tdm_json_integer(json, "neither", own.neither);
    tdm_json_number(json, "p", own.p);
    tdm_json_number(json, "difference", own.difference);
    tdm_json_number(json, "low", own.interval.low);
    tdm_json_number(json, "high", own.interval.high);
    tdm_json_bool(json, "better", own.is_better);
    tdm_json_bool(json, "worse", own.is_worse);
    tdm_json_bool(json, "no_loss", own.is_no_loss);
}
