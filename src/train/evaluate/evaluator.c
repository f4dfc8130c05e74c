/*
 * Batches through inference executors. The images of a batch do not influence each other here, so
 * how they are divided (cut.h) does not change results.
 */
#include "train/evaluate/evaluator.h"
#include "base/clock.h"
#include "base/scope.h"
#include "graph/packed.h"
#include "train/evaluate/cut.h"

struct tdmi_evaluator {
    const tdmi_plan *plan;
    tdmi_device *device;
    tdmi_pool *pool;
    int n_executors; /* on the host: of a thread, or of a team */
    tdmi_executor **executors;
    tdmi_team **teams;         /* NULL on a device */
    struct tdmi_team_log *log; /* NULL: nothing is measured */
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
    struct tdmi_cut cut;    /* on the host */
    struct tdmi_piece last; /* queued and not fetched; never on the host */

    /* Prefetched images: of that batch (NULL: none), from that one on. */
    const uint8_t *prefetched;
    int prefetched_first;
};

static int executors_of(const tdmi_plan *plan, int max_batch, int n_threads)
{
    if (!plan->backend->device.is_host)
        return 1; /* queued on by one thread */
    return n_threads > max_batch ? max_batch : n_threads;
}

/* Images that an executor runs at most. */
static int images_of(const tdmi_plan *plan, int max_batch, int n_threads)
{
    return plan->backend->device.is_host ? tdmi_cut_most(max_batch, n_threads, plan->max_images)
                                         : plan->max_images;
}

int64_t tdmi_evaluator_needs(const tdmi_plan *plan, int max_batch, int n_threads)
{
    return executors_of(plan, max_batch, n_threads) *
               (int64_t)tdmi_plan_bytes(plan, images_of(plan, max_batch, n_threads)) +
           (int64_t)plan->packed_bytes;
}

/* Operations of an image between two waits that are worth a member of a team: about 10 µs. */
static const double member_operations = 4e5;

int tdmi_evaluator_team(const tdmi_graph *graph, const struct tdmi_backend *backend, int n_threads)
{
    const int most = backend->device.is_host ? tdmi_team_largest(n_threads) : 1;
    double operations = 0.0;
    int n_waits = 1;
    for (int i = 0; i < graph->n_nodes; i++) {
        const enum tdmi_op_kind kind = graph->nodes[i].kind;
        operations += tdmi_node_flops(&graph->nodes[i]);
        n_waits +=
            kind == TDMI_OP_CONV || kind == TDMI_OP_DENSE; /* the others are fused or small */
    }
    const double worth = operations / (n_waits * member_operations);
    return worth >= most ? most : worth > 1.0 ? (int)worth : 1;
}

static tdm_status open_all(tdmi_evaluator *it, int max_batch, tdm_error *err)
{
    const int images = images_of(it->plan, max_batch, tdmi_pool_threads(it->pool));
    TDMI_TRY(TDMI_NEW(it->executors, it->n_executors, err));
    TDMI_TRY(TDMI_NEW(it->pixels, max_batch, err));
    TDMI_TRY(TDMI_NEW(it->labels, max_batch, err));
    TDMI_TRY(tdmi_packed_open(it->plan, it->device, &it->packed, err));
    if (it->plan->backend->device.is_host)
        TDMI_TRY(TDMI_NEW(it->teams, it->n_executors, err));
    for (int i = 0; it->teams && i < it->n_executors; i++)
        TDMI_TRY(tdmi_team_new(&it->teams[i], err));
    for (int i = 0; i < it->n_executors; i++) {
        TDM_TRY(tdmi_executor_open_for(it->plan, it->device, images, &it->executors[i], err), err,
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

void tdmi_evaluator_measure(tdmi_evaluator *evaluator, struct tdmi_team_log *log)
{
    evaluator->log = log;
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
    for (int i = 0; evaluator->teams && i < evaluator->n_executors; i++)
        tdmi_team_free(evaluator->teams[i]);
    tdmi_free(evaluator->teams);
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

static void begin_piece(tdmi_evaluator *evaluator, tdmi_executor *executor, struct tdmi_piece piece)
{
    const int first = piece.first;
    const bool is_prefetched = !evaluator->rows && evaluator->prefetched &&
                               evaluator->prefetched == evaluator->batch &&
                               evaluator->prefetched_first == first;
    tdmi_executor_begin(
        executor,
        &(struct tdmi_group){.n = piece.n,
                             .pixels = evaluator->pixels + first,
                             .is_on_device = evaluator->is_on_device,
                             .rows = evaluator->rows ? evaluator->rows + first : NULL,
                             .prefetched = is_prefetched ? evaluator->pixels[first] : NULL,
                             .labels = evaluator->judgements ? evaluator->labels + first : NULL,
                             .judgements =
                                 evaluator->judgements ? evaluator->judgements + first : NULL},
        0);
}

static void compute_piece(tdmi_evaluator *evaluator, tdmi_executor *executor,
                          const struct tdmi_member *member)
{
    tdmi_executor_forward_part(executor, evaluator->values, 0, evaluator->plan->graph->n_nodes - 1,
                               NULL, member);
}

static tdm_status finish_piece(tdmi_evaluator *evaluator, tdmi_executor *executor,
                               struct tdmi_piece piece, tdm_error *err)
{
    const int n = piece.n;
    const tdmi_graph *graph = evaluator->plan->graph;
    const size_t classes = (size_t)tdmi_shape_values(graph->nodes[graph->n_nodes - 1].out);
    const size_t at = (size_t)piece.first * classes;
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

/* ---- on the host ----------------------------------------------------------------------------- */

static tdm_status run_alone(void *self, int index, int worker, tdm_error *err)
{
    tdmi_evaluator *evaluator = self;
    tdmi_executor *executor = evaluator->executors[worker];
    const struct tdmi_piece piece = tdmi_cut_piece(&evaluator->cut, index);
    const int64_t begin = evaluator->log ? tdmi_clock_thread_ns() : 0;
    begin_piece(evaluator, executor, piece);
    compute_piece(evaluator, executor, NULL);
    if (evaluator->log)
        tdmi_team_log_alone(evaluator->log, begin);
    return finish_piece(evaluator, executor, piece, err);
}

/* Team k computes images k, k + n_teams, … of those that are left. Only the first member fails, at
 * the end. */
static tdm_status run_together(void *self, int thread, int worker TDMI_UNUSED, tdm_error *err)
{
    tdmi_evaluator *evaluator = self;
    const struct tdmi_division *of = &evaluator->cut.division;
    const int team = tdmi_division_team_of(of, thread);
    const struct tdmi_member seat =
        tdmi_team_join(evaluator->teams[team], thread - tdmi_division_first(of, team));
    const struct tdmi_member *member = seat.size > 1 ? &seat : NULL;
    tdmi_executor *executor = evaluator->executors[team];
    tdm_status status = TDM_OK;
    for (int i = of->n_alone + team; i < evaluator->n; i += of->n_teams) {
        const struct tdmi_piece image = {i, 1};
        if (tdmi_member_is_first(member))
            begin_piece(evaluator, executor, image);
        tdmi_member_wait(member);
        compute_piece(evaluator, executor, member);
        if (tdmi_member_is_first(member) && status == TDM_OK)
            status = finish_piece(evaluator, executor, image, err);
    }
    tdmi_team_leave(&seat);
    return status;
}

static tdm_status run_on_host(tdmi_evaluator *evaluator, tdm_error *err)
{
    const tdmi_plan *plan = evaluator->plan;
    evaluator->cut =
        tdmi_cut_of(evaluator->n, tdmi_pool_threads(evaluator->pool), plan->max_images, plan->team);
    const struct tdmi_division *of = &evaluator->cut.division;
    for (int i = 0; i < of->n_teams; i++)
        tdmi_team_form(evaluator->teams[i],
                       tdmi_division_first(of, i + 1) - tdmi_division_first(of, i),
                       tdmi_pool_may_spin(evaluator->pool), evaluator->log);
    TDMI_TRY(tdmi_pool_run(evaluator->pool, evaluator->cut.n_pieces, run_alone, evaluator, err));
    return of->n_teams == 0
               ? TDM_OK
               : tdmi_pool_run_all(evaluator->pool, of->n_threads, run_together, evaluator, err);
}

/* ---- on a device with memory of its own ------------------------------------------------------ */

static bool can_prefetch(const tdmi_evaluator *evaluator)
{
    return tdmi_executor_can_prefetch(evaluator->executors[0]);
}

/* The piece of a batch of n that begins at `first`. */
static struct tdmi_piece piece_at(const tdmi_evaluator *evaluator, int first, int n)
{
    const int most = evaluator->plan->max_images, left = n - first;
    return (struct tdmi_piece){first, left < most ? left : most};
}

static tdm_status prefetch_piece(tdmi_evaluator *evaluator, const uint8_t *batch, int n, int first,
                                 tdm_error *err)
{
    const struct tdmi_piece piece = piece_at(evaluator, first, n);
    evaluator->prefetched = NULL;
    if (piece.n <= 0 || !can_prefetch(evaluator))
        return TDM_OK;
    TDM_TRY(tdmi_executor_prefetch(evaluator->executors[0],
                                   batch + (size_t)first * tdmi_plan_sample_bytes(evaluator->plan),
                                   piece.n, err),
            err, "copying images to the device");
    evaluator->prefetched = batch;
    evaluator->prefetched_first = first;
    return TDM_OK;
}

/* Compute all pieces, and fetch all but the last; each one's successor is uploaded meanwhile. */
static tdm_status queue_task(void *self, int index, int worker, tdm_error *err)
{
    tdmi_evaluator *evaluator = self;
    tdmi_executor *executor = evaluator->executors[0];
    const int size = evaluator->plan->max_images;
    (void)index;
    (void)worker;
    for (int first = 0; first < evaluator->n; first += size) {
        const struct tdmi_piece piece = piece_at(evaluator, first, evaluator->n);
        begin_piece(evaluator, executor, piece);
        compute_piece(evaluator, executor, NULL);
        evaluator->prefetched = NULL;
        evaluator->last = piece;
        if (first + size >= evaluator->n)
            break;
        if (!evaluator->rows && !evaluator->is_on_device)
            TDMI_TRY(prefetch_piece(evaluator, evaluator->batch, evaluator->n, first + size, err));
        TDMI_TRY(finish_piece(evaluator, executor, piece, err));
    }
    return TDM_OK;
}

static tdm_status finish_last(tdmi_evaluator *evaluator, tdm_error *err)
{
    return evaluator->n > 0 ? finish_piece(evaluator, evaluator->executors[0], evaluator->last, err)
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
        return run_on_host(evaluator, err);
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
        status = prefetch_piece(evaluator, next->pixels, next->n, 0, err);
    const tdm_status ended = finish_last(evaluator, status == TDM_OK ? err : NULL);
    return status == TDM_OK ? ended : status;
}
