/*
 * The op cases: one table, run on every backend against the reference, against central differences,
 * and twice for equal bits.
 */
#ifndef TANDEM_TRAIN_SELFTEST_CASES_H
#define TANDEM_TRAIN_SELFTEST_CASES_H

#include "backend/backend.h"

struct tdmi_case {
    const char *name; /* "conv 3×3, stride 2, odd picture" */
    enum tdmi_op_kind kind;
    struct tdmi_op_attrs attrs;
    struct tdmi_shape in;
    int n;          /* images in the call */
    int max_images; /* the plan's: more than n where a ragged shard is meant */
};

/* NULL past the end. */
const struct tdmi_case *tdmi_case_at(int index);

#endif
