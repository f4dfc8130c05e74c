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
    const uint8_t *batch; /* its pictures, side by side */
    const int64_t *rows;  /* or the numbers of its rows, which are kept on the device */
    struct tdmi_judgement *judgements;
    float *probabilities, *logits;
    int last; /* piece, by its first picture: begun, and not ended yet; on the host there is none */

    /* Pictures that were brought ahead: of that batch (NULL: of none), from that one on. */
    const uint8_t *coming;
    int coming_first;
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

void tdmi_judge_keep(tdmi_judge *judge, const tdmi_kept_rows *kept)
{
    for (int i = 0; i < judge->n_lanes; i++)
        tdmi_lane_keep(judge->lanes[i], kept);
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

static int piece_at(const tdmi_judge *judge, int first)
{
    const int size = piece_images(judge), left = judge->n - first;
    return left < size ? left : size;
}

static size_t image_bytes(const tdmi_judge *judge)
{
    return tdmi_plan_sample_bytes(judge->plan);
}

static void begin_piece(tdmi_judge *judge, tdmi_lane *lane, int first)
{
    const bool is_brought = !judge->rows && judge->coming && judge->coming == judge->batch &&
                            judge->coming_first == first;
    tdmi_lane_forward(
        lane, judge->values,
        &(struct tdmi_shard){
            .n = piece_at(judge, first),
            .pixels = judge->pixels + first,
            .rows = judge->rows ? judge->rows + first : NULL,
            .brought = is_brought ? judge->batch + (size_t)first * image_bytes(judge) : NULL,
            .labels = judge->judgements ? judge->labels + first : NULL,
            .judgements = judge->judgements ? judge->judgements + first : NULL},
        NULL);
}

static tdm_status end_piece(tdmi_judge *judge, tdmi_lane *lane, int first, tdm_error *err)
{
    const int n = piece_at(judge, first);
    const tdmi_graph *graph = judge->plan->graph;
    size_t classes = (size_t)tdmi_shape_values(graph->nodes[graph->n_nodes - 1].out);
    float *logits = judge->logits ? judge->logits + (size_t)first * classes : NULL;
    size_t outputs = logits ? (size_t)tdmi_graph_logits(graph) : 0;
    TDM_TRY(tdmi_lane_fetch_judgements(lane, err), err, "judging %d pictures", n);
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
         first += judge->n_lanes * size) {
        begin_piece(judge, judge->lanes[index], first);
        status = end_piece(judge, judge->lanes[index], first, err);
    }
    return status;
}

/* ---- on a device whose memory is not the host's --------------------------------------------- */

static bool brings(const tdmi_judge *judge)
{
    return tdmi_lane_brings(judge->lanes[0]);
}

/* Of a batch of n, the piece that begins there; of rows that are there nothing is to be brought. */
static tdm_status bring_piece(tdmi_judge *judge, const uint8_t *batch, int n, int first,
                              tdm_error *err)
{
    const int most = judge->plan->max_images, left = n - first;
    judge->coming = NULL;
    if (left <= 0 || !brings(judge))
        return TDM_OK;
    TDM_TRY(tdmi_lane_bring(judge->lanes[0], batch + (size_t)first * image_bytes(judge),
                            left < most ? left : most, err),
            err, "bringing pictures to the device");
    judge->coming = batch;
    judge->coming_first = first;
    return TDM_OK;
}

/* All pieces but the end of the last; the next one's pictures come while one is computed. */
static tdm_status queue_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_judge *judge = self;
    tdmi_lane *lane = judge->lanes[0];
    (void)index;
    (void)worker;
    for (int first = 0; first < judge->n; first += piece_images(judge)) {
        begin_piece(judge, lane, first);
        judge->coming = NULL;
        judge->last = first;
        if (first + piece_images(judge) >= judge->n)
            break;
        if (!judge->rows)
            TDM_TRY(bring_piece(judge, judge->batch, judge->n, first + piece_images(judge), err),
                    err, "judging %d pictures", judge->n);
        TDM_TRY(end_piece(judge, lane, first, err), err, "judging %d pictures", judge->n);
    }
    return TDM_OK;
}

static tdm_status end_last(tdmi_judge *judge, tdm_error *err)
{
    return judge->n > 0 ? end_piece(judge, judge->lanes[0], judge->last, err) : TDM_OK;
}

tdm_status tdmi_judge_settle(tdmi_judge *judge, tdm_error *err)
{
    judge->coming = NULL;
    return tdmi_lane_brought(judge->lanes[0], err);
}

tdm_status tdmi_judge_take(tdmi_judge *judge, struct tdmi_values values, tdm_error *err)
{
    judge->values = values;
    return tdmi_packed_fill(judge->packed, values, 0, judge->pool, err);
}

static void take_batch(tdmi_judge *judge, const struct tdmi_batch *batch,
                       struct tdmi_judgement *judgements, float *probabilities, float *logits)
{
    for (int p = 0; p < batch->n; p++) {
        if (!batch->rows)
            judge->pixels[p] = batch->pixels + (size_t)p * image_bytes(judge);
        judge->labels[p] = batch->labels[p] < 0 ? 0 : batch->labels[p];
    }
    judge->n = batch->n;
    judge->batch = batch->pixels;
    judge->rows = batch->rows;
    judge->judgements = judgements;
    judge->probabilities = probabilities;
    judge->logits = logits;
}

tdm_status tdmi_judge_batch(tdmi_judge *judge, const struct tdmi_batch *batch,
                            struct tdmi_judgement *judgements, float *probabilities, float *logits,
                            tdm_error *err)
{
    take_batch(judge, batch, judgements, probabilities, logits);
    if (judge->plan->backend->device.is_host)
        return tdmi_pool_run(judge->pool, judge->n_lanes, lane_task, judge, err);
    const tdm_status status = tdmi_pool_run(judge->pool, 1, queue_task, judge, err);
    return status == TDM_OK ? end_last(judge, err) : status;
}

tdm_status tdmi_judge_feed(tdmi_judge *judge, tdmi_feed *feed, const struct tdmi_batch *batch,
                           struct tdmi_judgement *judgements, float *probabilities, tdm_error *err)
{
    if (!brings(judge))
        return tdmi_judge_batch(judge, batch, judgements, probabilities, NULL, err);
    take_batch(judge, batch, judgements, probabilities, NULL);
    TDM_TRY(tdmi_pool_run(judge->pool, 1, queue_task, judge, err), err, "judging");
    tdm_status status = tdmi_judge_settle(judge, err); /* its pictures have all been copied */
    const struct tdmi_batch *next = status == TDM_OK ? tdmi_feed_look_ahead(feed) : NULL;
    if (next && !next->rows)
        status = bring_piece(judge, next->pixels, next->n, 0, err);
    const tdm_status ended = end_last(judge, status == TDM_OK ? err : NULL);
    return status == TDM_OK ? ended : status;
}
