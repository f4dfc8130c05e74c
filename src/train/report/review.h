/* The parts of a run folder that report and runs read. */
#pragma once

#include "tandem/runs.h"
#include "train/evaluate/outcomes.h"

struct tdmi_review_run {
    struct tdm_run summary;
    tdm_json_document *record; /* run.json */
    tdmi_outcomes outcomes;    /* n is 0 where none were kept */
    struct tdm_metrics metrics;
};

struct tdm_runs {
    struct tdmi_review_run *runs;
    size_t n;
    int64_t capacity;
    tdmi_arena arena;
};

/* An epoch of metrics.jsonl; what was not counted has n 0. */
struct tdmi_review_epoch {
    int epoch;
    bool is_best;
    double learning_rate;
    tdm_score train, val;
};

/* The epochs that a run recorded, in order, in the arena; a line that is no epoch, or torn, is
 * passed over. A run without the file has none. */
tdm_status tdmi_review_epochs(const char *run, tdmi_arena *arena, struct tdmi_review_epoch **epochs,
                              size_t *n_epochs, tdm_error *err) TDM_MUST_USE;
/* The same of the file's bytes. */
tdm_status tdmi_review_read_epochs(const char *text, size_t length_bytes, tdmi_arena *arena,
                                   struct tdmi_review_epoch **epochs, size_t *n_epochs,
                                   tdm_error *err) TDM_MUST_USE;

/* The page of tdm_runs_report, of at least one run. */
tdm_status tdmi_report_write(const tdm_runs *runs, tdmi_text *out, tdm_error *err) TDM_MUST_USE;

/* The sample images of a run, with their predictions; nothing where none were kept, a sentence
 * where they cannot be read. */
tdm_status tdmi_review_pictures(tdmi_text *out, const struct tdmi_review_run *run,
                                tdm_error *err) TDM_MUST_USE;
