/* A step in parts that can be recorded: forward, backward by segments, sums, update. */
#include "train/step/queued.h"

/* The recorded part of one shard. */
struct part {
    const struct tdmi_queued *of;
    float *sums;
    int n;              /* images */
    bool packs;         /* it packs weights first */
    bool is_last_shard; /* the batch's sums of a segment are complete after it */
    bool ends;          /* it includes the end of the step: collective and update */
};

static float *sums_of_batch(const struct tdmi_queued *of)
{
    return tdmi_sums_of(of->sums, 0);
}

static tdm_status begin_collective(const struct tdmi_queued *of, int segment, tdm_error *err)
{
    const struct tdmi_segment *range = &of->plan->segments[segment];
    const struct tdmi_collective *collective = of->collective;
    return TDM_WRAP(err,
                    collective->begin(collective->self, tdmi_executor_stream(of->lane),
                                      sums_of_batch(of) + range->first_value, range->n_values, err),
                    "reducing segment %d of %d", segment + 1, of->plan->n_segments);
}

static tdm_status finish_collective(const struct tdmi_queued *of, tdm_error *err)
{
    const struct tdmi_collective *collective = of->collective;
    return TDM_WRAP(err, collective->finish(collective->self, tdmi_executor_stream(of->lane), err),
                    "receiving the sums of all ranks");
}

static tdm_status queue_segment(const struct part *part, int segment, tdm_error *err)
{
    const struct tdmi_queued *of = part->of;
    const struct tdmi_segment *range = &of->plan->segments[segment];
    if (part->n > 0)
        tdmi_executor_backward(of->lane, of->values, segment, part->sums);
    if (!part->is_last_shard)
        return TDM_OK;
    tdmi_sums_add(of->sums, range->first_value, range->n_values);
    return of->collective ? begin_collective(of, segment, err) : TDM_OK;
}

static tdm_status queue_part(void *self, tdm_error *err)
{
    const struct part *part = self;
    const struct tdmi_queued *of = part->of;
    if (part->packs)
        tdmi_packed_queue(of->packed, tdmi_executor_stream(of->lane), of->values, of->packed_from);
    if (part->n > 0)
        tdmi_executor_forward_part(of->lane, of->values, 0, of->plan->graph->n_nodes - 1,
                                   part->sums);
    for (int segment = 0; segment < of->plan->n_segments; segment++)
        TDM_TRY(queue_segment(part, segment, err), err, "backward");
    if (part->ends && of->collective)
        TDM_TRY(finish_collective(of, err), err, "backward");
    if (part->ends && of->next)
        of->next->queue(of->next->self, sums_of_batch(of));
    return TDM_OK;
}

/* The flags of a part as one number, for the recorder's key. */
static int64_t number_of(const struct part *part)
{
    return 4 * part->packs + 2 * part->is_last_shard + part->ends;
}

/* A part without images is not recorded: there is little to replay, and its sums are cleared
 * outside. */
static tdm_status run_part(struct part *part, tdm_error *err)
{
    const struct tdmi_queued *of = part->of;
    const struct tdmi_recorder_key key = {.n = part->n,
                                          .is_mixed = of->is_mixed,
                                          .is_changed = of->is_changed,
                                          .is_kept = of->is_kept,
                                          .params = of->values.params,
                                          .sums = part->sums,
                                          .part = number_of(part),
                                          .next = part->ends && of->next ? of->next->key : 0};
    return part->n > 0 ? tdmi_recorder_run(of->recorder, key, queue_part, part, err)
                       : queue_part(part, err);
}

/* The part of shard s; is_packed: an earlier shard has packed weights. */
static struct part begin_shard(const struct tdmi_queued *of, int s, bool *is_packed)
{
    struct part part = {.of = of};
    const int shard = tdmi_sums_take(of->sums, s);
    part.sums = tdmi_sums_of(of->sums, shard);
    part.n = of->upload(of->self, shard);
    part.is_last_shard = s == of->n_shards - 1;
    part.packs = part.n > 0 && !*is_packed;
    *is_packed = *is_packed || part.packs;
    return part;
}

/* Sums are added outside of recordings: how many differs from shard to shard. */
static tdm_status run_early(const struct tdmi_queued *of, int s, bool *is_packed, tdm_error *err)
{
    struct part whole = begin_shard(of, s, is_packed);
    TDM_TRY(run_part(&whole, err), err, "queueing");
    tdmi_sums_give(of->sums, s);
    return of->plan->backend->stream.wait(tdmi_executor_stream(of->lane), err);
}

static tdm_status run_last(const struct tdmi_queued *of, bool *is_packed, tdm_error *err)
{
    struct part part = begin_shard(of, of->n_shards - 1, is_packed);
    tdmi_sums_settle(of->sums);
    part.ends = true;
    return run_part(&part, err);
}

tdm_status tdmi_queued_run(const struct tdmi_queued *queued, tdm_error *err)
{
    bool is_packed = false;
    for (int s = 0; s + 1 < queued->n_shards; s++)
        TDM_TRY(run_early(queued, s, &is_packed, err), err, "shard %d of %d", s + 1,
                queued->n_shards);
    return TDM_WRAP(err, run_last(queued, &is_packed, err), "shard %d of %d", queued->n_shards,
                    queued->n_shards);
}
