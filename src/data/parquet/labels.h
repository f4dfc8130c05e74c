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
    int next, index;  /* of the chain; of the class */
};

struct tdmi_parquet_labels { /* start from a zeroed object, then init */
    tdmi_arena arena;
    struct tdmi_label *labels;
    int64_t capacity;
    int n_labels, *chains, n_chains;
    bool are_numbers; /* every one so far */
};

void tdmi_parquet_labels_init(struct tdmi_parquet_labels *labels);
void tdmi_parquet_labels_release(struct tdmi_parquet_labels *labels);

/* *id of the key, which was there or is added. TDM_E_INPUT: more different ones than classes can
 * be. */
tdm_status tdmi_parquet_labels_add(struct tdmi_parquet_labels *labels, const char *key,
                                   size_t key_bytes, int *id, tdm_error *err) TDM_MUST_USE;
/* The name of a label's class; another one than before is TDM_E_INPUT. */
tdm_status tdmi_parquet_labels_name(struct tdmi_parquet_labels *labels, int id, const char *name,
                                    size_t name_bytes, tdm_error *err) TDM_MUST_USE;

/* Adds the classes to the listing, and turns the labels of its items from ids into classes;
 * negative ones stay. names: what numbers are called, from 0 on, n_names of them, all of which
 * become classes; 0 of them: the labels that occur. */
tdm_status tdmi_parquet_labels_finish(struct tdmi_parquet_labels *labels, const char *const *names,
                                      int n_names, struct tdmi_listing *listing,
                                      tdm_error *err) TDM_MUST_USE;

#endif
