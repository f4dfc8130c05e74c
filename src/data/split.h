/*
 * The split: which pictures train and which judge. A pure function of (content, class, seed,
 * fractions): within a class the pictures stand in the order of a keyed hash of their content, and
 * the lowest round(val · n) (at least one where there are two, never all) go to validation. Equal
 * content always stays on one side, across classes too. A part the source gives is kept, and so is
 * a stored assignment (files added to a folder later do not move the old ones).
 */
#ifndef TANDEM_DATA_SPLIT_H
#define TANDEM_DATA_SPLIT_H

#include "base/thread.h"
#include "data/source.h"

struct tdmi_split_options {
    double train_fraction, val_fraction; /* what both leave over is used by neither */
    double fraction;                     /* of every class, by another keyed hash; 1: all */
    int per_class;                       /* at most; 0: all */
    uint64_t seed;
};

typedef struct tdmi_split { /* start from a zeroed object */
    int64_t *train, *val;   /* item indices, ascending */
    int64_t n_train, n_val;
    uint64_t *hashes; /* content hash of every item of the source (XXH64, seed 0) */
    int64_t n_items;
    int64_t n_unreadable; /* left out; each was logged as a warning by path */
} tdmi_split;

/* Reads every file once (threads of pool) to hash it. stored_* are sorted content hashes of an
 * earlier split, or NULL with 0. TDM_E_INPUT with a sentence where a class or a side would be
 * empty. */
struct tdmi_split_stored {
    const uint64_t *train, *val;
    int64_t n_train, n_val;
};
tdm_status tdmi_split_make(const tdmi_source *source, struct tdmi_split_options options,
                           struct tdmi_split_stored stored, tdmi_pool *pool, tdmi_split *split,
                           tdm_error *err) TDM_MUST_USE;
void tdmi_split_release(tdmi_split *split);

#endif
