/* Two lists of outcomes on the same images, image by image: what a paired test counts. */
#pragma once

#include "train/evaluate/outcomes.h"

/* Distinct images, as in tandem/metrics.h; their sum is the number of these. */
struct tdmi_pairs {
    int64_t both, only_a, only_b, neither;
};

/* Images are the same when content and class name are. are_same: the lists have the same images, to
 * the last copy; else nothing is counted. */
tdm_status tdmi_outcomes_pair(const tdmi_outcomes *a, const tdmi_outcomes *b,
                              struct tdmi_pairs *pairs, bool *are_same,
                              tdm_error *err) TDM_MUST_USE;
