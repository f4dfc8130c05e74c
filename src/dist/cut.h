/*
 * Which groups of a batch each rank computes: neighbouring ones, so that a rank sends few sums of
 * subtrees (dist/tree.h). The largest number of groups of a rank is as small as can be; among such
 * cuts the number of subtrees is smallest; among these, earlier ranks have more groups. A pure
 * function: every rank finds the same cut.
 *
 *     groups 5, ranks 2        0 1 | 2 3 4       subtrees {0 1} {2 3} {4}
 *                          not 0 1 2 | 3 4       subtrees {0 1} {2} {3} {4}
 *
 * A rank without a group has no part in the sum, not even zeros: 0 + (-0) is not -0.
 */
#pragma once

#include "dist/tree.h"
#include "tandem/error.h"

/* firsts[0] to firsts[world]: rank r computes the groups [firsts[r], firsts[r + 1]). */
tdm_status tdmi_cut_make(int n_groups, int world, int *firsts, tdm_error *err) TDM_MUST_USE;
