/*
 * Batches through inference lanes. Images do not see each other here, so how they are cut into
 * pieces for the threads changes nothing.
 */
#include "train/evaluate/evaluator.h"
#include "base/memory.h"
#include "graph/packed.h"

struct tdmi_evaluator {
    const tdmi_plan *plan;
    tdmi_device *device;
    tdmi_pool *pool;
    int n_lanes;
    tdmi_executor **lanes;
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

int64_t tdmi_evaluator_needs(const tdmi_plan *plan, int max_batch, int n_threads)
{
    return lanes_of(plan, max_batch, n_threads) * (int64_t)plan->arena_bytes +
           (int64_t)plan->packed_bytes;
}

tdm_status tdmi_evaluator_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                               int max_batch, tdmi_evaluator **evaluator, tdm_error *err)
{
    tdmi_evaluator *made = tdmi_alloc(1, sizeof *made);
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
        status = TDM_WRAP(err, tdmi_executor_open(plan, device, &made->lanes[i], err),
                          "preparing thread %d of %d for judging", i + 1, made->n_lanes);
        if (status == TDM_OK)
            tdmi_executor_use(made->lanes[i], tdmi_packed_memory(made->packed));
    }
    if (status != TDM_OK) {
        tdmi_evaluator_close(made);
        return status;
    }
    *evaluator = made;
    return TDM_OK;
}

void tdmi_evaluator_keep(tdmi_evaluator *evaluator, const tdmi_feature_table *kept)
{
    for (int i = 0; i < evaluator->n_lanes; i++)
        tdmi_executor_keep(evaluator->lanes[i], kept);
}

void tdmi_evaluator_close(tdmi_evaluator *evaluator)
{
    if (!evaluator)
        return;
    for (int i = 0; evaluator->lanes && i < evaluator->n_lanes; i++)
        tdmi_executor_close(evaluator->lanes[i]);
    tdmi_packed_close(evaluator->packed);
    tdmi_free(evaluator->lanes);
    tdmi_free(evaluator->pixels);
    tdmi_free(evaluator->labels);
    tdmi_free(evaluator);
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
static int piece_images(const tdmi_evaluator *evaluator)
{
    const int each = (evaluator->n + evaluator->n_lanes - 1) / evaluator->n_lanes;
    return each < evaluator->plan->max_images ? each : evaluator->plan->max_images;
}

static int piece_at(const tdmi_evaluator *evaluator, int first)
{
    const int size = piece_images(evaluator), left = evaluator->n - first;
    return left < size ? left : size;
}

static size_t image_bytes(const tdmi_evaluator *evaluator)
{
    return tdmi_plan_sample_bytes(evaluator->plan);
}

static void begin_piece(tdmi_evaluator *evaluator, tdmi_executor *lane, int first)
{
    const bool is_prefetched = !evaluator->rows && evaluator->coming &&
                               evaluator->coming == evaluator->batch &&
                               evaluator->coming_first == first;
    tdmi_executor_forward(
        lane, evaluator->values,
        &(struct tdmi_shard){
            .n = piece_at(evaluator, first),
            .pixels = evaluator->pixels + first,
            .rows = evaluator->rows ? evaluator->rows + first : NULL,
            .prefetched =
                is_prefetched ? evaluator->batch + (size_t)first * image_bytes(evaluator) : NULL,
            .labels = evaluator->judgements ? evaluator->labels + first : NULL,
            .judgements = evaluator->judgements ? evaluator->judgements + first : NULL},
        NULL);
}

static tdm_status end_piece(tdmi_evaluator *evaluator, tdmi_executor *lane, int first,
                            tdm_error *err)
{
    const int n = piece_at(evaluator, first);
    const tdmi_graph *graph = evaluator->plan->graph;
    size_t classes = (size_t)tdmi_shape_values(graph->nodes[graph->n_nodes - 1].out);
    float *logits = evaluator->logits ? evaluator->logits + (size_t)first * classes : NULL;
    size_t outputs = logits ? (size_t)tdmi_graph_logits(graph) : 0;
    TDM_TRY(tdmi_executor_fetch_evaluations(lane, err), err, "judging %d pictures", n);
    if (evaluator->probabilities)
        TDM_TRY(tdmi_executor_fetch_output(lane, n,
                                           evaluator->probabilities + (size_t)first * classes, err),
                err, "judging %d pictures", n);
    if (logits)
        TDM_TRY(tdmi_executor_fetch_logits(lane, n, logits, err), err, "judging %d pictures", n);
    tdm_status status = evaluator->plan->backend->stream.wait(tdmi_executor_stream(lane), err);
    if (status == TDM_OK && logits && outputs < classes)
        pair_logits(logits, n);
    return status;
}

/* Every n_lanes-th piece, beginning with the lane's own. */
static tdm_status lane_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_evaluator *evaluator = self;
    int size = piece_images(evaluator);
    tdm_status status = TDM_OK;
    (void)worker;
    for (int first = index * size; first < evaluator->n && status == TDM_OK;
         first += evaluator->n_lanes * size) {
        begin_piece(evaluator, evaluator->lanes[index], first);
        status = end_piece(evaluator, evaluator->lanes[index], first, err);
    }
    return status;
}

/* ---- on a device whose memory is not the host's --------------------------------------------- */

static bool brings(const tdmi_evaluator *evaluator)
{
    return tdmi_executor_can_prefetch(evaluator->lanes[0]);
}

/* Of a batch of n, the piece that begins there; of rows that are there nothing is to be brought. */
static tdm_status prefetch_piece(tdmi_evaluator *evaluator, const uint8_t *batch, int n, int first,
                                 tdm_error *err)
{
    const int most = evaluator->plan->max_images, left = n - first;
    evaluator->coming = NULL;
    if (left <= 0 || !brings(evaluator))
        return TDM_OK;
    TDM_TRY(tdmi_executor_prefetch(evaluator->lanes[0],
                                   batch + (size_t)first * image_bytes(evaluator),
                                   left < most ? left : most, err),
            err, "bringing pictures to the device");
    evaluator->coming = batch;
    evaluator->coming_first = first;
    return TDM_OK;
}

/* All pieces but the end of the last; the next one's pictures come while one is computed. */
static tdm_status queue_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_evaluator *evaluator = self;
    tdmi_executor *lane = evaluator->lanes[0];
    (void)index;
    (void)worker;
    for (int first = 0; first < evaluator->n; first += piece_images(evaluator)) {
        begin_piece(evaluator, lane, first);
        evaluator->coming = NULL;
        evaluator->last = first;
        if (first + piece_images(evaluator) >= evaluator->n)
            break;
        if (!evaluator->rows)
            TDM_TRY(prefetch_piece(evaluator, evaluator->batch, evaluator->n,
                                   first + piece_images(evaluator), err),
                    err, "judging %d pictures", evaluator->n);
        TDM_TRY(end_piece(evaluator, lane, first, err), err, "judging %d pictures", evaluator->n);
    }
    return TDM_OK;
}

static tdm_status end_last(tdmi_evaluator *evaluator, tdm_error *err)
{
    return evaluator->n > 0 ? end_piece(evaluator, evaluator->lanes[0], evaluator->last, err)
                            : TDM_OK;
}

tdm_status tdmi_evaluator_settle(tdmi_evaluator *evaluator, tdm_error *err)
{
    evaluator->coming = NULL;
    return tdmi_executor_await_prefetch(evaluator->lanes[0], err);
}

tdm_status tdmi_evaluator_take(tdmi_evaluator *evaluator, struct tdmi_values values, tdm_error *err)
{
    evaluator->values = values;
    return tdmi_packed_fill(evaluator->packed, values, 0, evaluator->pool, err);
}

static void take_batch(tdmi_evaluator *evaluator, const struct tdmi_batch *batch,
                       struct tdmi_judgement *judgements, float *probabilities, float *logits)
{
    for (int p = 0; p < batch->n; p++) {
        if (!batch->rows)
            evaluator->pixels[p] = batch->pixels + (size_t)p * image_bytes(evaluator);
        evaluator->labels[p] = batch->labels[p] < 0 ? 0 : batch->labels[p];
    }
    evaluator->n = batch->n;
    evaluator->batch = batch->pixels;
    evaluator->rows = batch->rows;
    evaluator->judgements = judgements;
    evaluator->probabilities = probabilities;
    evaluator->logits = logits;
}

tdm_status tdmi_evaluator_batch(tdmi_evaluator *evaluator, const struct tdmi_batch *batch,
                                struct tdmi_judgement *judgements, float *probabilities,
                                float *logits, tdm_error *err)
{
    take_batch(evaluator, batch, judgements, probabilities, logits);
    if (evaluator->plan->backend->device.is_host)
        return tdmi_pool_run(evaluator->pool, evaluator->n_lanes, lane_task, evaluator, err);
    const tdm_status status = tdmi_pool_run(evaluator->pool, 1, queue_task, evaluator, err);
    return status == TDM_OK ? end_last(evaluator, err) : status;
}

tdm_status tdmi_evaluator_feed(tdmi_evaluator *evaluator, tdmi_feed *feed,
                               const struct tdmi_batch *batch, struct tdmi_judgement *judgements,
                               float *probabilities, tdm_error *err)
{
    if (!brings(evaluator))
        return tdmi_evaluator_batch(evaluator, batch, judgements, probabilities, NULL, err);
    take_batch(evaluator, batch, judgements, probabilities, NULL);
    TDM_TRY(tdmi_pool_run(evaluator->pool, 1, queue_task, evaluator, err), err, "judging");
    tdm_status status =
        tdmi_evaluator_settle(evaluator, err); /* its pictures have all been copied */
    const struct tdmi_batch *next = status == TDM_OK ? tdmi_feed_look_ahead(feed) : NULL;
    if (next && !next->rows)
        status = prefetch_piece(evaluator, next->pixels, next->n, 0, err);
    const tdm_status ended = end_last(evaluator, status == TDM_OK ? err : NULL);
    return status == TDM_OK ? ended : status;
}
