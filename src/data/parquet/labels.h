/*
 * Labels as they stand in tables (integers of any base, text), becoming classes: distinct values in
 * order, numbers by value, anything else by bytes.
 */
#ifndef TANDEM_DATA_PARQUET_LABELS_H
#define TANDEM_DATA_PARQUET_LABELS_H

#include "data/source/listing.h"

struct tdmi_label {
    const char *key;  /* the value as text */
    const char *name; /* what another column calls it; NULL: the key */
    int64_t number;   /* of keys that are integers */
    int next, index;  /* 1 + the next one of the chain, 0: none; of the class */
};

struct tdmi_parquet_labels { /* start from a zeroed object */
    tdmi_arena arena;
    struct tdmi_label *labels;
    int64_t capacity;
    int n_labels;
    int *chains;    /* 1 + the first label of each, 0: none */
    bool has_texts; /* some label is no integer */
    char **names;   /* names of the numbers from 0 on, where the file's metadata gives them */
    int n_names;
};

void tdmi_parquet_labels_release(struct tdmi_parquet_labels *labels);

/* *id of the key, which was there or is added. TDM_E_INPUT: more different ones than classes can
 * be. */
tdm_status tdmi_parquet_labels_add(struct tdmi_parquet_labels *labels, const char *key,
                                   size_t key_bytes, int *id, tdm_error *err) TDM_MUST_USE;
/* The name of a label's class; another one than before is TDM_E_INPUT. */
tdm_status tdmi_parquet_labels_name(struct tdmi_parquet_labels *labels, int id, const char *name,
                                    size_t name_bytes, tdm_error *err) TDM_MUST_USE;

/* Adds the classes to the listing, and converts the labels of its items from ids to classes;
 * negative ones stay. All names of the metadata become classes; without them, the labels that
 * occur. */
tdm_status tdmi_parquet_labels_finish(struct tdmi_parquet_labels *labels,
                                      struct tdmi_listing *listing, tdm_error *err) TDM_MUST_USE;

/* Take the names of the classes, and the column of classes, from the metadata of data sets of
 * Hugging Face; without it nothing is set. label_column: the column, or NULL for the only one of
 * classes. *class_label is in the arena of labels. */
tdm_status tdmi_parquet_labels_describe(struct tdmi_parquet_labels *labels, const char *json,
                                        const char *label_column, const char **class_label,
                                        tdm_error *err) TDM_MUST_USE;

#endif
