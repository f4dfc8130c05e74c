/*
 * The arrays that groups write their sums to: gradients, statistics and the tail, one array for
 * each running group. Sums are added in the fixed tree (dist/tree.h), so a group that has ended
 * waits only for its neighbour in the tree. When a group finds no free array, complete subtrees are
 * added up, which frees all of their arrays but one:
 *
 *     threads 2, groups 8, arrays A B C D E F
 *
 *     A0 B1 C2 D3 E4 F5     the first six; 0 to 4 have ended, and 6 needs an array
 *     A03          E4 F5    0 to 3 are a subtree: B, C and D are free
 *     A03          E4 F5 D6 C7
 *
 * While groups run the tree needs an array for each level besides those of running groups. So there
 * are as many as threads and levels (twice the levels where the groups are a part of a batch, which
 * may begin inside a subtree), and half as many again as threads, for groups that end out of
 * order: with fewer, threads wait for the slowest. Where a batch has no more groups than that, or
 * all of its arrays are small, nothing is added before the end.
 *
 * On a device one queue runs groups one after another, and adds two neighbours of the tree as soon
 * as both have ended. The subtrees that wait form a stack, at most one for each level, and the next
 * group writes to the array above them: its index is the number of bits set in the group's number.
 * So groups write to few different arrays, which keeps recordings few (train/step/queued.c):
 *
 *     group       0    1    2    3    4    5    6
 *     writes to   A    B    B    C    B    C    C
 *     then        A0   A01  A01  A03  A03  A03  A03
 *                           B2        B4   B45  B45
 *                                               C6
 */
#pragma once

#include "backend/backend.h"

typedef struct tdmi_sums tdmi_sums;

struct tdmi_sums_options {
    int64_t n_values; /* of an array */
    int max_groups;
    bool is_part;       /* they may be some of a larger batch */
    int n_threads;      /* that run groups */
    bool runs_together; /* all groups of a batch run until its end */
    /* On a device with memory of its own: one stream runs groups and adds sums. Otherwise threads
     * do, in the host's memory. */
    bool is_queued;
    tdmi_stream *stream;
};

/* The number of arrays. */
int tdmi_sums_arrays(const struct tdmi_sums_options *options);

tdm_status tdmi_sums_open(const struct tdmi_backend *backend, tdmi_device *device,
                          const struct tdmi_sums_options *options, tdmi_sums **sums,
                          tdm_error *err) TDM_MUST_USE;
void tdmi_sums_close(tdmi_sums *sums);

/* Groups of a batch that are computed here, one after another in the whole batch. They are numbered
 * from 0 here, and by `first` in the tree. */
struct tdmi_sums_groups {
    int n;
    int first, n_all; /* number of the first in the batch; groups of the batch */
};

/* Starts a batch. */
void tdmi_sums_begin(tdmi_sums *sums, struct tdmi_sums_groups groups);
/* Assigns an array to the next group and returns the group. Called once for each group by any
 * thread, index counting the calls; may add up finished groups, or wait until some finish. */
int tdmi_sums_take(tdmi_sums *sums, int index);
/* The array of a group that was taken and not given back. Group 0's never changes. */
float *tdmi_sums_of(const tdmi_sums *sums, int group);
/* The group's sums are complete, or queued. Any thread. */
void tdmi_sums_give(tdmi_sums *sums, int group);

/* All groups have been taken: plans the additions that are left. */
void tdmi_sums_settle(tdmi_sums *sums);
/* Adds the values [first, first + n) of all arrays into those of the first groups of subtrees:
 * where the whole batch is computed here, into that of group 0. Groups that were not given back
 * must be complete in that range. Threads may add ranges that do not overlap. */
void tdmi_sums_add(const tdmi_sums *sums, int64_t first, int64_t n);
