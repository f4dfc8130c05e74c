/*
 * A set of Parquet files as one table of labelled images: what the sources `parquet` and `delta`
 * stand on. Columns are found by name and type, or named by the options; docs/reference/sources.md
 * lists the layouts. Where every image is a page of its own it is read by itself, else its row
 * group is decoded and kept in a cache for its neighbours.
 */
#pragma once

#include "data/source/source.h"

/* A column that is no part of the file because all its rows have the same value. */
struct tdmi_parquet_value {
    const char *name, *value; /* value NULL: null */
};

struct tdmi_parquet_member {
    const char *path; /* a file or a URI */
    const char *name; /* relative to the table: what items and messages call it */
    const struct tdmi_parquet_value *values;
    int n_values;
};

/* The state of a source whose items are rows; member.h has the fields. */
typedef struct tdmi_parquet_table tdmi_parquet_table;

/* Open a zeroed table with an initialized listing; release it even where this fails. Everything is
 * copied. options as for tdmi_source_open, not NULL. path names the whole in messages.
 * TDM_E_INPUT: a file that is missing or damaged, no column of images or several, labels that
 * cannot be classes; TDM_E_ABSENT: a build without Arrow. */
tdm_status tdmi_parquet_table_open(const char *path, const struct tdmi_parquet_member *members,
                                   int64_t n_members, const struct tdm_source_options *options,
                                   tdmi_parquet_table *table, tdm_error *err) TDM_MUST_USE;

/* Rows of the file of this path whose first row is this item; 0: it has none. */
int64_t tdmi_parquet_table_file_rows(const tdmi_parquet_table *table, const char *path,
                                     int64_t first_item);

/* Entries of struct tdmi_source_table; self is a table. */
void tdmi_parquet_table_release(void *self);
tdm_status tdmi_parquet_table_read(const void *self, int64_t index, tdmi_text *bytes,
                                   tdm_error *err) TDM_MUST_USE;
uint64_t tdmi_parquet_table_hash(const void *self, int64_t index);
bool tdmi_parquet_table_row_name(const void *self, int64_t index, uint64_t *name);
bool tdmi_parquet_table_raw_shape(const void *self, struct tdmi_raw_shape *shape);
bool tdmi_parquet_table_geometry(const void *self, struct tdmi_preprocess *geometry);
tdm_status tdmi_parquet_table_read_raw(const void *self, int64_t index, uint8_t *pixels,
                                       tdm_error *err) TDM_MUST_USE;
const char *tdmi_parquet_table_row_file(const void *self, int64_t index);
int64_t tdmi_parquet_table_n_groups(const void *self);
int64_t tdmi_parquet_table_group_first(const void *self, int64_t group);

#define TDMI_PARQUET_TABLE_ENTRIES                                                                 \
    .release = tdmi_parquet_table_release, .read = tdmi_parquet_table_read, .takes_columns = true, \
    .hash = tdmi_parquet_table_hash, .row_name = tdmi_parquet_table_row_name,                      \
    .raw_shape = tdmi_parquet_table_raw_shape, .geometry = tdmi_parquet_table_geometry,            \
    .read_raw = tdmi_parquet_table_read_raw, .row_file = tdmi_parquet_table_row_file,              \
    .n_groups = tdmi_parquet_table_n_groups, .group_first = tdmi_parquet_table_group_first
