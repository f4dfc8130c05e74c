/*
 * The split of the images into training and validation. A pure function of (content, class, seed,
 * fractions): within a class the distinct contents stand in the order of a keyed hash, and the
 * lowest round(val · n) of them (at least one where there are two, never all) go to validation, the
 * highest round(train · n) train, and what lies between is the test's, as far as it wants them.
 *
 * Equal content always stays on one side. Copies inside a class count as one image; a content
 * that occurs in several classes is counted in the first of them and takes its copies along.
 *
 * A part the source gives is kept. Where it gives train and test but no validation, validation is
 * taken from train; neither side uses test, and nobody its copies. A stored assignment
 * is kept too (images added later do not move the old ones), unless the source gives another.
 */
#pragma once

#include "data/audit/contents.h"

/* Orders of the distinct contents, each by a hash of its own. */
enum tdmi_split_purpose { TDMI_SPLIT_SELECT = 1, TDMI_SPLIT_SIDE = 2, TDMI_SPLIT_ROWS = 3 };
uint64_t tdmi_split_key(uint64_t hash, enum tdmi_split_purpose purpose, uint64_t seed);

struct tdmi_split_options {
    double train_fraction, val_fraction;
    double test_fraction; /* where the source gives no test; what all leave over is not used */
    /* Use fewer, chosen by another keyed hash before the split: this fraction of the distinct
     * images of every class (at least one; 1: all), and at most so many (0: all). A class with
     * given parts is cut in each of them. */
    double fraction;
    int per_class;
    uint64_t seed;
};

typedef struct tdmi_split { /* start from a zeroed object */
    /* Item indices, ascending; test is the source's where it gives one. */
    int64_t *train, *val, *test;
    int64_t n_train, n_val, n_test;
    int64_t n_torn;   /* images whose content stands under more than one class */
    int64_t n_copies; /* images whose content stands in their class already */
    bool is_given;    /* the source gave the part of every image: the fractions decided nothing */
} tdmi_split;

/* Content hashes of an earlier split in ascending order; NULL with 0 when there is none. rest: what
 * its fractions left over, which stays unused. */
struct tdmi_split_stored {
    const uint64_t *train, *val, *test, *rest;
    int64_t n_train, n_val, n_test, n_rest;
};

/* Unreadable images are left out. TDM_E_USAGE: fractions that make no split. TDM_E_INPUT: a class
 * would have nothing to train on, or validation would be empty. */
tdm_status tdmi_split_make(const tdmi_source *source, const tdmi_contents *contents,
                           struct tdmi_split_options options, struct tdmi_split_stored stored,
                           tdmi_split *split, tdm_error *err) TDM_MUST_USE;
void tdmi_split_release(tdmi_split *split);
