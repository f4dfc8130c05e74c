/*
 * Batches through inference executors. The images of a batch do not influence each other here, so
 * the chunks that threads take of it do not change results.
 */
#include "train/evaluate/evaluator.h"
#include "base/scope.h"
#include "graph/packed.h"

struct tdmi_evaluator {
    const tdmi_plan *plan;
    tdmi_device *device;
    tdmi_pool *pool;
    int n_executors;
    tdmi_executor **executors;
    tdmi_packed *packed;
    struct tdmi_values values;
    const uint8_t **pixels; /* by position */
    int32_t *labels;        /* 0 for skipped images, whose judgement is ignored */

    /* of the current batch */
    int n;
    const uint8_t *batch; /* its images, side by side */
    bool is_on_device;    /* they lie on the device */
    const int64_t *rows;  /* or the numbers of its rows, which are kept on the device */
    struct tdmi_judgement *judgements;
    float *probabilities, *logits;
    int last; /* first image of the chunk that is queued and not fetched; never on the host */

    /* Prefetched images: of that batch (NULL: none), from that one on. */
    const uint8_t *prefetched;
    int prefetched_first;
};

static int executors_of(const tdmi_plan *plan, int max_batch, int n_threads)
{
    if (!plan->backend->device.is_host)
        return 1; /* queued on by one thread */
    const int chunks = (max_batch + plan->max_images - 1) / plan->max_images;
    return n_threads > chunks ? chunks : n_threads;
}

int64_t tdmi_evaluator_needs(const tdmi_plan *plan, int max_batch, int n_threads)
{
    return executors_of(plan, max_batch, n_threads) * (int64_t)plan->arena_bytes +
           (int64_t)plan->packed_bytes;
}

static tdm_status open_all(tdmi_evaluator *it, int max_batch, tdm_error *err)
{
    TDMI_TRY(TDMI_NEW(it->executors, it->n_executors, err));
    TDMI_TRY(TDMI_NEW(it->pixels, max_batch, err));
    TDMI_TRY(TDMI_NEW(it->labels, max_batch, err));
    TDMI_TRY(tdmi_packed_open(it->plan, it->device, &it->packed, err));
    for (int i = 0; i < it->n_executors; i++) {
        TDM_TRY(tdmi_executor_open(it->plan, it->device, &it->executors[i], err), err,
                "preparing thread %d of %d for evaluation", i + 1, it->n_executors);
        tdmi_executor_use(it->executors[i], tdmi_packed_memory(it->packed));
    }
    return TDM_OK;
}

tdm_status tdmi_evaluator_open(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                               int max_batch, tdmi_evaluator **evaluator, tdm_error *err)
{
    tdmi_evaluator *made;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    *made = (tdmi_evaluator){.plan = plan,
                             .device = device,
                             .pool = pool,
                             .n_executors = executors_of(plan, max_batch, tdmi_pool_threads(pool))};
    const tdm_status status = open_all(made, max_batch, err);
    if (status == TDM_OK)
        *evaluator = made;
    else
        tdmi_evaluator_close(made);
    return status;
}

void tdmi_evaluator_keep(tdmi_evaluator *evaluator, const tdmi_feature_table *kept)
{
    for (int i = 0; i < evaluator->n_executors; i++)
        tdmi_executor_keep(evaluator->executors[i], kept);
}

void tdmi_evaluator_close(tdmi_evaluator *evaluator)
{
    if (!evaluator)
        return;
    for (int i = 0; evaluator->executors && i < evaluator->n_executors; i++)
        tdmi_executor_close(evaluator->executors[i]);
    tdmi_packed_close(evaluator->packed);
    tdmi_free(evaluator->executors);
    tdmi_free(evaluator->pixels);
    tdmi_free(evaluator->labels);
    tdmi_free(evaluator);
}

/* One number that decides between two classes is the second one's logit, and its negative the
 * first's: the logistic function gives the probabilities of both. From the end, because the pairs
 * are written over the single ones. */
static void pair_logits(float *logits, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        const float second = logits[i];
        logits[2 * i] = -second;
        logits[2 * i + 1] = second;
    }
}

/* Even a small batch uses every executor. */
static int chunk_images(const tdmi_evaluator *evaluator)
{
    const int each = (evaluator->n + evaluator->n_executors - 1) / evaluator->n_executors;
    return each < evaluator->plan->max_images ? each : evaluator->plan->max_images;
}

/* Images of the chunk that begins there. */
static int chunk_at(const tdmi_evaluator *evaluator, int first)
{
    const int size = chunk_images(evaluator), left = evaluator->n - first;
    return left < size ? left : size;
}

static void start_chunk(tdmi_evaluator *evaluator, tdmi_executor *executor, int first)
{
    const bool is_prefetched = !evaluator->rows && evaluator->prefetched &&
                               evaluator->prefetched == evaluator->batch &&
                               evaluator->prefetched_first == first;
    tdmi_executor_forward(
        executor, evaluator->values,
        &(struct tdmi_shard){.n = chunk_at(evaluator, first),
                             .pixels = evaluator->pixels + first,
                             .is_on_device = evaluator->is_on_device,
                             .rows = evaluator->rows ? evaluator->rows + first : NULL,
                             .prefetched = is_prefetched ? evaluator->pixels[first] : NULL,
                             .labels = evaluator->judgements ? evaluator->labels + first : NULL,
                             .judgements =
                                 evaluator->judgements ? evaluator->judgements + first : NULL},
        NULL);
}

static tdm_status finish_chunk(tdmi_evaluator *evaluator, tdmi_executor *executor, int first,
                               tdm_error *err)
{
    const int n = chunk_at(evaluator, first);
    const tdmi_graph *graph = evaluator->plan->graph;
    const size_t classes = (size_t)tdmi_shape_values(graph->nodes[graph->n_nodes - 1].out);
    const size_t at = (size_t)first * classes;
    TDM_TRY(tdmi_executor_fetch_evaluations(executor, err), err, "evaluating %d images", n);
    if (evaluator->probabilities)
        TDM_TRY(tdmi_executor_fetch_output(executor, n, evaluator->probabilities + at, err), err,
                "evaluating %d images", n);
    if (evaluator->logits)
        TDM_TRY(tdmi_executor_fetch_logits(executor, n, evaluator->logits + at, err), err,
                "evaluating %d images", n);
    TDMI_TRY(evaluator->plan->backend->stream.wait(tdmi_executor_stream(executor), err));
    if (evaluator->logits && (size_t)tdmi_graph_logits(graph) < classes)
        pair_logits(evaluator->logits + at, n);
    return TDM_OK;
}

/* Executor `index` evaluates chunks index, index + n_executors, … */
static tdm_status evaluate_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_evaluator *evaluator = self;
    const int size = chunk_images(evaluator);
    (void)worker;
    for (int first = index * size; first < evaluator->n; first += evaluator->n_executors * size) {
        start_chunk(evaluator, evaluator->executors[index], first);
        TDMI_TRY(finish_chunk(evaluator, evaluator->executors[index], first, err));
    }
    return TDM_OK;
}

/* ---- on a device with memory of its own ------------------------------------------------------ */

static bool can_prefetch(const tdmi_evaluator *evaluator)
{
    return tdmi_executor_can_prefetch(evaluator->executors[0]);
}

/* Upload the chunk of a batch of n that begins at `first`. */
static tdm_status prefetch_chunk(tdmi_evaluator *evaluator, const uint8_t *batch, int n, int first,
                                 tdm_error *err)
{
    const int most = evaluator->plan->max_images, left = n - first;
    evaluator->prefetched = NULL;
    if (left <= 0 || !can_prefetch(evaluator))
        return TDM_OK;
    TDM_TRY(tdmi_executor_prefetch(evaluator->executors[0],
                                   batch + (size_t)first * tdmi_plan_sample_bytes(evaluator->plan),
                                   left < most ? left : most, err),
            err, "copying images to the device");
    evaluator->prefetched = batch;
    evaluator->prefetched_first = first;
    return TDM_OK;
}

/* Compute all chunks, and fetch all but the last; each one's successor is uploaded meanwhile. */
static tdm_status queue_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_evaluator *evaluator = self;
    const int size = chunk_images(evaluator);
    (void)index;
    (void)worker;
    for (int first = 0; first < evaluator->n; first += size) {
        start_chunk(evaluator, evaluator->executors[0], first);
        evaluator->prefetched = NULL;
        evaluator->last = first;
        if (first + size >= evaluator->n)
            break;
        if (!evaluator->rows && !evaluator->is_on_device)
            TDMI_TRY(prefetch_chunk(evaluator, evaluator->batch, evaluator->n, first + size, err));
        TDMI_TRY(finish_chunk(evaluator, evaluator->executors[0], first, err));
    }
    return TDM_OK;
}

static tdm_status finish_last(tdmi_evaluator *evaluator, tdm_error *err)
{
    return evaluator->n > 0 ? finish_chunk(evaluator, evaluator->executors[0], evaluator->last, err)
                            : TDM_OK;
}

tdm_status tdmi_evaluator_settle(tdmi_evaluator *evaluator, tdm_error *err)
{
    evaluator->prefetched = NULL;
    return tdmi_executor_await_prefetch(evaluator->executors[0], err);
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
            evaluator->pixels[p] =
                batch->pixels + (size_t)p * tdmi_plan_sample_bytes(evaluator->plan);
        evaluator->labels[p] = batch->labels[p] < 0 ? 0 : batch->labels[p];
    }
    evaluator->n = batch->n;
    evaluator->batch = batch->pixels;
    evaluator->is_on_device = batch->is_on_device;
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
        return tdmi_pool_run(evaluator->pool, evaluator->n_executors, evaluate_task, evaluator,
                             err);
    TDMI_TRY(tdmi_pool_run(evaluator->pool, 1, queue_task, evaluator, err));
    return finish_last(evaluator, err);
}

tdm_status tdmi_evaluator_feed(tdmi_evaluator *evaluator, tdmi_feed *feed,
                               const struct tdmi_batch *batch, struct tdmi_judgement *judgements,
                               float *probabilities, tdm_error *err)
{
    if (!can_prefetch(evaluator))
        return tdmi_evaluator_batch(evaluator, batch, judgements, probabilities, NULL, err);
    take_batch(evaluator, batch, judgements, probabilities, NULL);
    TDM_TRY(tdmi_pool_run(evaluator->pool, 1, queue_task, evaluator, err), err, "evaluating");
    /* All images of this batch have been copied once this returns. */
    tdm_status status = tdmi_evaluator_settle(evaluator, err);
    const struct tdmi_batch *next = status == TDM_OK ? tdmi_feed_look_ahead(feed) : NULL;
    if (next && !next->rows)
        status = prefetch_chunk(evaluator, next->pixels, next->n, 0, err);
    const tdm_status ended = finish_last(evaluator, status == TDM_OK ? err : NULL);
    return status == TDM_OK ? ended : status;
}
