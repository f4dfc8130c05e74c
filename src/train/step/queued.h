/*
 * A step queued on a device with memory of its own: shards one after another on one stream, each
 * uploaded before it runs, their sums added there, reduced over the ranks, and the update.
 * Parts of it are recorded and replayed (recorder.h):
 *
 *     several shards   [shard 0]  [shard 1] +  [shard 2]  [shard 3 ─ sums ─ update]
 *     one              [forward ─ s0 ─ s1 ─ s2 ─ update]
 *     one, and a collective
 *                      [forward ─ s0 ─┬─ s1 ─┬─ s2 ─┬─ finish ─ update]
 *                                     c0     c1     c2
 *
 * One process has no collective: a step is then one recording, which costs one launch.
 */
#pragma once

#include "graph/packed.h"
#include "train/step/recorder.h"
#include "train/step/sums.h"

/* The slot between segments: reduces the sums of all ranks. Called for each segment in its order,
 * also by a rank whose batch has no images. */
struct tdmi_collective {
    void *self;
    /* Both calls only queue work on the device, also on other streams (event_record, event_wait),
     * always the same for equal values: they are recorded with the step and not called in a replay.
     * values[0, n) on the device are complete for this rank when the stream gets there, and are not
     * touched again until finish. */
    tdm_status (*begin)(void *self, tdmi_stream *stream, float *values, int64_t n, tdm_error *err);
    /* Work that is queued on the stream after this finds the sums of all ranks. */
    tdm_status (*finish)(void *self, tdmi_stream *stream, tdm_error *err);
};

/* Work that follows a step on its stream: the update. */
struct tdmi_step_next {
    void (*queue)(void *self, const float *sums);
    void *self;
    int64_t key; /* not 0; two of one key queue the same */
};

/* All pointers are lent for the call. */
struct tdmi_queued {
    const tdmi_plan *plan;
    tdmi_executor *lane;
    tdmi_packed *packed;
    int packed_from; /* weights of nodes before it are packed already */
    tdmi_sums *sums; /* is_queued, on the lane's stream */
    tdmi_recorder *recorder;
    struct tdmi_values values;
    int n_shards; /* 1 or more */
    bool is_mixed, is_changed;
    bool is_kept;                             /* shards name feature rows by number */
    const struct tdmi_collective *collective; /* NULL: one process */
    const struct tdmi_step_next *next;        /* NULL: nothing */
    /* Upload the images of shard s to the lane, whose stream has been waited for, and return their
     * number. Without images the shard's sums are cleared. */
    int (*upload)(void *self, int s);
    void *self;
};

/* Returns without waiting for the last shard. */
tdm_status tdmi_queued_run(const struct tdmi_queued *queued, tdm_error *err) TDM_MUST_USE;
