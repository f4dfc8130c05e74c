/*
 * The state of a Delta table from the actions of its log. Commits and checkpoints are fed in the
 * order of their versions; the newest protocol and metaData win, and a file is part of the table
 * when the last action that names it (path and deletion vector) adds it. Knows no file system:
 * delta/log.c reads the texts.
 */
#pragma once

#include "base/arena.h"
#include "base/scope.h"

/* ---- result ------------------------------------------------------------------------ */

struct tdmi_delta_field {
    const char *name;
    const char *type; /* "integer", "decimal(10,2)", …; "struct", "array" or "map" */
    bool is_nullable;
    bool is_partition; /* its values stand in the log and not in the files */
};

/* Location of the list of a file's deleted rows; kind 0: no row is deleted. */
struct tdmi_delta_vector_place {
    char kind;        /* 'u': file named by a number, 'p': file by path, 'i': in text itself */
    const char *text; /* as in the log */
    int64_t offset_bytes, size_bytes, n_rows;
};

struct tdmi_delta_file {
    const char *path;           /* decoded; relative to the table, absolute, or a URI */
    int64_t size_bytes, n_rows; /* as the log says; -1: it does not say how many rows */
    const char *const *values;  /* of the partition columns, in their order; NULL: null */
    struct tdmi_delta_vector_place deleted;
    const char *origin; /* the file of the log that adds it */
    int64_t line;       /* in origin: line of a commit, row of a checkpoint, from 1 */
};

struct tdmi_delta_table { /* start from a zeroed object */
    tdmi_arena arena;
    const char *path; /* as messages name it */
    bool follows; /* files may lie where tdmi_delta_path_place refuses them; set by the caller */
    int64_t version;
    struct tdmi_delta_field *fields;
    int n_fields;
    const char **partition_columns;
    int n_partition_columns;
    struct tdmi_delta_file *files; /* by the bytes of their paths */
    int64_t n_files;
};

void tdmi_delta_table_release(struct tdmi_delta_table *table);
/* Word of messages for the position of an action in its file: "line" of a commit, "row" of a
 * checkpoint.
 */
const char *tdmi_delta_line_word(const char *origin);
/* Format and arguments of "_delta_log/….json, line 3", for what has an origin and a line. */
#define TDMI_DELTA_AT "%s, %s %lld"
#define TDMI_DELTA_POSITION(at) \
    (at)->origin, tdmi_delta_line_word((at)->origin), (long long)(at)->line

/* ---- replay -------------------------------------------------------------------------------- */

typedef struct tdmi_delta_replay tdmi_delta_replay;

/* table names the whole in messages. */
tdm_status tdmi_delta_replay_new(const char *table, tdmi_delta_replay **replay,
                                 tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_delta_replay_free(tdmi_delta_replay *replay);
TDMI_POINTER_RELEASE(tdmi_delta_replay, tdmi_delta_replay_free)

/* One action as a JSON object, which stands in line (or row) number line of the file origin. Kinds
 * of actions that are not known are passed over, as the protocol asks. */
tdm_status tdmi_delta_replay_action(tdmi_delta_replay *replay, const char *origin, int64_t line,
                                    const char *text, size_t length_bytes,
                                    tdm_error *err) TDM_MUST_USE;
/* A whole commit: an action in each line. */
tdm_status tdmi_delta_replay_commit(tdmi_delta_replay *replay, const char *origin, const char *text,
                                    size_t length_bytes, tdm_error *err) TDM_MUST_USE;

/* Checkpoints of the second kind name further files: number index in the order met, or NULL. The
 * replay keeps the text. */
const char *tdmi_delta_replay_sidecar(const tdmi_delta_replay *replay, int64_t index);

/* TDM_E_INPUT: the table needs what is not read here (named), or the log is wrong in itself. */
tdm_status tdmi_delta_replay_finish(const tdmi_delta_replay *replay, int64_t version,
                                    struct tdmi_delta_table *table, tdm_error *err) TDM_MUST_USE;

/* ---- checkpoints: the state of a table at a version, as Parquet files of actions ------------ */

/* Every action of the file at path; origin is what messages call it. TDM_E_INPUT: missing, damaged,
 * no checkpoint. TDM_E_ABSENT: a build without Arrow. */
tdm_status tdmi_delta_checkpoint_read(tdmi_delta_replay *replay, const char *path,
                                      const char *origin, tdm_error *err) TDM_MUST_USE;
