/*
 * The log of a table that we write: a first commit that says what its columns are and which Parquet
 * files it has, and one for each update: which go and which come. delta-rs, Spark and others read
 * the folder as a Delta table by it, any version of it.
 */
#pragma once

#include "base/arena.h"
#include "base/text/text.h"

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
    int64_t version;            /* 0: the first; later ones have neither columns nor protocol */
    const char *const *removed; /* paths that go */
    int64_t n_removed;
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

/* ---- updates ------------------------------------------------------------------------------- */

/* The table shall have the parts of commit: writes the first commit, or one with the difference to
 * the newest version, or nothing where there is none; so it may be called again after a kill.
 * *version is the newest then. TDM_E_USAGE: is_ours says no to a file of the table, or rows of one
 * were deleted: another program has changed it. */
tdm_status tdmi_delta_write_next(const char *folder, const struct tdmi_delta_commit *commit,
                                 bool (*is_ours)(const char *path), int64_t *version,
                                 tdm_error *err) TDM_MUST_USE;
/* Paths of all files of all versions up to `version`, in the arena, some more than once. *is_whole
 * false: some version cannot be read any more. */
tdm_status tdmi_delta_names(const char *folder, int64_t version, tdmi_arena *arena,
                            const char ***names, int64_t *n, bool *is_whole,
                            tdm_error *err) TDM_MUST_USE;
