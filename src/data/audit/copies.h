/*
 * Copies among pictures: equal bytes, found by their hash, and pictures that show the same, found
 * by their fingerprints. Both are remarks on the pictures and pairs for the report.
 */
#ifndef TANDEM_DATA_AUDIT_COPIES_H
#define TANDEM_DATA_AUDIT_COPIES_H

#include "data/audit/finding.h"

struct tdmi_copies {              /* start from a zeroed object */
    struct tdm_audit_pair *pairs; /* of tdmi_alloc, by first and second */
    int64_t n_pairs, capacity;
    bool is_near_cut; /* the search for near copies was given up */
};

/* Adds remarks to files. fingerprints (n of them; 0: none) or NULL: only equal bytes. */
tdm_status tdmi_copies_find(struct tdm_audit_file *files, const uint64_t *fingerprints, int64_t n,
                            struct tdmi_copies *copies, tdm_error *err) TDM_MUST_USE;
void tdmi_copies_release(struct tdmi_copies *copies);

#endif
