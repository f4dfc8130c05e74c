/*
 * Every different shape is run by all threads at once, each on memory of its own, over and over;
 * the best time of each thread counts, since what disturbs a run only makes it longer. A GPU is
 * given one thread.
 */
#include "tune/bench_ceiling.h"
#include "base/clock.h"
#include "base/hash/rng.h"
#include "base/scope.h"
#include "tandem/event.h"
#include "tensor/floats.h"
#include "tune/bench_rate.h"

#include <float.h>
#include <string.h>

/* The memory of one thread, on the device. */
struct thread_state {
    tdmi_stream *stream;
    struct tdmi_op_call call;
    double forward_s, backward_s; /* the best */
};

struct ceiling {
    const struct tdmi_backend *backend;
    tdmi_device *device;
    tdmi_pool *pool;
    int threads, images, in_a_row;
    enum tdmi_dtype storage; /* type of the stored activations */

    /* of the current shape */
    struct tdmi_op_desc desc;
    const struct tdmi_kernel *kernel;
    bool has_backward;
    double seconds; /* to spend on it */
    const float *params[TDMI_OP_PARAMS];
    void *packed;
    struct thread_state *thread_states;
    void **memory; /* all blocks, to be freed */
    int n_memory;
};

enum { most_blocks = 8 }; /* of a thread, and as many that are shared */

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

static tdm_status block(struct ceiling *it, size_t bytes, void **memory, tdm_error *err)
{
    *memory = it->backend->memory.alloc(it->device, bytes ? bytes : 1);
    if (!*memory)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for %zu bytes on the device", bytes);
    it->memory[it->n_memory++] = *memory;
    return TDM_OK;
}

static tdm_status floats(struct ceiling *it, int64_t n, float **values, tdm_error *err)
{
    void *memory;
    TDMI_TRY(block(it, sizeof(float) * (size_t)n, &memory, err));
    *values = memory;
    return TDM_OK;
}

/* Values around 0, which repeat after a million: denormals and zeros would time something else. */
static tdm_status noise(struct ceiling *it, tdmi_stream *stream, enum tdmi_dtype type, int64_t n,
                        void **values, tdm_error *err)
{
    enum { period = 1 << 20 };
    TDMI_AT_END(tdmi_free_at) float *host = NULL;
    TDMI_AT_END(tdmi_free_at) float *stored = NULL;
    const int64_t once = n < period ? n : period;
    const size_t value = tdmi_dtype_bytes(type);
    tdmi_rng rng = tdmi_rng_at(1, TDMI_RNG_INIT, 0, (uint64_t)n);
    TDMI_TRY(TDMI_NEW(host, once, err));
    TDMI_TRY(TDMI_NEW(stored, once, err));
    TDMI_TRY(block(it, value * (size_t)n, values, err));
    for (int64_t i = 0; i < once; i++)
        host[i] = tdmi_rng_uniform(&rng, -0.5f, 0.5f);
    tdmi_floats_store(type, stored, host, once);
    for (int64_t i = 0; i < n; i += once) {
        char *const to = (char *)*values + (size_t)i * value;
        const int64_t left = n - i < once ? n - i : once;
        TDMI_TRY(it->backend->memory.upload(stream, to, stored, value * (size_t)left, err));
    }
    return it->backend->stream.wait(stream, err);
}

static tdm_status reserve_thread(struct ceiling *it, struct thread_state *state,
                                 struct tdmi_kernel_needs needs, const int64_t *n_params,
                                 tdm_error *err)
{
    struct tdmi_op_call *call = &state->call;
    const int64_t in = it->images * tdmi_shape_values(it->desc.in[0]);
    const int64_t out = it->images * tdmi_shape_values(it->desc.out);
    void *x, *y, *dy = NULL, *dx = NULL;
    TDMI_TRY(noise(it, state->stream, it->storage, in, &x, err));
    TDMI_TRY(block(it, tdmi_dtype_bytes(it->storage) * (size_t)out, &y, err));
    TDMI_TRY(block(it, needs.saved_bytes, &call->saved, err));
    TDMI_TRY(block(it, needs.workspace_bytes, &call->workspace, err));
    if (it->has_backward)
        TDMI_TRY(noise(it, state->stream, it->storage, out, &dy, err));
    if (it->has_backward && it->desc.wants_dx)
        TDMI_TRY(block(it, tdmi_dtype_bytes(it->storage) * (size_t)in, &dx, err));
    for (int i = 0; i < TDMI_OP_PARAMS && n_params[i]; i++) {
        call->params[i] = it->params[i];
        TDMI_TRY(floats(it, n_params[i], &call->dparams[i], err));
    }
    call->n = it->images;
    call->x[0] = x;
    call->y = y;
    call->dy = dy;
    call->dx[0] = dx;
    call->packed = it->packed;
    return TDM_OK;
}

static tdm_status reserve(struct ceiling *it, const tdmi_graph *graph, const struct tdmi_node *node,
                          tdm_error *err)
{
    const struct tdmi_kernel_needs needs = tdmi_kernel_needs_of(it->kernel, &it->desc);
    struct tdmi_pack_call pack = {0};
    int64_t n_params[TDMI_OP_PARAMS] = {0};
    tdmi_stream *stream = it->thread_states[0].stream;
    for (int i = 0; i < node->n_params; i++) {
        void *values;
        n_params[i] = graph->params[node->first_param + i].n;
        TDMI_TRY(noise(it, stream, TDMI_DTYPE_F32, n_params[i], &values, err));
        it->params[i] = pack.params[i] = values;
    }
    it->packed = NULL;
    if (needs.packed_bytes) {
        TDMI_TRY(block(it, needs.packed_bytes, &it->packed, err));
        pack.packed = it->packed;
        it->kernel->pack(stream, &it->desc, &pack);
    }
    for (int i = 0; i < it->threads; i++)
        TDMI_TRY(reserve_thread(it, &it->thread_states[i], needs, n_params, err));
    return TDM_OK;
}

/* ---- running it ---------------------------------------------------------------------------- */

static tdm_status run_once(struct ceiling *it, struct thread_state *state, tdmi_kernel_run *run,
                           double *best, tdm_error *err)
{
    int64_t begin = tdmi_clock_ns();
    for (int i = 0; i < it->in_a_row; i++)
        run(state->stream, &it->desc, &state->call);
    tdm_status status = it->backend->stream.wait(state->stream, err);
    double took = tdmi_clock_seconds_since(begin) / it->in_a_row;
    if (took < *best)
        *best = took;
    return status;
}

static tdm_status run_thread(void *self, int index, int worker, tdm_error *err)
{
    enum { least_runs = 3 };
    struct ceiling *it = self;
    struct thread_state *state = &it->thread_states[index];
    int64_t begin = tdmi_clock_ns();
    (void)worker;
    state->forward_s = state->backward_s = DBL_MAX;
    for (int i = 0; i < least_runs ||
                    (tdmi_clock_seconds_since(begin) < it->seconds && !tdm_stop_is_requested());
         i++) {
        TDM_TRY(run_once(it, state, it->kernel->forward, &state->forward_s, err), err, "forward");
        if (it->has_backward)
            TDM_TRY(run_once(it, state, it->kernel->backward, &state->backward_s, err), err,
                    "backward");
    }
    if (!it->has_backward)
        state->backward_s = 0.0;
    return TDM_OK;
}

static tdm_status measure_shape(struct ceiling *it, const tdmi_plan *plan, int index, double *took,
                                tdm_error *err)
{
    const struct tdmi_node *node = &plan->graph->nodes[index];
    const struct tdmi_node_plan *of = &plan->nodes[index];
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
    tdm_status status =
        TDM_WRAP(err, reserve(it, plan->graph, node, err), "measuring %s alone", node->name);
    if (status == TDM_OK)
        status = tdmi_pool_run_all(it->pool, it->threads, run_thread, it, err);
    *took = 0.0;
    for (int i = 0; i < it->threads; i++) {
        *took += (it->thread_states[i].forward_s + it->thread_states[i].backward_s) / it->threads;
        it->thread_states[i].call = (struct tdmi_op_call){0};
    }
    while (it->n_memory > 0)
        it->backend->memory.free(it->device, it->memory[--it->n_memory]);
    if (it->desc.prepared)
        it->kernel->release(it->desc.prepared);
    return status;
}

/* How many nodes of the plan have the shape of node i; 0 unless i is the first of them. */
static int count_alike(const tdmi_plan *plan, int i)
{
    int n_alike = 0;
    for (int j = 0; j < plan->graph->n_nodes; j++) {
        const bool is_alike = is_same(&plan->nodes[i], &plan->nodes[j]);
        if (is_alike && j < i)
            return 0;
        n_alike += is_alike;
    }
    return is_counted(plan->graph->nodes[i].kind) ? n_alike : 0;
}

static tdm_status measure(struct ceiling *it, const tdmi_plan *plan, double seconds, double *sum,
                          tdm_error *err)
{
    int n_shapes = 0;
    for (int i = 0; i < plan->graph->n_nodes; i++)
        n_shapes += count_alike(plan, i) > 0;
    it->seconds = seconds / n_shapes;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const int n_alike = count_alike(plan, i);
        double took = 0.0;
        if (n_alike == 0)
            continue;
        TDM_TRY(measure_shape(it, plan, i, &took, err), err, "measuring the ceiling");
        *sum += n_alike * took;
        if (tdm_stop_is_requested())
            return TDM_FAIL(err, TDM_E_STOPPED, "stopped on request while measuring");
    }
    return TDM_OK;
}

static void release(struct ceiling *it)
{
    for (int i = 0; it->thread_states && i < it->threads; i++)
        it->backend->stream.close(it->thread_states[i].stream);
    tdmi_free(it->thread_states);
    tdmi_free(it->memory);
}

tdm_status tdmi_ceiling_measure(const tdmi_plan *plan, tdmi_device *device, tdmi_pool *pool,
                                int images, double seconds, double *images_per_s, tdm_error *err)
{
    const bool is_host = plan->backend->device.is_host;
    double group_seconds = 0.0;
    TDMI_AT_END(release)
    struct ceiling it = {.backend = plan->backend,
                         .device = device,
                         .pool = pool,
                         .threads = is_host ? tdmi_pool_threads(pool) : 1,
                         .in_a_row = is_host ? 1 : TDMI_BENCH_IN_A_ROW,
                         .images = images,
                         .storage = plan->storage};
    *images_per_s = 0.0;
    TDMI_TRY(TDMI_NEW(it.thread_states, it.threads, err));
    TDMI_TRY(TDMI_NEW(it.memory, most_blocks * (it.threads + 1), err));
    for (int i = 0; i < it.threads; i++)
        TDMI_TRY(it.backend->stream.open(device, &it.thread_states[i].stream, err));
    TDMI_TRY(measure(&it, plan, seconds, &group_seconds, err));
    if (group_seconds > 0.0)
        *images_per_s = (double)it.threads * images / group_seconds;
    return TDM_OK;
}
