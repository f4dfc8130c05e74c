/*
 * Every different shape is run by all threads at once, each on memory of its own, over and over;
 * the best time of each thread counts, since what disturbs a run only makes it longer.
 */
#include "tune/bench_ceiling.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/hash/rng.h"
#include "tandem/event.h"

#include <float.h>
#include <string.h>

/* What one thread works with, all on the device. */
struct hand {
    tdmi_stream *stream;
    struct tdmi_op_call call;
    double forward_s, backward_s; /* the best */
};

struct ceiling {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_pool *pool;
    int images;

    /* of the shape at hand */
    struct tdmi_op_desc desc;
    const struct tdmi_kernel *kernel;
    bool has_backward;
    double seconds; /* to spend on it */
    const float *params[TDMI_OP_PARAMS];
    void *packed;
    struct hand *hands;
    void **memory; /* all blocks, to be freed */
    int n_memory;
};

enum { most_blocks = 8 }; /* of a hand, and as many that are shared */

static bool is_counted(enum tdmi_op_kind kind)
{
    return kind == TDMI_OP_CONV || kind == TDMI_OP_DENSE;
}

static bool is_same(const struct tdmi_node_plan *a, const struct tdmi_node_plan *b)
{
    const struct tdmi_op_attrs *x = &a->desc.attrs, *y = &b->desc.attrs;
    return a->desc.kind == b->desc.kind && tdmi_shape_equal(a->desc.in[0], b->desc.in[0]) &&
           tdmi_shape_equal(a->desc.out, b->desc.out) && x->kernel == y->kernel &&
           x->stride == y->stride && x->dilation == y->dilation && x->groups == y->groups &&
           x->pad_top == y->pad_top && x->pad_left == y->pad_left && x->has_bias == y->has_bias &&
           a->desc.is_training == b->desc.is_training && a->has_backward == b->has_backward &&
           a->desc.fusion.pool == b->desc.fusion.pool && a->desc.wants_dx == b->desc.wants_dx;
}

/* ---- memory of one shape ------------------------------------------------------------------- */

static void *block(struct ceiling *it, size_t bytes)
{
    void *memory = it->backend->memory.alloc(it->device, bytes ? bytes : 1);
    if (memory)
        it->memory[it->n_memory++] = memory;
    return memory;
}

/* Values around 0 without pattern: denormals and zeros would time something else. */
static float *noise(struct ceiling *it, tdmi_stream *stream, int64_t n, tdm_error *err)
{
    size_t bytes = sizeof(float) * (size_t)n;
    float *host = tdmi_alloc((size_t)n, sizeof *host), *values = host ? block(it, bytes) : NULL;
    tdmi_rng rng = tdmi_rng_at(1, TDMI_RNG_INIT, 0, (uint64_t)n);
    for (int64_t i = 0; host && i < n; i++)
        host[i] = tdmi_rng_uniform(&rng, -0.5f, 0.5f);
    if (!values || it->backend->memory.upload(stream, values, host, bytes, err) != TDM_OK ||
        it->backend->stream.wait(stream, err) != TDM_OK)
        values = NULL;
    tdmi_free(host);
    return values;
}

static bool reserve_hand(struct ceiling *it, struct hand *hand, struct tdmi_kernel_needs needs,
                         const int64_t *n_params, tdm_error *err)
{
    struct tdmi_op_call *call = &hand->call;
    int64_t in = it->images * tdmi_shape_values(it->desc.in[0]);
    int64_t out = it->images * tdmi_shape_values(it->desc.out);
    call->n = it->images;
    call->x[0] = noise(it, hand->stream, in, err);
    call->y = block(it, sizeof(float) * (size_t)out);
    call->saved = block(it, needs.saved_bytes);
    call->workspace = block(it, needs.workspace_bytes);
    call->packed = it->packed;
    bool is_complete = call->x[0] && call->y && call->saved && call->workspace;
    if (it->has_backward) {
        call->dy = noise(it, hand->stream, out, err);
        is_complete = is_complete && call->dy;
        if (it->desc.wants_dx)
            is_complete = (call->dx[0] = block(it, sizeof(float) * (size_t)in)) && is_complete;
    }
    for (int i = 0; i < TDMI_OP_PARAMS && n_params[i]; i++) {
        call->params[i] = it->params[i];
        call->dparams[i] = block(it, sizeof(float) * (size_t)n_params[i]);
        is_complete = is_complete && call->dparams[i];
    }
    return is_complete;
}

static bool reserve(struct ceiling *it, const tdmi_graph *graph, const struct tdmi_node *node,
                    tdm_error *err)
{
    const struct tdmi_kernel_needs needs = tdmi_kernel_needs_of(it->kernel, &it->desc);
    struct tdmi_pack_call pack = {0};
    int64_t n_params[TDMI_OP_PARAMS] = {0};
    tdmi_stream *stream = it->hands[0].stream;
    bool is_complete = true;
    for (int i = 0; i < node->n_params; i++) {
        n_params[i] = graph->params[node->first_param + i].n;
        it->params[i] = pack.params[i] = noise(it, stream, n_params[i], err);
        is_complete = is_complete && it->params[i];
    }
    it->packed = NULL;
    if (needs.packed_bytes && is_complete) {
        it->packed = pack.packed = block(it, needs.packed_bytes);
        if (it->packed)
            it->kernel->pack(stream, &it->desc, &pack);
        is_complete = it->packed != NULL;
    }
    for (int i = 0; i < tdmi_pool_threads(it->pool) && is_complete; i++)
        is_complete = reserve_hand(it, &it->hands[i], needs, n_params, err);
    return is_complete;
}

/* ---- running it ---------------------------------------------------------------------------- */

static tdm_status run_once(struct ceiling *it, struct hand *hand, tdmi_kernel_run *run,
                           double *best, tdm_error *err)
{
    int64_t begin = tdmi_clock_ns();
    run(hand->stream, &it->desc, &hand->call);
    tdm_status status = it->backend->stream.wait(hand->stream, err);
    double took = tdmi_clock_seconds_since(begin);
    if (took < *best)
        *best = took;
    return status;
}

static tdm_status run_hand(void *self, int index, int worker, tdm_error *err)
{
    enum { least_runs = 3 };
    struct ceiling *it = self;
    struct hand *hand = &it->hands[index];
    int64_t begin = tdmi_clock_ns();
    (void)worker;
    hand->forward_s = hand->backward_s = DBL_MAX;
    for (int i = 0; i < least_runs || tdmi_clock_seconds_since(begin) < it->seconds; i++) {
        TDM_TRY(run_once(it, hand, it->kernel->forward, &hand->forward_s, err), err, "forward");
        if (it->has_backward)
            TDM_TRY(run_once(it, hand, it->kernel->backward, &hand->backward_s, err), err,
                    "backward");
    }
    if (!it->has_backward)
        hand->backward_s = 0.0;
    return TDM_OK;
}

static tdm_status measure_shape(struct ceiling *it, const tdmi_plan *plan, int index, double *took,
                                tdm_error *err)
{
    const struct tdmi_node *node = &plan->graph->nodes[index];
    const struct tdmi_node_plan *of = &plan->nodes[index];
    int threads = tdmi_pool_threads(it->pool);
    it->desc = of->desc;
    it->desc.fusion = (struct tdmi_op_fusion){0};
    if (of->desc.fusion.pool) { /* by far fewer products go backward then */
        it->desc.fusion.pool = of->desc.fusion.pool;
        it->desc.fusion.act = of->desc.fusion.act;
    }
    it->desc.prepared = NULL;
    it->desc.max_images = it->images;
    it->kernel = of->kernel;
    it->has_backward = of->has_backward;
    if (it->kernel->prepare)
        TDM_TRY(it->kernel->prepare(&it->desc, &it->desc.prepared, err), err, "preparing %s",
                node->name);
    tdm_status status = TDM_OK;
    if (!reserve(it, plan->graph, node, err))
        status = TDM_FAIL(err, TDM_E_MEMORY, "measuring %s alone on %d threads: out of memory",
                          node->name, threads);
    if (status == TDM_OK)
        status = tdmi_pool_run(it->pool, threads, run_hand, it, err);
    *took = 0.0;
    for (int i = 0; i < threads; i++) {
        *took += (it->hands[i].forward_s + it->hands[i].backward_s) / threads;
        it->hands[i].call = (struct tdmi_op_call){0};
    }
    while (it->n_memory > 0)
        it->backend->memory.free(it->device, it->memory[--it->n_memory]);
    if (it->desc.prepared)
        it->kernel->release(it->desc.prepared);
    return status;
}

static tdm_status measure(struct ceiling *it, const tdmi_plan *plan, double seconds, double *sum,
                          tdm_error *err)
{
    int n_shapes = 0;
    for (int round = 0; round < 2; round++) { /* count the shapes, then run them */
        for (int i = 0; i < plan->graph->n_nodes; i++) {
            if (!is_counted(plan->graph->nodes[i].kind))
                continue;
            int alike = 0;
            bool is_first = true;
            for (int j = 0; j < plan->graph->n_nodes; j++) {
                bool is_alike = is_same(&plan->nodes[i], &plan->nodes[j]);
                alike += is_alike;
                is_first = is_first && !(is_alike && j < i);
            }
            if (!is_first)
                continue;
            if (round == 0) {
                n_shapes++;
                continue;
            }
            double took = 0.0;
            it->seconds = seconds / n_shapes;
            TDM_TRY(measure_shape(it, plan, i, &took, err), err, "measuring the ceiling");
            *sum += alike * took;
            if (tdm_stop_is_requested())
                return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while measuring");
        }
    }
    return TDM_OK;
}

tdm_status tdmi_ceiling_measure(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                                int images, double seconds, double *shard_seconds, tdm_error *err)
{
    int threads = tdmi_pool_threads(pool);
    struct ceiling it = {
        .backend = plan->backend, .device = device, .pool = pool, .images = images};
    *shard_seconds = 0.0;
    it.hands = tdmi_alloc((size_t)threads, sizeof *it.hands);
    it.memory = tdmi_alloc(most_blocks * ((size_t)threads + 1), sizeof *it.memory);
    tdm_status status = TDM_OK;
    if (!it.hands || !it.memory)
        status = TDM_FAIL(err, TDM_E_MEMORY, "measuring the ceiling: out of memory");
    for (int i = 0; i < threads && status == TDM_OK; i++)
        status = it.backend->stream.open(device, &it.hands[i].stream, err);
    if (status == TDM_OK)
        status = measure(&it, plan, seconds, shard_seconds, err);
    for (int i = 0; it.hands && i < threads; i++)
        if (it.hands[i].stream)
            it.backend->stream.close(it.hands[i].stream);
    tdmi_free(it.hands);
    tdmi_free(it.memory);
    return status;
}
