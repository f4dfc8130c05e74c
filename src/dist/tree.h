/*
 * The fixed tree in which the sums of groups are added. The tree depends on the number of groups
 * alone: never on threads, ranks or arrival, so the same sums come out with the same bits wherever
 * the groups were computed.
 *
 *     group   0   1   2   3   4           level 1:  0+1   2+3   4
 *              \ /     \ /    |           level 2:  (0+1)+(2+3)   4
 *               ╲       ╱     |           level 3:  ((0+1)+(2+3))+4
 *
 * A rank computes neighbouring groups, which form a few complete subtrees. It adds each of these by
 * itself, and only the sums of subtrees are sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The sum of groups [first, where the next part begins): a subtree. */
struct tdmi_tree_part {
    int first;
    float *values;
};

/* Parts by number; below 0: sums that are not kept. */
struct tdmi_tree_addition {
    int to, left, right;
};

/* Do the groups [first, end) of n_groups form a subtree? */
bool tdmi_tree_is_subtree(int first, int end, int n_groups);

/* The fewest subtrees that make up the groups [first, end): writes the first group of each, and
 * returns their number, at most TDMI_TREE_ROOTS. */
enum { TDMI_TREE_ROOTS = 62 };
int tdmi_tree_roots(int first, int end, int n_groups, int roots[TDMI_TREE_ROOTS]);

/* List the additions, in order, after which the first part of every such subtree holds its sum; the
 * last part ends before `end`. Return their number: n_parts - 1 where all parts are one subtree. */
int tdmi_tree_plan(const struct tdmi_tree_part *parts, int n_parts, int end, int n_groups,
                   struct tdmi_tree_addition *additions);
/* Values [first, first + n) of each. Only the first parts of subtrees change. Ranges that do not
 * overlap may be added by different threads. */
void tdmi_tree_sum(const struct tdmi_tree_part *parts, const struct tdmi_tree_addition *additions,
                   int n_additions, int64_t first, int64_t n);

/* Add the whole tree at once, for rows of n doubles, one row a group, into the first row. */
void tdmi_tree_sum_rows(double *rows, int n_groups, int64_t n);
