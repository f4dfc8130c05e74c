/*
 * Internal to the Parquet table: the table, its files, and how their rows are listed and loaded.
 */
#pragma once

#include "data/cache/group_cache.h"
#include "data/source/listing.h"
#include "data/parquet/columns.h"
#include "data/parquet/places.h"
#include "data/parquet/table.h"

/* One row group, cut into units that are read together: pages, or the row group itself. */
struct tdmi_parquet_group {
    int64_t first_row, first_unit; /* in the table */
    int64_t n_rows, n_units;
    struct tdmi_pages pages; /* n_pages 0: Arrow reads the row group */
};

struct tdmi_parquet_file {
    const char *path, *name;  /* in the arena of the listing */
    tdmi_arrow_file *arrow;   /* NULL where all groups are read by pages */
    tdmi_storage_file *bytes; /* NULL: opened for each read */
    struct tdmi_parquet_group *groups;
    int n_groups;
    int64_t first_row, n_rows, first_unit;
};

/* Height, width and channels of one of Spark's images. */
struct tdmi_spark_shape {
    int32_t height, width, channels;
};

struct tdmi_parquet_table {
    struct tdmi_listing listing; /* first, as in the state of every source */
    const char *path;
    struct tdmi_parquet_columns columns;
    bool has_columns;
    struct tdmi_parquet_file *files; /* those with rows */
    int64_t n_files, n_open;
    int64_t n_units;
    int64_t *group_starts; /* first rows of the groups that deleted rows leave; NULL: all units */
    int64_t n_kept_groups;
    bool has_large_units;            /* some unit has several rows */
    struct tdmi_raw_shape raw;       /* channels 0: encoded images */
    struct tdmi_preprocess geometry; /* to apply when loading; width 0: none */
    uint64_t *hashes;                /* NULL: not known */
    struct tdmi_spark_shape *spark_shapes;
    int64_t hash_capacity, shape_capacity;
    tdmi_group_cache *cache;
};

/* ---- labels: parquet/labels.c -------------------------------------------------------------- */

/* The name of a label's class; another one than before is TDM_E_INPUT. */
tdm_status tdmi_parquet_labels_name(struct tdmi_labels *labels, int id, const char *name,
                                    size_t name_bytes, tdm_error *err) TDM_MUST_USE;

/* Take the names of the classes, and the column of classes, from the metadata of data sets of
 * Hugging Face; without it nothing is set. label_column: the column, or NULL for the only one of
 * classes. *class_label is in the arena of labels. */
tdm_status tdmi_parquet_labels_describe(struct tdmi_labels *labels, const char *json,
                                        const char *label_column, const char **class_label,
                                        tdm_error *err) TDM_MUST_USE;

/* ---- opening ------------------------------------------------------------------------------- */

/* Collected while files are opened. */
struct tdmi_parquet_opening {
    struct tdmi_parquet_table *table;
    const struct tdm_source_options *options;
    struct tdmi_labels *labels;
    bool is_ours;
    int64_t n_null_labels, n_unknown_splits;
    const char *null_label_at; /* the first item without label */
};

/* parquet/rows.c: adds the member's rows to the listing. */
tdm_status tdmi_parquet_list_rows(struct tdmi_parquet_opening *opening,
                                  const struct tdmi_parquet_member *member,
                                  const struct tdmi_parquet_file *file,
                                  tdm_error *err) TDM_MUST_USE;
/* parquet/units.c: for the cache; self is the table. */
tdm_status tdmi_parquet_load_unit(void *self, int64_t unit, void **value, int64_t *n_bytes,
                                  tdm_error *err);
void tdmi_parquet_drop_unit(void *self, void *value);
/* The image of a row (of the table) in a loaded unit, bytes NULL for a null; or, where the unit
 * only knows the places of its images, *body is not NULL and *span is its place there. */
void tdmi_parquet_unit_find(const void *value, int64_t row, struct tdmi_page_value *found,
                            const struct tdmi_body **body, struct tdmi_page_span *span);

/* parquet/table.c */
struct tdmi_parquet_file *tdmi_parquet_file_of_row(const struct tdmi_parquet_table *table,
                                                   int64_t row);
struct tdmi_parquet_group *tdmi_parquet_group_of_row(const struct tdmi_parquet_file *file,
                                                     int64_t row);
void tdmi_parquet_group_of_unit(const struct tdmi_parquet_table *table, int64_t unit,
                                struct tdmi_parquet_file **file, struct tdmi_parquet_group **group);
/* The bytes of the file. Where it is not kept open they are opened into *own, which the caller
 * closes. */
tdm_status tdmi_parquet_bytes(const struct tdmi_parquet_file *file, tdmi_storage_file **own,
                              const tdmi_storage_file **bytes, tdm_error *err) TDM_MUST_USE;
