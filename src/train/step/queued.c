/*
 * A step queued on a device with memory of its own: groups one after another on one stream, each
 * uploaded before it runs, their sums added there, and the update. Parts of it are recorded and
 * replayed (recorder.h); a batch of one group is one recording, which costs one launch:
 *
 *     several groups   [group 0]  [group 1] +  [group 2]  [group 3 ─ sums ─ update]
 *     one              [group 0 ─ update]
 */
#include "train/step/step_internal.h"
#include "base/scope.h"

/* The recorded part of one group. */
struct part {
    const tdmi_step *step;
    const struct tdmi_step_next *next; /* work that follows; NULL: none */
    float *sums;
    int n;        /* images */
    bool packs;   /* it packs weights first */
    bool is_last; /* the sums of the batch are complete after it */
};

static void queue_part(void *self)
{
    const struct part *part = self;
    const tdmi_step *step = part->step;
    const tdmi_plan *plan = step->plan;
    tdmi_executor *executor = step->executors[0];
    if (part->packs)
        tdmi_packed_queue(step->packed, tdmi_executor_stream(executor), step->values,
                          step->has_packed ? plan->first_trained : 0);
    if (part->n > 0)
        tdmi_executor_forward_part(executor, step->values, 0, plan->graph->n_nodes - 1, part->sums,
                                   NULL);
    for (int s = 0; s < plan->n_segments; s++) {
        if (part->n > 0)
            tdmi_executor_backward(executor, step->values, s, part->sums, NULL);
        if (part->is_last)
            tdmi_sums_add(step->sums, plan->segments[s].first_value, plan->segments[s].n_values);
    }
    if (part->next)
        part->next->queue(part->next->self, tdmi_sums_of(step->sums, 0));
}

/* A part without images is not recorded: there is little to replay, and its sums are cleared
 * outside. */
static tdm_status run_part(struct part *part, tdm_error *err)
{
    const tdmi_step *step = part->step;
    const struct tdmi_recorder_key key = {.n = part->n,
                                          .is_mixed = step->mixing.augment != NULL,
                                          .is_changed = step->has_rest,
                                          .is_kept = step->is_kept,
                                          .params = step->values.params,
                                          .sums = part->sums,
                                          .part = 2 * part->packs + part->is_last,
                                          .next = part->next ? part->next->key : 0};
    if (part->n > 0)
        return tdmi_recorder_run(step->recorder, key, queue_part, part, err);
    queue_part(part);
    return TDM_OK;
}

/* Sums are added outside of recordings: how many differs from group to group. */
static tdm_status run_group(tdmi_step *step, struct part *part, int s, tdm_error *err)
{
    if (part->is_last) {
        tdmi_sums_settle(step->sums);
        return run_part(part, err);
    }
    TDM_TRY(run_part(part, err), err, "queueing");
    tdmi_sums_give(step->sums, s);
    return step->plan->backend->stream.wait(tdmi_step_stream(step), err);
}

tdm_status tdmi_step_queue(tdmi_step *step, const struct tdmi_step_next *next, tdm_error *err)
{
    bool is_packed = false;
    for (int s = 0; s < step->n_groups; s++) {
        const int group = tdmi_sums_take(step->sums, s);
        const bool is_last = s == step->n_groups - 1;
        struct part part = {.step = step,
                            .next = is_last ? next : NULL,
                            .sums = tdmi_sums_of(step->sums, group),
                            .n = tdmi_step_give(step, 0, group),
                            .is_last = is_last};
        part.packs = part.n > 0 && !is_packed;
        is_packed = is_packed || part.packs;
        TDM_TRY(run_group(step, &part, s, err), err, "queueing group %d of %d of a step", s + 1,
                step->n_groups);
    }
    step->has_packed = step->has_packed || is_packed;
    return TDM_OK;
}

tdm_status tdmi_step_finish(tdmi_step *step, float tail[TDMI_TAIL_VALUES], tdm_error *err)
{
    const struct tdmi_backend *backend = step->plan->backend;
    const float *sums = tdmi_sums_of(step->sums, 0) + tdmi_graph_tail_at(step->plan->graph);
    TDM_TRY(backend->memory.download(tdmi_step_stream(step), tail, sums,
                                     sizeof(float) * TDMI_TAIL_VALUES, err),
            err, "downloading the loss");
    return TDM_WRAP(err, backend->stream.wait(tdmi_step_stream(step), err), "running a step");
}

tdm_status tdmi_step_run_queued(tdmi_step *step, const struct tdmi_step_next *next,
                                float tail[TDMI_TAIL_VALUES], tdm_error *err)
{
    TDMI_TRY(tdmi_step_queue(step, next, err));
    return tdmi_step_finish(step, tail, err);
}

tdmi_stream *tdmi_step_stream(const tdmi_step *step)
{
    return tdmi_executor_stream(step->executors[0]);
}

int64_t tdmi_step_replays(const tdmi_step *step)
{
    return step->recorder ? tdmi_recorder_replays(step->recorder) : 0;
}

int64_t tdmi_step_recorded_bytes(const tdmi_step *step)
{
    return step->recorder ? tdmi_recorder_bytes(step->recorder) : 0;
}
