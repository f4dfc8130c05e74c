/* Runs the groups of a batch on threads, and adds their sums in the tree. */
#include "train/step/step_internal.h"
#include "base/clock.h"
#include "base/scope.h"
#include "dist/tree.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* ---- reserving ----------------------------------------------------------------------------- */

static int groups_of(const tdmi_plan *plan, const struct tdmi_step_options *options)
{
    return (options->max_batch + plan->max_images - 1) / plan->max_images;
}

/* Groups that share statistics need an executor each: they keep their activations. */
static int executors_of(const tdmi_plan *plan, const struct tdmi_step_options *options,
                        int n_threads)
{
    const int groups = groups_of(plan, options);
    if (!plan->backend->device.is_host)
        return 1; /* one thread queues */
    return options->shares_statistics || n_threads > groups ? groups : n_threads;
}

static struct tdmi_sums_options sums_of(const tdmi_plan *plan,
                                        const struct tdmi_step_options *options, int n_executors)
{
    return (struct tdmi_sums_options){.n_values = tdmi_graph_sums_values(plan->graph),
                                      .max_groups = groups_of(plan, options),
                                      .is_part = options->comm != NULL,
                                      .n_threads = n_executors,
                                      .runs_together = options->shares_statistics,
                                      .is_queued = !plan->backend->device.is_host};
}

struct tdmi_step_needs tdmi_step_needs(const tdmi_plan *plan,
                                       const struct tdmi_step_options *options, int n_threads)
{
    const int n_executors = executors_of(plan, options, n_threads);
    const struct tdmi_sums_options sums = sums_of(plan, options, n_executors);
    const int64_t first = plan->segments[plan->n_segments - 1].first_value; /* that is not frozen */
    const int64_t mixer = options->can_mix ? tdmi_mixer_bytes(plan) : 0;
    return (struct tdmi_step_needs){
        .activations =
            n_executors * ((int64_t)plan->arena_bytes + mixer) + (int64_t)plan->packed_bytes,
        .gradients = tdmi_sums_arrays(&sums) * (sums.n_values - first) * (int64_t)sizeof(float),
    };
}

static tdm_status reserve_mixers(tdmi_step *step, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(step->mixers, step->n_executors, err));
    for (int i = 0; i < step->n_executors; i++)
        TDM_TRY(tdmi_mixer_open(step->plan, &step->mixers[i], err), err,
                "preparing thread %d of %d for training", i + 1, step->n_executors);
    return TDM_OK;
}

tdm_status tdmi_step_check_sharing(const struct tdmi_backend *backend, tdm_error *err)
{
    if (backend->device.is_host)
        return TDM_OK;
    return TDM_FAIL(err, TDM_E_ABSENT,
                    "sharing batch norm statistics over a batch (--bn batch) is not available "
                    "on the backend %s; --bn shard is accepted",
                    backend->name);
}

/* Rows for the widest batch norm. */
static tdm_status reserve_exchange(tdmi_step *step, const struct tdmi_step_options *options,
                                   tdm_error *err)
{
    const int size = step->plan->max_images, whole = options->whole_batch;
    const int n_groups = whole > 0 ? (whole + size - 1) / size : step->max_groups;
    const tdmi_graph *graph = step->plan->graph;
    int widest = 1;
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].kind == TDMI_OP_BATCH_NORM && graph->nodes[i].out.c > widest)
            widest = graph->nodes[i].out.c;
    TDMI_TRY(tdmi_step_check_sharing(step->plan->backend, err));
    if (step->comm)
        TDMI_TRY(TDMI_NEW(step->counts, tdmi_comm_world(step->comm), err));
    return TDMI_NEW(step->exchange, 2 * (size_t)n_groups * (size_t)widest, err);
}

/* Whole and ragged groups, for each array of sums, and some with images left out. */
enum { most_recordings = 32 };

static tdm_status reserve_samples(tdmi_step *step, int max_batch, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(step->group_images, step->max_groups, err));
    TDMI_TRY(TDMI_NEW(step->pixels, max_batch, err));
    TDMI_TRY(TDMI_NEW(step->rows, max_batch, err));
    TDMI_TRY(TDMI_NEW(step->labels, max_batch, err));
    TDMI_TRY(TDMI_NEW(step->items, max_batch, err));
    TDMI_TRY(TDMI_NEW(step->keys, max_batch, err));
    return TDMI_NEW(step->judgements, max_batch, err);
}

static tdm_status reserve(tdmi_step *step, const struct tdmi_step_options *options, tdm_error *err)
{
    const tdmi_plan *plan = step->plan;
    struct tdmi_sums_options sums = sums_of(plan, options, step->n_executors);
    TDMI_TRY(TDMI_NEW(step->executors, step->n_executors, err));
    TDMI_TRY(TDMI_NEW(step->wave, step->n_executors, err));
    if (plan->backend->device.is_host)
        TDMI_TRY(TDMI_NEW(step->teams, step->n_executors, err));
    for (int i = 0; step->teams && i < step->n_executors; i++)
        TDMI_TRY(tdmi_team_new(&step->teams[i], err));
    TDMI_TRY(reserve_samples(step, options->max_batch, err));
    TDMI_TRY(tdmi_packed_open(plan, step->device, &step->packed, err));
    for (int i = 0; i < step->n_executors; i++) {
        TDM_TRY(tdmi_executor_open(plan, step->device, &step->executors[i], err), err,
                "preparing thread %d of %d for training", i + 1, step->n_executors);
        tdmi_executor_use(step->executors[i], tdmi_packed_memory(step->packed));
    }
    if (!plan->backend->device.is_host) {
        sums.stream = tdmi_step_stream(step);
        TDMI_TRY(tdmi_recorder_open(plan->backend, step->device, sums.stream, most_recordings,
                                    &step->recorder, err));
    }
    TDMI_TRY(tdmi_sums_open(plan->backend, step->device, &sums, &step->sums, err));
    TDMI_TRY(tdmi_step_reserve_ranks(step, options, tdmi_sums_arrays(&sums), err));
    return options->can_mix || plan->backend->changes ? reserve_mixers(step, err) : TDM_OK;
}

TDMI_POINTER_RELEASE(tdmi_step, tdmi_step_close)

tdm_status tdmi_step_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                          const struct tdmi_step_options *options, tdmi_step **step, tdm_error *err)
{
    TDMI_AT_END(tdmi_step_close_at) tdmi_step *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->plan = plan;
    made->device = device;
    made->pool = pool;
    made->comm = options->comm;
    made->rounds = options->rounds;
    made->class_weights = options->class_weights;
    made->loss_scale = options->loss_scale;
    made->lanes = plan->backend->device.is_host ? options->lanes : NULL;
    made->max_groups = groups_of(plan, options);
    made->n_executors = executors_of(plan, options, tdmi_pool_threads(pool));
    TDM_TRY(reserve(made, options, err), err, "preparing steps of %d images", options->max_batch);
    if (options->shares_statistics)
        TDMI_TRY(reserve_exchange(made, options, err));
    *step = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_step_close(tdmi_step *step)
{
    if (!step)
        return;
    tdmi_recorder_close(step->recorder);
    for (int i = 0; step->executors && i < step->n_executors; i++)
        tdmi_executor_close(step->executors[i]);
    tdmi_packed_close(step->packed);
    tdmi_sums_close(step->sums);
    tdmi_device_sum_release(&step->device_sum);
    for (int i = 0; step->mixers && i < step->n_executors; i++)
        tdmi_mixer_close(step->mixers[i]);
    tdmi_free(step->mixers);
    tdmi_free(step->exchange);
    tdmi_free(step->counts);
    tdmi_free(step->group_images);
    tdmi_free(step->pixels);
    tdmi_free(step->rows);
    tdmi_free(step->labels);
    tdmi_free(step->items);
    tdmi_free(step->keys);
    tdmi_free(step->judgements);
    for (int i = 0; step->teams && i < step->n_executors; i++)
        tdmi_team_free(step->teams[i]);
    tdmi_free(step->teams);
    tdmi_free(step->executors);
    tdmi_free(step->wave);
    tdmi_free(step);
}

void tdmi_step_keep(tdmi_step *step, const tdmi_feature_table *kept)
{
    for (int i = 0; i < step->n_executors; i++)
        tdmi_executor_keep(step->executors[i], kept);
}

/* First image of a group. */
static const uint8_t *first_image_of(const tdmi_step *step, const uint8_t *batch, int s)
{
    return batch + (size_t)(s * step->plan->max_images) * tdmi_plan_sample_bytes(step->plan);
}

/* Prefetches group s of a batch of n images. */
static tdm_status prefetch_group(tdmi_step *step, const uint8_t *batch, int n, int s,
                                 tdm_error *err)
{
    const int size = step->plan->max_images, left = n - s * size;
    if (!tdmi_executor_can_prefetch(step->executors[0]))
        return TDM_OK;
    const uint8_t *from = first_image_of(step, batch, s);
    step->prefetched = NULL;
    if (left <= 0)
        return TDM_OK;
    TDM_TRY(tdmi_executor_prefetch(step->executors[0], from, left < size ? left : size, err), err,
            "prefetching images");
    step->prefetched = from;
    return TDM_OK;
}

tdm_status tdmi_step_prefetch(tdmi_step *step, const struct tdmi_batch *batch, tdm_error *err)
{
    return batch->rows ? TDM_OK : prefetch_group(step, batch->pixels, batch->n, 0, err);
}

tdm_status tdmi_step_await_prefetch(tdmi_step *step, tdm_error *err)
{
    step->prefetched = NULL;
    return tdmi_executor_await_prefetch(step->executors[0], err);
}

tdm_status tdmi_step_look_ahead(tdmi_step *step, tdmi_feed *feed, tdm_error *err)
{
    TDM_TRY(tdmi_step_await_prefetch(step, err), err, "uploading images"); /* of this batch */
    const struct tdmi_batch *next = tdmi_feed_look_ahead(feed);
    return next ? tdmi_step_prefetch(step, next, err) : TDM_OK;
}

/* Copies the samples that are not skipped, group by group. */
static void gather(tdmi_step *step, const struct tdmi_batch *batch)
{
    const int size = step->plan->max_images;
    const size_t image_bytes = tdmi_plan_sample_bytes(step->plan);
    step->n_images = 0;
    memset(step->group_images, 0, sizeof *step->group_images * (size_t)step->n_groups);
    for (int p = 0; p < batch->n; p++) {
        const int s = p / size, at = s * size + step->group_images[s];
        if (batch->labels[p] < 0)
            continue;
        if (batch->rows)
            step->rows[at] = batch->rows[p];
        else
            step->pixels[at] = batch->pixels + (size_t)p * image_bytes;
        step->labels[at] = batch->labels[p];
        step->items[at] = batch->items[p];
        if (batch->keys)
            step->keys[at] = batch->keys[p];
        step->group_images[s]++;
        step->n_images++;
    }
}

static void divide(tdmi_step *step)
{
    /* With one segment no gradients are final early, so no wave needs to run by segments. Groups
     * that share statistics go from one batch norm to the next together. */
    const bool has_wave = step->plan->n_segments > 1 && !step->exchange;
    step->division = tdmi_division_of(step->n_groups, tdmi_pool_threads(step->pool),
                                      step->plan->team, TDMI_DIVISION_LOSS, has_wave);
    const struct tdmi_division *of = &step->division;
    for (int i = 0; i < of->n_teams; i++) {
        const int size = tdmi_division_first(of, i + 1) - tdmi_division_first(of, i);
        tdmi_team_form(step->teams[i], size, tdmi_pool_may_spin(step->pool),
                       size > 1 ? step->log : NULL); /* one thread alone is measured below */
    }
    atomic_store(&step->n_begun, 0);
}

void tdmi_step_begin(tdmi_step *step, struct tdmi_values values, const struct tdmi_batch *batch,
                     const struct tdmi_mixing *mixing)
{
    struct tdmi_augment first;
    const int size = step->plan->max_images;
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
    step->is_on_device = batch->is_on_device;
    step->batch = batch->pixels;
    step->n = batch->n;
    step->n_groups = (batch->n + size - 1) / size;
    if (step->teams)
        divide(step);
    const int n_all = batch->whole.n > 0 ? batch->whole.n : batch->n;
    step->groups = (struct tdmi_sums_groups){.n = step->n_groups,
                                             .first = batch->whole.first / size,
                                             .n_all = (n_all + size - 1) / size};
    tdmi_sums_begin(step->sums, step->groups);
    gather(step, batch);
}

int tdmi_step_give(tdmi_step *step, int executor, int s)
{
    const int n = step->group_images[s], first = s * step->plan->max_images;
    if (n == 0) {
        step->plan->backend->memory.clear(
            tdmi_executor_stream(step->executors[executor]), tdmi_sums_of(step->sums, s),
            sizeof(float) * (size_t)tdmi_graph_sums_values(step->plan->graph));
        return 0;
    }
    struct tdmi_group group = {.n = n,
                               .pixels = step->pixels + first,
                               .is_on_device = step->is_on_device,
                               .rows = step->is_kept ? step->rows + first : NULL,
                               .labels = step->labels + first,
                               .judgements = step->judgements + first,
                               .class_weights = step->class_weights,
                               .loss_scale = step->loss_scale,
                               .draws = {&step->draws, step->items + first}};
    if (!step->is_kept && step->prefetched &&
        step->prefetched == first_image_of(step, step->batch, s))
        group.prefetched = step->prefetched;
    if (step->mixers)
        tdmi_mixer_run(step->mixers[executor], step->mixing.augment ? &step->mixing : NULL,
                       step->items + first, step->has_rest ? &step->rest : NULL, step->keys + first,
                       &group);
    tdmi_executor_begin(step->executors[executor], &group, step->exchange ? step->n_all_images : 0);
    /* Prefetch the next group while this one is computed; a failure shows in the wait for it. */
    if (!step->is_kept && !step->is_on_device)
        (void)prefetch_group(step, step->batch, step->n, s + 1, NULL);
    return n;
}

static void add_to_log(const tdmi_step *step, const struct tdmi_member *member, int64_t begin)
{
    if (!member && step->log)
        tdmi_team_log_alone(step->log, begin);
}

/* Forward and backward of the parts below by a member of a team; NULL: by one thread. */
static void forward(tdmi_step *step, int executor, int s, int thread,
                    const struct tdmi_member *member)
{
    if (tdmi_member_is_first(member)) {
        tdmi_step_trace(step, executor, thread);
        tdmi_step_give(step, executor, s);
    }
    tdmi_member_wait(member);
    const int64_t begin = step->log ? tdmi_clock_thread_ns() : 0;
    if (step->group_images[s] > 0)
        tdmi_executor_forward_part(step->executors[executor], step->values, 0,
                                   step->plan->graph->n_nodes - 1, tdmi_sums_of(step->sums, s),
                                   member);
    add_to_log(step, member, begin);
}

static void backward(tdmi_step *step, int executor, int s, int segment,
                     const struct tdmi_member *member)
{
    const int64_t begin = step->log ? tdmi_clock_thread_ns() : 0;
    if (step->group_images[s] > 0)
        tdmi_executor_backward(step->executors[executor], step->values, segment,
                               tdmi_sums_of(step->sums, s), member);
    add_to_log(step, member, begin);
}

tdm_status tdmi_step_wait_for(const tdmi_step *step, int executor, tdm_error *err)
{
    return step->plan->backend->stream.wait(tdmi_executor_stream(step->executors[executor]), err);
}

static tdm_status run_alone(void *self, int index, int worker, tdm_error *err)
{
    tdmi_step *step = self;
    const int s = tdmi_sums_take(step->sums, index);
    forward(step, worker, s, worker, NULL);
    for (int segment = 0; segment < step->plan->n_segments; segment++)
        backward(step, worker, s, segment, NULL);
    tdmi_sums_give(step->sums, s);
    return tdmi_step_wait_for(step, worker, err);
}

void tdmi_step_take_seat(const tdmi_step *step, int thread, struct tdmi_seat *seat)
{
    seat->team = tdmi_division_team_of(&step->division, thread);
    seat->member = tdmi_team_join(step->teams[seat->team],
                                  thread - tdmi_division_first(&step->division, seat->team));
    seat->or_alone = seat->member.size > 1 ? &seat->member : NULL;
}

/* Each team computes the next group until none is left. Only the first member fails, at the end. */
static tdm_status run_by_teams(void *self, int thread, int worker TDMI_UNUSED, tdm_error *err)
{
    tdmi_step *step = self;
    struct tdmi_seat seat;
    tdmi_step_take_seat(step, thread, &seat);
    const struct tdmi_member *member = seat.or_alone;
    const int team = seat.team;
    for (;;) {
        if (tdmi_member_is_first(member)) {
            const int index = atomic_fetch_add(&step->n_begun, 1);
            step->wave[team] = index < step->division.n_by_teams
                                   ? tdmi_sums_take(step->sums, step->division.n_alone + index)
                                   : -1;
        }
        tdmi_member_wait(member);
        const int s = step->wave[team];
        if (s < 0)
            break;
        forward(step, team, s, thread, member);
        for (int segment = 0; segment < step->plan->n_segments; segment++)
            backward(step, team, s, segment, member);
        if (tdmi_member_is_first(member))
            tdmi_sums_give(step->sums, s);
    }
    tdmi_team_leave(&seat.member);
    return tdmi_member_is_first(member) ? tdmi_step_wait_for(step, team, err) : TDM_OK;
}

/* In the last wave a group keeps its team and its executor from segment to segment. */
static tdm_status run_last(void *self, int thread, int worker TDMI_UNUSED, tdm_error *err)
{
    tdmi_step *step = self;
    const struct tdmi_division *of = &step->division;
    struct tdmi_seat seat;
    tdmi_step_take_seat(step, thread, &seat);
    const struct tdmi_member *member = seat.or_alone;
    const int team = seat.team;
    if (step->segment == 0) {
        if (tdmi_member_is_first(member))
            step->wave[team] = tdmi_sums_take(step->sums, of->n_alone + of->n_by_teams + team);
        tdmi_member_wait(member);
        forward(step, team, step->wave[team], thread, member);
    }
    backward(step, team, step->wave[team], step->segment, member);
    tdmi_team_leave(&seat.member);
    return tdmi_member_is_first(member) ? tdmi_step_wait_for(step, team, err) : TDM_OK;
}

int tdmi_step_team_threads(const tdmi_step *step)
{
    return step->division.n_teams > 0 ? step->division.n_threads : 0;
}

/* All groups but those of the last wave. */
static tdm_status run_whole_groups(tdmi_step *step, tdm_error *err)
{
    TDMI_TRY(tdmi_pool_run(step->pool, step->division.n_alone, run_alone, step, err));
    if (step->division.n_by_teams == 0)
        return TDM_OK;
    return tdmi_pool_run_all(step->pool, tdmi_step_team_threads(step), run_by_teams, step, err);
}

/* On a device: with the only executor, all groups but the last. */
static tdm_status run_on_device(tdmi_step *step, tdm_error *err)
{
    for (int i = 0; i + 1 < step->n_groups; i++)
        TDM_TRY(run_alone(step, i, 0, err), err, "group %d of %d", i + 1, step->n_groups);
    return TDM_OK;
}

static void queue_last_on_device(tdmi_step *step)
{
    if (step->n_groups == 0)
        return;
    if (step->segment == 0) {
        step->wave[0] = tdmi_sums_take(step->sums, step->n_groups - 1);
        forward(step, 0, step->wave[0], 0, NULL);
    }
    backward(step, 0, step->wave[0], step->segment, NULL);
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
    if (step->plan->backend->device.is_host) {
        tdmi_lane *lane = step->lanes ? step->lanes[0] : NULL;
        const int64_t begin = tdmi_lane_begin(lane);
        const tdm_status status =
            tdmi_pool_run(step->pool, (int)((range->n_values + slice_values - 1) / slice_values),
                          tree_task, step, err);
        tdmi_lane_end(lane, TDMI_TRACE_ADD, step->segment, begin);
        return status;
    }
    tdmi_sums_add(step->sums, range->first_value, range->n_values);
    return step->device_sum.backend ? TDM_OK : tdmi_step_wait_for(step, 0, err);
}

/* ---- a step -------------------------------------------------------------------------------- */

static tdm_status run_groups(tdmi_step *step, tdm_error *err)
{
    if (!step->teams) {
        queue_last_on_device(step);
        return TDM_OK;
    }
    if (!step->exchange)
        return step->division.n_last == 0
                   ? TDM_OK
                   : tdmi_pool_run_all(step->pool, tdmi_step_team_threads(step), run_last, step,
                                       err);
    return tdmi_step_run_together(step, err);
}

tdm_status tdmi_step_run(tdmi_step *step, int first, int last, tdm_error *err)
{
    if (first == 0) {
        TDM_TRY(tdmi_packed_fill(step->packed, step->values,
                                 step->has_packed ? step->plan->first_trained : 0, step->pool, err),
                err, "beginning a step");
        step->has_packed = true;
        if (step->comm)
            TDMI_TRY(tdmi_comm_divide(step->comm, step->groups.n_all, err));
        if (step->exchange)
            TDM_TRY(tdmi_step_count_images(step, err), err, "beginning a step");
        if (!step->exchange)
            TDM_TRY(step->teams ? run_whole_groups(step, err) : run_on_device(step, err), err,
                    "running groups");
    }
    for (step->segment = first; step->segment <= last; step->segment++) {
        TDM_TRY(run_groups(step, err), err, "running the last groups");
        if (step->segment == 0)
            tdmi_sums_settle(step->sums);
        TDM_TRY(add_up(step, err), err, "adding gradients");
        TDM_TRY(tdmi_step_add_ranks(step, err), err, "adding gradients of all ranks");
    }
    return TDM_OK;
}

void tdmi_step_measure(tdmi_step *step, struct tdmi_team_log *log)
{
    step->log = log;
}

int tdmi_step_images(const tdmi_step *step)
{
    return step->n_images;
}

float *tdmi_step_sums(tdmi_step *step)
{
    return tdmi_sums_of(step->sums, 0);
}
