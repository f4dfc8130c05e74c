/*
 * The fixed tree in which the sums of shards are added. The tree depends on the number of shards
 * alone: never on threads, ranks or arrival, so the same sums come out with the same bits wherever
 * the shards were computed.
 *
 *     shard   0   1   2   3   4           level 1:  0+1   2+3   4
 *              \ /     \ /    |           level 2:  (0+1)+(2+3)   4
 *               ╲       ╱     |           level 3:  ((0+1)+(2+3))+4
 *
 * A rank that owns a complete subtree can send its one sum; the owner adds on in the same tree.
 */
#ifndef TANDEM_DIST_TREE_H
#define TANDEM_DIST_TREE_H

#include <stdint.h>

/* Add arrays[1 … n_shards - 1] into arrays[0], values [first, first + n) of each. Changes the
 * arrays in between too. Ranges that do not overlap may be added by different threads. */
void tdmi_tree_sum(float *const *arrays, int n_shards, int64_t first, int64_t n);
/* The same for sums in double: rows of n values, one a shard, into the first. */
void tdmi_tree_sum_rows(double *rows, int n_shards, int64_t n);

#endif
