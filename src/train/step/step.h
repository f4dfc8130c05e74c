/*
 * One training step over a global batch: shards × segments.
 *
 * The batch is cut by position into shards. Each shard runs whole, forward and backward, on one
 * thread; its sums go to an array of its own (sums.h). The arrays are added in the fixed tree. So
 * the bits depend on the batch and the shard size, and on nothing else.
 *
 * Shards beyond the number of threads run first, complete; the last wave runs segment by segment,
 * because a range of gradients is final only when every shard has passed it:
 *
 *     threads 2, shards 5, segments s0 s1
 *       [0 fwd bwd][2 fwd bwd]            [3 fwd s0 | s1]
 *       [1 fwd bwd]                       [4 fwd s0 | s1]
 *                                                 ^    ^ tree sum of range 0, of range 1
 *
 * Small networks have one segment, and no wave is the last.
 *
 * On a device whose memory is not the host's one lane runs the shards one after another, and sums
 * are added there in the same tree; whoever wants them on the host copies them. Best is one shard a
 * batch. There a step can be queued as a whole (queued.h).
 *
 * run(first, last) executes a range of segments and returns; what is then final may travel
 * while the next range is computed. Nothing here calls upward.
 */
#pragma once

#include "base/thread.h"
#include "train/step/feed.h"
#include "train/step/mixer.h"
#include "train/step/queued.h"

typedef struct tdmi_step tdmi_step;

struct tdmi_step_options {
    int max_batch;
    bool can_mix; /* reserve what mixing needs */
    /* Batch norms take their statistics over the whole batch, not over each shard. Then all shards
     * go from one batch norm to the next together, and each keeps its activations. */
    bool shares_statistics;
    const float *class_weights; /* one a class, lent for the step's life; NULL: all 1 */
    /* Of the device, lent likewise: what gradients are multiplied by; NULL: as they are. */
    const struct tdmi_loss_scale *loss_scale;
    /* Of steps that are queued, lent likewise; NULL: one process. */
    const struct tdmi_collective *collective;
};

/* What a step on so many threads reserves, in bytes. */
struct tdmi_step_needs {
    int64_t activations; /* of the shards that run at once; and packed weights */
    int64_t gradients;   /* as far as they are written to */
};
struct tdmi_step_needs tdmi_step_needs(const tdmi_plan *plan,
                                       const struct tdmi_step_options *options, int n_threads);

/* plan is for training, its max_images the shard size. Everything is reserved here. Values of nodes
 * that it has frozen are taken over by the first step, and must not change after it. */
tdm_status tdmi_step_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                          const struct tdmi_step_options *options, tdmi_step **step,
                          tdm_error *err) TDM_MUST_USE;
void tdmi_step_close(tdmi_step *step);

/* Lent, from now on and before the first batch that names rows by number: where those are. */
void tdmi_step_keep(tdmi_step *step, const tdmi_feature_table *kept);

/* On a device whose memory is not the host's: the pictures of the first shard of the batch that is
 * begun next begin to be copied there, while the step before computes; what that step copied has
 * been waited for. They are lent until the next call of tdmi_step_await_prefetch has returned; what
 * is not begun by then is forgotten. Elsewhere nothing happens. */
tdm_status tdmi_step_prefetch(tdmi_step *step, const struct tdmi_batch *batch,
                              tdm_error *err) TDM_MUST_USE;
/* While a step is queued: asks the feed for the batch behind the one at hand, and brings it. What
 * is wrong with that one is told in its turn. */
tdm_status tdmi_step_look_ahead(tdmi_step *step, tdmi_feed *feed, tdm_error *err) TDM_MUST_USE;
/* Waits until nothing is copied any more from pictures that are lent. */
tdm_status tdmi_step_await_prefetch(tdmi_step *step, tdm_error *err) TDM_MUST_USE;

/* Take a batch (lent until the last segment has run); samples with label -1 are left out. mixing
 * NULL: draws of seed 0 and epoch 0. Without an augment that mixes, pictures stay as they are. */
void tdmi_step_begin(tdmi_step *step, struct tdmi_values values, const struct tdmi_batch *batch,
                     const struct tdmi_mixing *mixing);
/* Segments first … last; the plan's n_segments in all, in order. */
tdm_status tdmi_step_run(tdmi_step *step, int first, int last, tdm_error *err) TDM_MUST_USE;
/* Images of the batch that are not left out. */
int tdmi_step_images(const tdmi_step *step);

/* On a device whose memory is not the host's, all segments, the collective between them and what
 * follows (NULL: nothing), recorded and replayed (queued.h). Waits when a shard's pictures give way
 * to the next one's, and not for the last shard. What is lent is not any more, but for pictures
 * that were brought ahead. */
tdm_status tdmi_step_queue(tdmi_step *step, const struct tdmi_step_next *next,
                           tdm_error *err) TDM_MUST_USE;
/* Fetches the tail, which is that of all ranks, and waits until all of it has run. */
tdm_status tdmi_step_finish(tdmi_step *step, float tail[TDMI_TAIL_VALUES],
                            tdm_error *err) TDM_MUST_USE;
/* Both. */
tdm_status tdmi_step_run_queued(tdmi_step *step, const struct tdmi_step_next *next,
                                float tail[TDMI_TAIL_VALUES], tdm_error *err) TDM_MUST_USE;
/* On such a device, the stream that all of it is queued on. */
tdmi_stream *tdmi_step_stream(const tdmi_step *step);
/* How often a recording was replayed: once a step that is one shard of one process. */
int64_t tdmi_step_replays(const tdmi_step *step);
/* What recordings were seen to take of the device's memory (recorder.h). */
int64_t tdmi_step_recorded_bytes(const tdmi_step *step);
/* The summed values: final in a segment's range once it has run. */
float *tdmi_step_sums(tdmi_step *step);
