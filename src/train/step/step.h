/*
 * One training step over a batch: groups × segments.
 *
 * The batch is cut by position into groups. Each group runs whole, forward and backward, on one
 * thread or a team; its sums go to an array of its own (sums.h). The arrays are added in the fixed
 * tree, so results depend on the batch and the group size, but not on the number of threads.
 *
 * Groups that fill all threads run first, complete, then those that teams compute (division.h); the
 * last wave runs segment by segment, because a range of gradients is final only when every group
 * has passed it:
 *
 *     threads 2, groups 5, segments s0 s1
 *       [0 fwd bwd][2 fwd bwd]            [3 fwd s0 | s1]
 *       [1 fwd bwd]                       [4 fwd s0 | s1]
 *                                                 ^    ^ tree sum of range 0, of range 1
 *
 * Small networks have one segment, and no last wave.
 *
 * On a device with memory of its own one executor runs the groups one after another, the last one
 * segment by segment, and sums are added there in the same tree; the caller downloads them. Best is
 * one group a batch. There a step can be queued as a whole (queued.c), unless it has other ranks.
 *
 * run(first, last) executes a range of segments. With several ranks the gradients of a segment are
 * on their way to the others while the next segment is computed, and all have arrived when the last
 * one has run.
 */
#pragma once

#include "base/team.h"
#include "base/thread.h"
#include "dist/comm.h"
#include "train/step/feed.h"
#include "train/step/mixer.h"

typedef struct tdmi_step tdmi_step;

struct tdmi_step_options {
    int max_batch;     /* images that are computed here */
    int whole_batch;   /* images of all ranks; 0: the same */
    tdmi_comm *comm;   /* the ranks that compute the rest, lent; NULL: none */
    tdmi_peers *peers; /* with comm, on a device: sends to theirs, lent; NULL: through the host */
    bool rounds;       /* send gradients to other ranks as bf16; between peers, add in any order */
    bool can_mix;      /* reserve memory for mixing images */
    /* Batch norms take their statistics over the whole batch, not over each group. Then all groups
     * go from one batch norm to the next together, and each keeps its activations. */
    bool shares_statistics;
    const float *class_weights; /* one a class, lent for the step's life; NULL: all 1 */
    /* Factor of the gradients, on the device, lent likewise; NULL: 1. */
    const struct tdmi_loss_scale *loss_scale;
    tdmi_lane *const *lanes; /* of the pool's threads, lent; NULL: not traced. On the host */
};

/* Bytes that a step reserves with a number of threads. */
struct tdmi_step_needs {
    /* Outputs of layers, of all groups that are computed at once; packed weights. */
    int64_t activations;
    int64_t gradients; /* pages that are written to */
};
struct tdmi_step_needs tdmi_step_needs(const tdmi_plan *plan,
                                       const struct tdmi_step_options *options, int n_threads);

/* TDM_E_ABSENT: a step of this backend shares no statistics over a batch (whole_batch). */
tdm_status tdmi_step_check_sharing(const struct tdmi_backend *backend, tdm_error *err) TDM_MUST_USE;
/* plan is for training; its max_images is the group size. All memory is reserved here. The first
 * step packs the weights of frozen nodes, which must not change after it. */
tdm_status tdmi_step_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                          const struct tdmi_step_options *options, tdmi_step **step,
                          tdm_error *err) TDM_MUST_USE;
void tdmi_step_close(tdmi_step *step);

/* The table of feature rows that batches name by number, lent; before the first such batch. */
void tdmi_step_keep(tdmi_step *step, const tdmi_feature_table *kept);

/* Starts to upload the first group of the next batch while the step before computes. The images are
 * lent until tdmi_step_await_prefetch returns. Does nothing where memory is the host's. */
tdm_status tdmi_step_prefetch(tdmi_step *step, const struct tdmi_batch *batch,
                              tdm_error *err) TDM_MUST_USE;
/* While a step is queued: requests the next batch from the feed and prefetches it. If that batch
 * fails, tdmi_feed_next returns the error. */
tdm_status tdmi_step_look_ahead(tdmi_step *step, tdmi_feed *feed, tdm_error *err) TDM_MUST_USE;
/* Waits until no more lent images are being copied. */
tdm_status tdmi_step_await_prefetch(tdmi_step *step, tdm_error *err) TDM_MUST_USE;

/* Start a step over a batch (lent until the last segment has run); samples with label -1 are left
 * out. mixing NULL: seed 0, epoch 0, and nothing is mixed. */
void tdmi_step_begin(tdmi_step *step, struct tdmi_values values, const struct tdmi_batch *batch,
                     const struct tdmi_mixing *mixing);
/* Runs segments first to last; all n_segments of the plan must run, in order. */
tdm_status tdmi_step_run(tdmi_step *step, int first, int last, tdm_error *err) TDM_MUST_USE;
/* Steps that begin from now on record the CPU time of regions in log (base/team.h). Batches must be
 * computed by one thread or one team at a time. NULL: stop. */
void tdmi_step_measure(tdmi_step *step, struct tdmi_team_log *log);
/* Number of images of the batch that are not left out. */
int tdmi_step_images(const tdmi_step *step);

/* Work that follows a step on its stream: the update. */
struct tdmi_step_next {
    void (*queue)(void *self, const float *sums);
    void *self;
    int64_t key; /* not 0; equal keys queue the same */
};

/* On a device with memory of its own: queues all segments and the work that follows (NULL: none),
 * recorded and replayed (queued.c). Waits for every group but the last. When it
 * returns, only prefetched images are still lent. */
tdm_status tdmi_step_queue(tdmi_step *step, const struct tdmi_step_next *next,
                           tdm_error *err) TDM_MUST_USE;
/* Downloads the tail and waits for the step. */
tdm_status tdmi_step_finish(tdmi_step *step, float tail[TDMI_TAIL_VALUES],
                            tdm_error *err) TDM_MUST_USE;
/* Both. */
tdm_status tdmi_step_run_queued(tdmi_step *step, const struct tdmi_step_next *next,
                                float tail[TDMI_TAIL_VALUES], tdm_error *err) TDM_MUST_USE;
/* The stream that such a step is queued on. */
tdmi_stream *tdmi_step_stream(const tdmi_step *step);
/* Number of replays so far: one for each step that is a single group. */
int64_t tdmi_step_replays(const tdmi_step *step);
/* Device memory that recordings took (recorder.h). */
int64_t tdmi_step_recorded_bytes(const tdmi_step *step);
/* The summed values, over all ranks: final in a segment's range once it has run, with several ranks
 * once all have. */
float *tdmi_step_sums(tdmi_step *step);
