/* Runs the shards of a batch on threads, and adds their sums in the tree. */
#include "train/step/step.h"
#include "base/memory.h"
#include "dist/tree.h"
#include "train/step/gathered.h"

#include <assert.h>
#include <string.h>

struct tdmi_step {
    const tdmi_plan *plan;
    tdmi_pool *pool;
    int max_shards, n_lanes;
    tdmi_executor **lanes;
    tdmi_sums *sums;
    int *wave;                          /* shards of the last wave, by executor */
    struct tdmi_gathered *shards, room; /* shards point into room */
    tdmi_device *device;
    tdmi_packed *packed;
    bool has_packed;         /* weights of frozen nodes, which stay */
    tdmi_recorder *recorder; /* NULL where memory is the host's */
    const struct tdmi_collective *collective;
    const float *class_weights;
    const struct tdmi_loss_scale *loss_scale;
    double *exchange;    /* one row of a batch norm's sums a shard; NULL: shards keep their own */
    tdmi_mixer **mixers; /* one for each executor; NULL: no augmentation here */
    const uint8_t *prefetched; /* first image of the prefetched shard; NULL: none */

    /* of the current batch */
    struct tdmi_values values;
    struct tdmi_mixing mixing; /* augment NULL: none */
    bool has_rest;             /* some changes are left to the device */
    struct tdmi_augment rest;
    bool is_kept;         /* the batch names feature rows by number */
    const uint8_t *batch; /* its images, side by side */
    int n;
    struct tdmi_draw_key draws;
    int n_shards, n_early;     /* shards that run before the last wave */
    int segment;               /* that tasks run now */
    int first_node, last_node; /* … and the part of it, where statistics are shared */
    int n_images;              /* that are not left out */
};

/* ---- reserving ----------------------------------------------------------------------------- */

static int shards_of(const tdmi_plan *plan, const struct tdmi_step_options *options)
{
    return (options->max_batch + plan->max_images - 1) / plan->max_images;
}

/* Shards that share statistics need an executor each: they keep their activations. */
static int lanes_of(const tdmi_plan *plan, const struct tdmi_step_options *options, int n_threads)
{
    const int shards = shards_of(plan, options);
    if (!plan->backend->device.is_host)
        return 1; /* one thread queues */
    return options->shares_statistics || n_threads > shards ? shards : n_threads;
}

static struct tdmi_sums_options sums_of(const tdmi_plan *plan,
                                        const struct tdmi_step_options *options, int n_lanes)
{
    return (struct tdmi_sums_options){.n_values = tdmi_graph_sums_values(plan->graph),
                                      .max_shards = shards_of(plan, options),
                                      .n_threads = n_lanes,
                                      .runs_together = options->shares_statistics,
                                      .is_queued = !plan->backend->device.is_host};
}

struct tdmi_step_needs tdmi_step_needs(const tdmi_plan *plan,
                                       const struct tdmi_step_options *options, int n_threads)
{
    const int lanes = lanes_of(plan, options, n_threads);
    const struct tdmi_sums_options sums = sums_of(plan, options, lanes);
    const int64_t first = plan->segments[plan->n_segments - 1].first_value; /* that is not frozen */
    const int64_t mixer = options->can_mix ? tdmi_mixer_bytes(plan) : 0;
    return (struct tdmi_step_needs){
        .activations = lanes * ((int64_t)plan->arena_bytes + mixer) + (int64_t)plan->packed_bytes,
        .gradients = tdmi_sums_arrays(&sums) * (sums.n_values - first) * (int64_t)sizeof(float),
    };
}

static tdm_status reserve_mixers(tdmi_step *step, tdm_error *err)
{
    step->mixers = tdmi_alloc((size_t)step->n_lanes, sizeof *step->mixers);
    if (!step->mixers)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to mix images: out of memory");
    for (int i = 0; i < step->n_lanes; i++)
        TDM_TRY(tdmi_mixer_open(step->plan, &step->mixers[i], err), err,
                "preparing thread %d of %d for training", i + 1, step->n_lanes);
    return TDM_OK;
}

/* Rows for the widest batch norm. */
static tdm_status reserve_exchange(tdmi_step *step, tdm_error *err)
{
    const tdmi_graph *graph = step->plan->graph;
    int widest = 1;
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].kind == TDMI_OP_BATCH_NORM && graph->nodes[i].out.c > widest)
            widest = graph->nodes[i].out.c;
    if (!step->plan->backend->device.is_host)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "sharing batch norm statistics over a batch (--bn batch) is not available "
                        "on the backend %s; --bn shard is accepted",
                        step->plan->backend->name);
    step->exchange =
        tdmi_alloc((size_t)step->max_shards, 2 * (size_t)widest * sizeof *step->exchange);
    if (!step->exchange)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to share statistics: out of memory");
    return TDM_OK;
}

/* Whole and ragged shards, for each array of sums, and some with images left out. */
enum { most_recordings = 32 };

static tdm_status reserve(tdmi_step *step, const struct tdmi_step_options *options, tdm_error *err)
{
    const int max_batch = options->max_batch;
    const size_t shards = (size_t)step->max_shards;
    step->lanes = tdmi_alloc((size_t)step->n_lanes, sizeof *step->lanes);
    step->wave = tdmi_alloc((size_t)step->n_lanes, sizeof *step->wave);
    step->shards = tdmi_alloc(shards, sizeof *step->shards);
    if (!step->lanes || !step->wave || !step->shards)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing steps of %d images: out of memory",
                        max_batch);
    TDM_TRY(tdmi_gathered_open(&step->room, max_batch, err), err, "preparing steps of %d images",
            max_batch);
    TDM_TRY(tdmi_packed_open(step->plan, step->device, &step->packed, err), err,
            "preparing steps of %d images", max_batch);
    for (int i = 0; i < step->n_lanes; i++) {
        TDM_TRY(tdmi_executor_open(step->plan, step->device, &step->lanes[i], err), err,
                "preparing thread %d of %d for training", i + 1, step->n_lanes);
        tdmi_executor_use(step->lanes[i], tdmi_packed_memory(step->packed));
    }
    struct tdmi_sums_options sums = sums_of(step->plan, options, step->n_lanes);
    if (!step->plan->backend->device.is_host) {
        sums.stream = tdmi_executor_stream(step->lanes[0]);
        TDM_TRY(tdmi_recorder_open(step->plan->backend, step->device, sums.stream, most_recordings,
                                   &step->recorder, err),
                err, "preparing steps of %d images", max_batch);
    }
    TDM_TRY(tdmi_sums_open(step->plan->backend, step->device, &sums, &step->sums, err), err,
            "preparing steps of %d images", max_batch);
    return TDM_OK;
}

tdm_status tdmi_step_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                          const struct tdmi_step_options *options, tdmi_step **step, tdm_error *err)
{
    const int max_batch = options->max_batch;
    tdmi_step *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing steps of %d images: out of memory",
                        max_batch);
    made->plan = plan;
    made->device = device;
    made->pool = pool;
    made->class_weights = options->class_weights;
    made->loss_scale = options->loss_scale;
    made->collective = options->collective;
    made->max_shards = shards_of(plan, options);
    made->n_lanes = lanes_of(plan, options, tdmi_pool_threads(pool));
    tdm_status status = reserve(made, options, err);
    if (status == TDM_OK && (options->can_mix || plan->backend->changes))
        status = reserve_mixers(made, err);
    if (status == TDM_OK && options->shares_statistics)
        status = reserve_exchange(made, err);
    if (status != TDM_OK) {
        tdmi_step_close(made);
        return status;
    }
    *step = made;
    return TDM_OK;
}

void tdmi_step_close(tdmi_step *step)
{
    if (!step)
        return;
    tdmi_recorder_close(step->recorder);
    for (int i = 0; step->lanes && i < step->n_lanes; i++)
        tdmi_executor_close(step->lanes[i]);
    tdmi_packed_close(step->packed);
    tdmi_sums_close(step->sums);
    for (int i = 0; step->mixers && i < step->n_lanes; i++)
        tdmi_mixer_close(step->mixers[i]);
    tdmi_free(step->mixers);
    tdmi_free(step->exchange);
    tdmi_gathered_release(&step->room);
    tdmi_free(step->lanes);
    tdmi_free(step->wave);
    tdmi_free(step->shards);
    tdmi_free(step);
}

void tdmi_step_keep(tdmi_step *step, const tdmi_feature_table *kept)
{
    for (int i = 0; i < step->n_lanes; i++)
        tdmi_executor_keep(step->lanes[i], kept);
}

/* First image of a shard. */
static const uint8_t *shard_at(const tdmi_step *step, const uint8_t *batch, int s)
{
    return batch + (size_t)(s * step->plan->max_images) * tdmi_plan_sample_bytes(step->plan);
}

/* Prefetches shard s of a batch of n images. */
static tdm_status prefetch_shard(tdmi_step *step, const uint8_t *batch, int n, int s,
                                 tdm_error *err)
{
    const int size = step->plan->max_images, left = n - s * size;
    if (!tdmi_executor_can_prefetch(step->lanes[0]))
        return TDM_OK;
    const uint8_t *from = shard_at(step, batch, s);
    step->prefetched = NULL;
    if (left <= 0)
        return TDM_OK;
    TDM_TRY(tdmi_executor_prefetch(step->lanes[0], from, left < size ? left : size, err), err,
            "prefetching images");
    step->prefetched = from;
    return TDM_OK;
}

tdm_status tdmi_step_prefetch(tdmi_step *step, const struct tdmi_batch *batch, tdm_error *err)
{
    return batch->rows ? TDM_OK : prefetch_shard(step, batch->pixels, batch->n, 0, err);
}

tdm_status tdmi_step_await_prefetch(tdmi_step *step, tdm_error *err)
{
    step->prefetched = NULL;
    return tdmi_executor_await_prefetch(step->lanes[0], err);
}

tdm_status tdmi_step_look_ahead(tdmi_step *step, tdmi_feed *feed, tdm_error *err)
{
    TDM_TRY(tdmi_step_await_prefetch(step, err), err, "uploading images"); /* of this batch */
    const struct tdmi_batch *next = tdmi_feed_look_ahead(feed);
    return next ? tdmi_step_prefetch(step, next, err) : TDM_OK;
}

void tdmi_step_begin(tdmi_step *step, struct tdmi_values values, const struct tdmi_batch *batch,
                     const struct tdmi_mixing *mixing)
{
    struct tdmi_augment first;
    int size = step->plan->max_images;
    const size_t image_bytes = tdmi_plan_sample_bytes(step->plan);
    const struct tdmi_mixing drawn = mixing ? *mixing : (struct tdmi_mixing){0};
    step->values = values;
    step->mixing = (struct tdmi_mixing){0};
    step->draws = (struct tdmi_draw_key){.seed = drawn.seed, .epoch = drawn.epoch};
    if (mixing && step->mixers && tdmi_augment_has_mix(mixing->augment))
        step->mixing = *mixing;
    assert(!batch->keys || step->plan->backend->changes);
    step->has_rest =
        batch->keys && mixing && tdmi_augment_divide(mixing->augment, &first, &step->rest);
    step->is_kept = batch->rows != NULL;
    step->batch = batch->pixels;
    step->n = batch->n;
    step->n_shards = (batch->n + size - 1) / size;
    step->n_early = step->n_shards > step->n_lanes ? step->n_shards - step->n_lanes : 0;
    /* With one segment no gradients are final early, so no wave needs to run by segments. */
    if (step->plan->n_segments == 1 && step->n_lanes == tdmi_pool_threads(step->pool) &&
        !step->exchange)
        step->n_early = step->n_shards;
    step->n_images = 0;
    tdmi_sums_begin(step->sums, step->n_shards);
    for (int s = 0; s < step->n_shards; s++) {
        step->shards[s] =
            tdmi_gathered_of(&step->room, batch, image_bytes, s * size, (s + 1) * size);
        step->n_images += step->shards[s].n;
    }
}

/* Gives the shard to an executor; false when it has no images. */
static bool begin(tdmi_step *step, int lane, int s)
{
    const struct tdmi_gathered *gathered = &step->shards[s];
    if (gathered->n == 0) { /* all its images were skipped */
        step->plan->backend->memory.clear(
            tdmi_executor_stream(step->lanes[lane]), tdmi_sums_of(step->sums, s),
            sizeof(float) * (size_t)tdmi_graph_sums_values(step->plan->graph));
        return false;
    }
    struct tdmi_shard shard = {.n = gathered->n,
                               .pixels = gathered->pixels,
                               .rows = step->is_kept ? gathered->rows : NULL,
                               .labels = gathered->labels,
                               .judgements = gathered->judgements,
                               .class_weights = step->class_weights,
                               .loss_scale = step->loss_scale};
    shard.draws = (struct tdmi_draws){&step->draws, gathered->items};
    if (!step->is_kept && step->prefetched && step->prefetched == shard_at(step, step->batch, s))
        shard.prefetched = step->prefetched;
    const struct tdmi_mixer_work work = {.mixing = step->mixing.augment ? &step->mixing : NULL,
                                         .items = gathered->items,
                                         .rest = step->has_rest ? &step->rest : NULL,
                                         .keys = gathered->keys};
    if (step->mixers)
        tdmi_mixer_run(step->mixers[lane], &work, &shard);
    tdmi_executor_begin(step->lanes[lane], &shard, step->exchange ? step->n_images : 0);
    /* Prefetch the next shard while this one is computed; a failure shows in the wait for it. */
    if (!step->is_kept)
        (void)prefetch_shard(step, step->batch, step->n, s + 1, NULL);
    return true;
}

static void forward(tdmi_step *step, int lane, int s)
{
    if (begin(step, lane, s))
        tdmi_executor_forward_part(step->lanes[lane], step->values, 0,
                                   step->plan->graph->n_nodes - 1, tdmi_sums_of(step->sums, s));
}

static void backward(tdmi_step *step, tdmi_executor *lane, int s, int segment)
{
    if (step->shards[s].n > 0)
        tdmi_executor_backward(lane, step->values, segment, tdmi_sums_of(step->sums, s));
}

static tdm_status wait_for(const tdmi_step *step, int lane, tdm_error *err)
{
    return step->plan->backend->stream.wait(tdmi_executor_stream(step->lanes[lane]), err);
}

static tdm_status run_whole(tdmi_step *step, int index, int lane, tdm_error *err)
{
    const int s = tdmi_sums_take(step->sums, index);
    forward(step, lane, s);
    for (int segment = 0; segment < step->plan->n_segments; segment++)
        backward(step, step->lanes[lane], s, segment);
    tdmi_sums_give(step->sums, s);
    return wait_for(step, lane, err);
}

static tdm_status early_task(void *self, int index, int worker, tdm_error *err)
{
    return run_whole(self, index, worker, err);
}

/* On a device: with the only executor. */
static tdm_status early_shards(tdmi_step *step, tdm_error *err)
{
    for (int i = 0; i < step->n_early; i++)
        TDM_TRY(run_whole(step, i, 0, err), err, "shard %d of %d", i + 1, step->n_shards);
    return TDM_OK;
}

/* In the last wave a shard keeps its executor from segment to segment, whichever thread runs it. */
static tdm_status last_wave_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_step *step = self;
    (void)worker;
    if (step->segment == 0) {
        step->wave[index] = tdmi_sums_take(step->sums, step->n_early + index);
        forward(step, index, step->wave[index]);
    }
    backward(step, step->lanes[index], step->wave[index], step->segment);
    return wait_for(step, index, err);
}

enum { slice_values = 16 * 1024 };

static tdm_status tree_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_step *step = self;
    (void)worker;
    (void)err;
    const struct tdmi_segment *range = &step->plan->segments[step->segment];
    int64_t begin = (int64_t)index * slice_values;
    int64_t n = range->n_values - begin;
    tdmi_sums_add(step->sums, range->first_value + begin, n < slice_values ? n : slice_values);
    return TDM_OK;
}

/* Makes the sums of the segment's range final. */
static tdm_status add_up(tdmi_step *step, tdm_error *err)
{
    const struct tdmi_segment *range = &step->plan->segments[step->segment];
    if (step->plan->backend->device.is_host)
        return tdmi_pool_run(step->pool, (int)((range->n_values + slice_values - 1) / slice_values),
                             tree_task, step, err);
    tdmi_sums_add(step->sums, range->first_value, range->n_values);
    return wait_for(step, 0, err);
}

/* ---- statistics shared over the batch: executor s runs shard s ----------------------------- */

static tdm_status forward_part_task(void *self, int s, int worker, tdm_error *err)
{
    tdmi_step *step = self;
    (void)worker;
    bool has_images = step->first_node == 0 ? begin(step, s, s) : step->shards[s].n > 0;
    if (has_images)
        tdmi_executor_forward_part(step->lanes[s], step->values, step->first_node, step->last_node,
                                   tdmi_sums_of(step->sums, s));
    return wait_for(step, s, err);
}

static tdm_status backward_part_task(void *self, int s, int worker, tdm_error *err)
{
    tdmi_step *step = self;
    (void)worker;
    if (step->shards[s].n > 0)
        tdmi_executor_backward_part(step->lanes[s], step->values, step->first_node, step->last_node,
                                    tdmi_sums_of(step->sums, s));
    return wait_for(step, s, err);
}

/* Adds the sums of one batch norm over all shards, in the tree, and copies the total to every
 * executor. A shard without images adds zeros, so the tree is the same. */
static void exchange(tdmi_step *step, int node)
{
    size_t n = 2 * (size_t)step->plan->graph->nodes[node].out.c;
    memset(step->exchange, 0, (size_t)step->n_shards * n * sizeof *step->exchange);
    for (int s = 0; s < step->n_shards; s++)
        if (step->shards[s].n > 0)
            memcpy(step->exchange + (size_t)s * n, tdmi_executor_norm_sums(step->lanes[s], node),
                   n * sizeof *step->exchange);
    tdmi_tree_sum_rows(step->exchange, step->n_shards, (int64_t)n);
    for (int s = 0; s < step->n_shards; s++)
        if (step->shards[s].n > 0)
            memcpy(tdmi_executor_norm_total(step->lanes[s], node), step->exchange,
                   n * sizeof *step->exchange);
}

static tdm_status forward_together(tdmi_step *step, tdm_error *err)
{
    const int n_nodes = step->plan->graph->n_nodes;
    for (step->first_node = 0; step->first_node < n_nodes; step->first_node = step->last_node + 1) {
        if (step->first_node > 0)
            exchange(step, step->first_node);
        step->last_node = tdmi_executor_forward_end(step->plan, step->first_node);
        TDM_TRY(tdmi_pool_run(step->pool, step->n_shards, forward_part_task, step, err), err,
                "running shards together");
    }
    return TDM_OK;
}

static tdm_status backward_together(tdmi_step *step, const struct tdmi_segment *range,
                                    tdm_error *err)
{
    for (step->first_node = range->first_node; step->first_node >= range->last_node;
         step->first_node = step->last_node - 1) {
        const struct tdmi_node *node = &step->plan->graph->nodes[step->first_node];
        if (node->kind == TDMI_OP_BATCH_NORM && step->plan->nodes[step->first_node].has_backward)
            exchange(step, step->first_node);
        step->last_node =
            tdmi_executor_backward_end(step->plan, step->first_node, range->last_node);
        TDM_TRY(tdmi_pool_run(step->pool, step->n_shards, backward_part_task, step, err), err,
                "running shards together");
    }
    return TDM_OK;
}

static tdm_status run_shards(tdmi_step *step, tdm_error *err)
{
    if (!step->exchange)
        return tdmi_pool_run(step->pool, step->n_shards - step->n_early, last_wave_task, step, err);
    if (step->segment == 0)
        TDM_TRY(forward_together(step, err), err, "forward");
    return backward_together(step, &step->plan->segments[step->segment], err);
}

tdm_status tdmi_step_run(tdmi_step *step, int first, int last, tdm_error *err)
{
    if (first == 0) {
        TDM_TRY(tdmi_packed_fill(step->packed, step->values,
                                 step->has_packed ? step->plan->first_trained : 0, step->pool, err),
                err, "beginning a step");
        step->has_packed = true;
        TDM_TRY(step->plan->backend->device.is_host
                    ? tdmi_pool_run(step->pool, step->n_early, early_task, step, err)
                    : early_shards(step, err),
                err, "running shards");
    }
    for (step->segment = first; step->segment <= last; step->segment++) {
        TDM_TRY(run_shards(step, err), err, "running the last shards");
        if (step->segment == 0)
            tdmi_sums_settle(step->sums);
        TDM_TRY(add_up(step, err), err, "adding gradients");
    }
    return TDM_OK;
}

/* ---- queued on a device --------------------------------------------------------------------- */

static int upload(void *self, int s)
{
    tdmi_step *step = self;
    (void)begin(step, 0, s);
    return step->shards[s].n;
}

tdm_status tdmi_step_queue(tdmi_step *step, const struct tdmi_step_next *next, tdm_error *err)
{
    const struct tdmi_queued queued = {
        .plan = step->plan,
        .lane = step->lanes[0],
        .packed = step->packed,
        .packed_from = step->has_packed ? step->plan->first_trained : 0,
        .sums = step->sums,
        .recorder = step->recorder,
        .values = step->values,
        .n_shards = step->n_shards,
        .is_mixed = step->mixing.augment != NULL,
        .is_changed = step->has_rest,
        .is_kept = step->is_kept,
        .collective = step->collective,
        .next = next,
        .upload = upload,
        .self = step,
    };
    TDM_TRY(tdmi_queued_run(&queued, err), err, "queueing a step");
    step->has_packed = step->has_packed || step->n_images > 0;
    return TDM_OK;
}

tdm_status tdmi_step_finish(tdmi_step *step, float tail[TDMI_TAIL_VALUES], tdm_error *err)
{
    const struct tdmi_backend *backend = step->plan->backend;
    TDM_TRY(backend->memory.download(tdmi_step_stream(step), tail,
                                     tdmi_sums_of(step->sums, 0) +
                                         tdmi_graph_tail_at(step->plan->graph),
                                     sizeof(float) * TDMI_TAIL_VALUES, err),
            err, "downloading the loss");
    return TDM_WRAP(err, wait_for(step, 0, err), "running a step");
}

tdm_status tdmi_step_run_queued(tdmi_step *step, const struct tdmi_step_next *next,
                                float tail[TDMI_TAIL_VALUES], tdm_error *err)
{
    const tdm_status status = tdmi_step_queue(step, next, err);
    return status == TDM_OK ? tdmi_step_finish(step, tail, err) : status;
}

tdmi_stream *tdmi_step_stream(const tdmi_step *step)
{
    return tdmi_executor_stream(step->lanes[0]);
}

int64_t tdmi_step_replays(const tdmi_step *step)
{
    return step->recorder ? tdmi_recorder_replays(step->recorder) : 0;
}

int64_t tdmi_step_recorded_bytes(const tdmi_step *step)
{
    return step->recorder ? tdmi_recorder_bytes(step->recorder) : 0;
}

int tdmi_step_images(const tdmi_step *step)
{
    return step->n_images;
}

float *tdmi_step_sums(tdmi_step *step)
{
    return tdmi_sums_of(step->sums, 0);
}
