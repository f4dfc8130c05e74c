/*
 * The plan: which pictures stand in which part, in which order. A pure function of content, seed
 * and options: threads, slices and attempts only decide who makes a part, never what is in it.
 *
 *     split     train, val, test by content (split.h); test is what the source gave as test and
 * what the fractions leave over order     within each by a keyed hash of content, so that
 * neighbours are of all classes parts     of so many rows that a file has about 128 MiB; a split
 * begins a new part
 */
#ifndef TANDEM_DATA_PREPARE_PLAN_H
#define TANDEM_DATA_PREPARE_PLAN_H

#include "data/prepare_form.h"
#include "data/prepare_look.h"

/* In the order of the rows. NONE: unlabelled. */
enum tdmi_prepare_split {
    TDMI_PREPARE_TRAIN,
    TDMI_PREPARE_VAL,
    TDMI_PREPARE_TEST,
    TDMI_PREPARE_NONE,
    TDMI_PREPARE_SPLITS
};
const char *tdmi_prepare_split_name(enum tdmi_prepare_split split); /* "train"; "" of NONE */

struct tdmi_prepare_row {
    uint64_t hash, key;
    const char *path; /* the source's */
    int64_t item;
    enum tdmi_prepare_split split;
};

struct tdmi_prepare_part {
    int64_t first, n; /* rows */
    enum tdmi_prepare_split split;
};

typedef struct tdmi_prepare_plan { /* start from a zeroed object */
    struct tdmi_prepare_row *rows;
    struct tdmi_prepare_part *parts;
    int64_t n_rows, n_left_out;
    int n_parts;
    int64_t n_in[TDMI_PREPARE_SPLITS];
    uint64_t id; /* of form and rows: equal plans give equal files */
} tdmi_prepare_plan;

/* The source must outlive the plan. */
tdm_status tdmi_prepare_plan_make(const tdmi_source *source, const tdmi_prepare_look *look,
                                  const struct tdmi_prepare_form *form, tdmi_prepare_plan *plan,
                                  tdm_error *err) TDM_MUST_USE;
void tdmi_prepare_plan_release(tdmi_prepare_plan *plan);

#endif
