/*
 * The log of a table that is written once: one commit that says what its columns are and which
 * Parquet files it has. delta-rs, Spark and others read the folder as a Delta table by it.
 */
#ifndef TANDEM_DATA_DELTA_WRITE_H
#define TANDEM_DATA_DELTA_WRITE_H

#include "base/text.h"
#include "tandem/error.h"
#include <stdbool.h>
#include <stdint.h>

struct tdmi_delta_column {
    const char *name, *type; /* "binary", "integer", "string", … */
    bool is_nullable;
};

struct tdmi_delta_part {
    const char *path; /* relative to the folder, as it is on disk */
    int64_t size_bytes, n_rows;
};

struct tdmi_delta_commit {
    const struct tdmi_delta_column *columns;
    int n_columns;
    const struct tdmi_delta_part *parts; /* in the order in which they are listed */
    int64_t n_parts;
    int64_t time_ms;    /* since 1970; stands for every time in the log */
    const char *engine; /* "tandem/0.1.0" */
};

/* The bytes of the commit replace what text held: they depend on the commit alone, and so does the
 * number of the table in them. TDM_E_USAGE: a column name that other readers refuse. */
tdm_status tdmi_delta_commit_text(const struct tdmi_delta_commit *commit, tdmi_text *text,
                                  tdm_error *err) TDM_MUST_USE;

/* The parts are in the folder already, so write this last: it appears whole or not at all. An equal
 * log is left as it is; TDM_E_USAGE where another one stands there. */
tdm_status tdmi_delta_write(const char *folder, const struct tdmi_delta_commit *commit,
                            tdm_error *err) TDM_MUST_USE;

#endif
