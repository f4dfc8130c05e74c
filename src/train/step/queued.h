/*
 * A step queued on a device whose memory is not the host's: shards one after another on one stream,
 * each brought in its turn, sums added there, what other ranks have added to them, and the update.
 * Parts of it are recorded and replayed (recorder.h):
 *
 *     several shards   [shard 0]  [shard 1] +  [shard 2]  [shard 3 ─ sums ─ update]
 *     one              [forward ─ s0 ─ s1 ─ s2 ─ update]
 *     one, and a collective
 *                      [forward ─ s0 ─┬─ s1 ─┬─ s2 ─┬─ finish ─ update]
 *                                     c0     c1     c2
 *
 * Of one process there is no collective: a step is one recording then, which costs one launch, and
 * segments leave no mark in it.
 */
#pragma once

#include "graph/packed.h"
#include "train/step/recorder.h"
#include "train/step/sums.h"

/* The slot between segments: reduces the sums of all ranks. Called for each segment in its order,
 * also by a rank whose batch has no images. */
struct tdmi_collective {
    void *self;
    /* Both calls only queue work on the device, on other streams too (event_record, event_wait),
     * and the same for the same values: they are recorded with the step, and not called where it is
     * replayed. values[0, n), of the device, are this rank's as soon as the stream has come so far;
     * nothing that is queued after this touches them, until finish. May return before it is done.
     */
    tdm_status (*begin)(void *self, tdmi_stream *stream, float *values, int64_t n, tdm_error *err);
    /* What is queued on the stream after this finds the sums of all ranks in all that was begun. */
    tdm_status (*finish)(void *self, tdmi_stream *stream, tdm_error *err);
};

/* What follows a step on its stream. */
struct tdmi_step_next {
    void (*queue)(void *self, const float *sums);
    void *self;
    int64_t key; /* not 0; two of one key queue the same */
};

/* All of it lent for the call. */
struct tdmi_queued {
    const tdmi_plan *plan;
    tdmi_executor *lane;
    tdmi_packed *packed;
    int packed_from; /* weights of nodes before it are packed */
    tdmi_sums *sums; /* is_queued, on the lane's stream */
    tdmi_recorder *recorder;
    struct tdmi_values values;
    int n_shards; /* 1 or more */
    bool is_mixed, is_changed;
    bool is_kept;                             /* shards name rows by number */
    const struct tdmi_collective *collective; /* NULL: one process */
    const struct tdmi_step_next *next;        /* NULL: nothing */
    /* Bring the pictures of shard s to the lane, whose stream has been waited for: how many they
     * are. Of none, its sums are cleared. */
    int (*bring)(void *self, int s);
    void *self;
};

/* Ends without a wait for the last shard. */
tdm_status tdmi_queued_run(const struct tdmi_queued *queued, tdm_error *err) TDM_MUST_USE;
