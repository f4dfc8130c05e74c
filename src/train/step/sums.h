/*
 * The arrays that shards write their sums to: gradients, statistics and the tail, one array a shard
 * that runs. Sums are added in the fixed tree (dist/tree.h), so a shard that has ended waits for
 * its neighbour in the tree and for no other; what is complete is added as soon as an array is
 * wanted and none is free, and all of them but one can be used again:
 *
 *     threads 2, shards 8, arrays A B C D E F
 *
 *     A0 B1 C2 D3 E4 F5     the first six; 0 to 4 have ended, and one is wanted for 6
 *     A03          E4 F5    0 to 3 are a subtree: B, C and D are free
 *     A03          E4 F5 D6 C7
 *
 * While shards run the tree needs an array a level besides those that are written to. So there are
 * as many as threads and levels, and half as many again as threads, for shards that end out of
 * order: with fewer, threads begin to wait for the slowest. Where a batch has no more shards than
 * that, or all of its arrays are small, nothing is added before the end.
 *
 * On a device one queue runs shards one after another, and adds as soon as two of the tree's
 * neighbours have ended. What waits then is a stack of subtrees, at most one a level, and the next
 * shard's array is the one above them: so many as bits are set in its number. There are few arrays,
 * and few that a shard is ever told to write to, which keeps recordings few (train/step/queued.h):
 *
 *     shard       0    1    2    3    4    5    6
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
    int max_shards;
    int n_threads;      /* that run shards */
    bool runs_together; /* all shards of a batch are written to until its end */
    /* On a device whose memory is not the host's: one queue, the stream, runs shards and adds sums.
     * Otherwise threads do, in ordinary memory. */
    bool is_queued;
    tdmi_stream *stream;
};

/* How many arrays there are for that. */
int tdmi_sums_arrays(const struct tdmi_sums_options *options);

tdm_status tdmi_sums_open(const struct tdmi_backend *backend, tdmi_device *device,
                          const struct tdmi_sums_options *options, tdmi_sums **sums,
                          tdm_error *err) TDM_MUST_USE;
void tdmi_sums_close(tdmi_sums *sums);

/* A batch of so many shards; those of the last one are forgotten. */
void tdmi_sums_begin(tdmi_sums *sums, int n_shards);
/* The shard to run next, which has an array now: each once, whatever the caller's index, of which
 * there is one a shard. Any thread; may add up shards that have been given, or wait until some are.
 */
int tdmi_sums_take(tdmi_sums *sums, int index);
/* Of a shard that was taken and not given; and of shard 0, always the same. */
float *tdmi_sums_of(const tdmi_sums *sums, int shard);
/* Its sums are complete, or will be where they are queued. Any thread. */
void tdmi_sums_give(tdmi_sums *sums, int shard);

/* All shards have been taken: what is left to add is settled. */
void tdmi_sums_settle(tdmi_sums *sums);
/* Add it, values [first, first + n), into the array of shard 0. Those that were not given must be
 * complete in that range. Threads may add ranges that do not overlap. */
void tdmi_sums_add(const tdmi_sums *sums, int64_t first, int64_t n);
