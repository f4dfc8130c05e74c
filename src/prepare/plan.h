/*
 * The plan: the images of every part, in order. A pure function of content, seed and options:
 * threads, slices and attempts decide only which process makes a part, never its content.
 *
 *     split    train, val, test by content (split.h); test is what the source gave as test and what
 *              the fractions leave over
 *     order    within each by a keyed hash of content, so that neighbours are of all classes
 *     parts    of so many rows that a file has about 128 MiB; a split begins a new part
 *
 * For a finished table the plan updates it to its source: parts whose rows are all still in the
 * source are kept, and all other rows go into new parts after them.
 */
#pragma once

#include "data/audit/split.h"
#include "prepare/form.h"
#include "prepare/look.h"

/* ---- the content of a finished table, as an update needs it (stored.c) ---------------------- */

/* In the order of the rows. NONE: unlabelled. */
enum tdmi_prepare_split {
    TDMI_PREPARE_TRAIN,
    TDMI_PREPARE_VAL,
    TDMI_PREPARE_TEST,
    TDMI_PREPARE_NONE,
    TDMI_PREPARE_SPLITS
};
const char *tdmi_prepare_split_name(enum tdmi_prepare_split split); /* "train"; "" of NONE */

struct tdmi_prepare_stored_part {
    const char *name;
    int64_t n_rows, n_bytes;
    enum tdmi_prepare_split split;
};

struct tdmi_prepare_stored_row {
    uint64_t hash;
    const char *path;
    int label; /* -1: none */
    int part;
    enum tdmi_prepare_split split;
};

/* An image that was dropped while its part was made: dropped again as long as it is unchanged.
 */
struct tdmi_prepare_stored_drop {
    uint64_t hash;
    const char *path, *verdict, *reason;
};

typedef struct tdmi_prepare_stored { /* start from a zeroed object */
    tdmi_arena arena;
    bool is_there;
    const char **classes;
    int n_classes;
    struct tdmi_prepare_stored_part *parts;
    int n_parts, next_number; /* beyond that of every part */
    struct tdmi_prepare_stored_row *rows;
    int64_t n_rows;
    struct tdmi_prepare_stored_drop *drops;
    int64_t n_drops;
    struct tdmi_split_stored sides; /* in the arena */
} tdmi_prepare_stored;

/* dataset: _dataset.json of the table in folder. TDM_E_INPUT: a part differs from its record. */
tdm_status tdmi_prepare_stored_read(const char *folder, const tdm_json_value *dataset,
                                    tdmi_prepare_stored *stored, tdm_error *err) TDM_MUST_USE;
void tdmi_prepare_stored_release(tdmi_prepare_stored *stored);

/* ---- the plan ------------------------------------------------------------------------------ */

struct tdmi_prepare_row {
    uint64_t hash, key;
    const char *path; /* the source's */
    int64_t item;
    int label; /* of the table */
    enum tdmi_prepare_split split;
};

struct tdmi_prepare_part {
    int64_t first, n; /* rows */
    enum tdmi_prepare_split split;
};

typedef struct tdmi_prepare_plan { /* start from a zeroed object */
    const char **classes;          /* of the table, by label: its old classes, then new ones */
    int n_classes;
    struct tdmi_prepare_row *rows; /* of the parts */
    struct tdmi_prepare_part *parts;
    int64_t n_rows, n_left_out;
    bool is_split_given;       /* by the source, of every image */
    int n_parts, first_number; /* of the first part */
    bool *is_kept;             /* by stored part; NULL: nothing is stored */
    int64_t n_kept_rows;
    int64_t n_added, n_removed;        /* rows that move between parts count as neither */
    int64_t n_in[TDMI_PREPARE_SPLITS]; /* with the kept ones */
    uint64_t id;                       /* of form and rows: equal plans give equal files */
} tdmi_prepare_plan;

/* Source and stored must outlive the plan. stored: of a finished table; empty: there is none. To be
 * released where it fails, too. */
tdm_status tdmi_prepare_plan_make(const tdmi_source *source, const tdmi_prepare_look *look,
                                  const struct tdmi_prepare_form *form,
                                  const tdmi_prepare_stored *stored, tdmi_prepare_plan *plan,
                                  tdm_error *err) TDM_MUST_USE;
/* Does the table match its source already? */
bool tdmi_prepare_plan_is_done(const tdmi_prepare_plan *plan, const tdmi_prepare_stored *stored);
void tdmi_prepare_plan_release(tdmi_prepare_plan *plan);
