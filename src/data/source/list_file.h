/*
 * List files: rows of path, label and part, as CSV (RFC 4180) or as JSON objects, one a line.
 */
#pragma once

#include "base/text/text.h"
#include "data/source/source.h"
#include "tandem/json.h"

/* One row, its strings lent until the next one. */
struct tdmi_list_row {
    int64_t line;      /* where it begins, from 1 */
    const char *path;  /* not empty */
    const char *label; /* "": unlabelled */
    enum tdmi_part part;
};

/* Any status but TDM_OK ends the reading. */
typedef tdm_status tdmi_list_sink(void *self, const struct tdmi_list_row *row, tdm_error *err);

/* name is for messages, which give it and the line. n_bytes bytes; a byte order mark is passed
 * over. */
tdm_status tdmi_list_csv(const char *name, const char *bytes, size_t n_bytes, tdmi_list_sink *sink,
                         void *self, tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_list_jsonl(const char *name, const char *bytes, size_t n_bytes,
                           tdmi_list_sink *sink, void *self, tdm_error *err) TDM_MUST_USE;

/* Names of the columns and keys: "path", "file", "file_name", "filename", "image"; "label",
 * "class"; "split", "part". Any case. */
enum tdmi_list_field { TDMI_LIST_PATH, TDMI_LIST_LABEL, TDMI_LIST_PART, TDMI_LIST_FIELDS };
enum tdmi_list_field tdmi_list_field_named(const char *name); /* FIELDS: none of them */
/* "": to be split; false: not the name of a part. */
bool tdmi_list_part(const char *name, enum tdmi_part *part);

/* The value in each line that is not blank, for any file of JSON lines. */
typedef tdm_status tdmi_json_line(void *self, int64_t line, const tdm_json_value *value,
                                  tdm_error *err);
tdm_status tdmi_json_lines(const char *name, const char *bytes, size_t n_bytes,
                           tdmi_json_line *take, void *self, tdm_error *err) TDM_MUST_USE;
