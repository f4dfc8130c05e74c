/*
 * Batches through inference lanes. Images do not see each other here, so how they are cut into
 * pieces for the threads changes nothing.
 */
#include "train/judge.h"
#include "base/memory.h"
#include "nn/packed.h"

struct tdmi_judge {
    const tdmi_plan *plan;
    tdmi_device *device;
    tdmi_pool *pool;
    int n_lanes;
    tdmi_lane **lanes;
    tdmi_packed *packed;
    struct tdmi_values values;
    const uint8_t **pixels; /* by position */
    int32_t *labels;        /* skipped ones get 0: their judgement is not looked at */

    /* of the batch at hand */
    int n;
    struct tdmi_judgement *judgements;
    float *probabilities, *logits;
};

static int lanes_of(const tdmi_plan *plan, int max_batch, int n_threads)
{
    if (!plan->backend->device.is_host)
        return 1; /* queued on by one thread */
    const int pieces = (max_batch + plan->max_images - 1) / plan->max_images;
    return n_threads > pieces ? pieces : n_threads;
}

int64_t tdmi_judge_needs(const tdmi_plan *plan, int max_batch, int n_threads)
{
    return lanes_of(plan, max_batch, n_threads) * (int64_t)plan->arena_bytes +
           (int64_t)plan->packed_bytes;
}

tdm_status tdmi_judge_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                           int max_batch, tdmi_judge **judge, tdm_error *err)
{
    tdmi_judge *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "preparing to judge pictures: out of memory");
    made->plan = plan;
    made->device = device;
    made->pool = pool;
    made->n_lanes = lanes_of(plan, max_batch, tdmi_pool_threads(pool));
    made->lanes = tdmi_alloc((size_t)made->n_lanes, sizeof *made->lanes);
    made->pixels = tdmi_alloc((size_t)max_batch, sizeof *made->pixels);
    made->labels = tdmi_alloc((size_t)max_batch, sizeof *made->labels);
    tdm_status status = TDM_OK;
    if (!made->lanes || !made->pixels || !made->labels)
        status = TDM_FAIL(err, TDM_E_MEMORY,
                          "preparing to judge %d pictures at a time: out of memory", max_batch);
    if (status == TDM_OK)
        status = tdmi_packed_open(plan, device, &made->packed, err);
    for (int i = 0; i < made->n_lanes && status == TDM_OK; i++) {
        status = TDM_WRAP(err, tdmi_lane_open(plan, device, &made->lanes[i], err),
                          "preparing thread %d of %d for judging", i + 1, made->n_lanes);
        if (status == TDM_OK)
            tdmi_lane_use(made->lanes[i], tdmi_packed_memory(made->packed));
    }
    if (status != TDM_OK) {
        tdmi_judge_close(made);
        return status;
    }
    *judge = made;
    return TDM_OK;
}

void tdmi_judge_close(tdmi_judge *judge)
{
    if (!judge)
        return;
    for (int i = 0; judge->lanes && i < judge->n_lanes; i++)
        tdmi_lane_close(judge->lanes[i]);
    tdmi_packed_close(judge->packed);
    tdmi_free(judge->lanes);
    tdmi_free(judge->pixels);
    tdmi_free(judge->labels);
    tdmi_free(judge);
}

/* One number that decides between two classes is the second one's logit, and its negative the
 * first's: what the logistic function makes the probabilities of. From the end, for they lie where
 * the pairs will. */
static void pair_logits(float *logits, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        const float second = logits[i];
        logits[2 * i] = -second;
        logits[2 * i + 1] = second;
    }
}

/* Few pictures are spread over all lanes; how they are cut changes no bit of an answer. */
static int piece_images(const tdmi_judge *judge)
{
    const int each = (judge->n + judge->n_lanes - 1) / judge->n_lanes;
    return each < judge->plan->max_images ? each : judge->plan->max_images;
}

static tdm_status judge_piece(tdmi_judge *judge, tdmi_lane *lane, int first, tdm_error *err)
{
    int size = piece_images(judge);
    int n = judge->n - first < size ? judge->n - first : size;
    const tdmi_graph *graph = judge->plan->graph;
    size_t classes = (size_t)tdmi_shape_values(graph->nodes[graph->n_nodes - 1].out);
    float *logits = judge->logits ? judge->logits + (size_t)first * classes : NULL;
    size_t outputs = logits ? (size_t)tdmi_graph_logits(graph) : 0;
    tdmi_lane_forward(
        lane, judge->values,
        &(struct tdmi_shard){.n = n,
                             .pixels = judge->pixels + first,
                             .labels = judge->judgements ? judge->labels + first : NULL,
                             .judgements = judge->judgements ? judge->judgements + first : NULL},
        NULL);
    if (judge->probabilities)
        TDM_TRY(
            tdmi_lane_fetch_output(lane, n, judge->probabilities + (size_t)first * classes, err),
            err, "judging %d pictures", n);
    if (logits)
        TDM_TRY(tdmi_lane_fetch_logits(lane, n, logits, err), err, "judging %d pictures", n);
    tdm_status status = judge->plan->backend->stream.wait(tdmi_lane_stream(lane), err);
    if (status == TDM_OK && logits && outputs < classes)
        pair_logits(logits, n);
    return status;
}

/* Every n_lanes-th piece, beginning with the lane's own. */
static tdm_status lane_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_judge *judge = self;
    int size = piece_images(judge);
    tdm_status status = TDM_OK;
    (void)worker;
    for (int first = index * size; first < judge->n && status == TDM_OK;
         first += judge->n_lanes * size)
        status = judge_piece(judge, judge->lanes[index], first, err);
    return status;
}

tdm_status tdmi_judge_take(tdmi_judge *judge, struct tdmi_values values, tdm_error *err)
{
    judge->values = values;
    return tdmi_packed_fill(judge->packed, values, 0, judge->pool, err);
}

tdm_status tdmi_judge_batch(tdmi_judge *judge, const struct tdmi_batch *batch,
                            struct tdmi_judgement *judgements, float *probabilities, float *logits,
                            tdm_error *err)
{
    const int64_t image_bytes = (int64_t)tdmi_plan_sample_bytes(judge->plan);
    for (int p = 0; p < batch->n; p++) {
        judge->pixels[p] = batch->pixels + p * image_bytes;
        judge->labels[p] = batch->labels[p] < 0 ? 0 : batch->labels[p];
    }
    judge->n = batch->n;
    judge->judgements = judgements;
    judge->probabilities = probabilities;
    judge->logits = logits;
    return tdmi_pool_run(judge->pool, judge->n_lanes, lane_task, judge, err);
}
