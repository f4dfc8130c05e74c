/*
 * Binding a plan to memory and running it, node by node.
 */
#include "graph/executor.h"
#include "base/clock.h"
#include "base/memory.h"
#include "graph/staging.h"
#include "tensor/floats.h"

#include <assert.h>

struct tdmi_executor {
    const tdmi_plan *plan;
    tdmi_device *device;
    tdmi_stream *stream;
    char *memory;          /* tdmi_plan_bytes on the device */
    int most_images;       /* that it has room for */
    tdmi_staging *staging; /* NULL on the host */
    const tdmi_feature_table *kept;
    struct tdmi_group given; /* by the caller */
    struct tdmi_group group; /* the same as kernels find it */
    int total_images;        /* that share statistics with the group; 0: it has its own */
    const void *packed;
    struct tdmi_profile profile; /* arrays NULL: off */
    tdmi_lane *const *lanes;     /* of the threads that run it; NULL: not traced */
};

static void *at(const tdmi_executor *executor, struct tdmi_buffer buffer)
{
    if (!buffer.bytes)
        return NULL;
    if (!buffer.is_by_image)
        return executor->memory + buffer.offset;
    return executor->memory + tdmi_plan_bytes(executor->plan, 0) +
           (size_t)executor->most_images * buffer.offset;
}

tdm_status tdmi_executor_open(const tdmi_plan *plan, tdmi_device *device, tdmi_executor **executor,
                              tdm_error *err)
{
    return tdmi_executor_open_for(plan, device, plan->max_images, executor, err);
}

tdm_status tdmi_executor_open_for(const tdmi_plan *plan, tdmi_device *device, int n,
                                  tdmi_executor **executor, tdm_error *err)
{
    const size_t bytes = tdmi_plan_bytes(plan, n);
    TDMI_AT_END(tdmi_executor_close_at) tdmi_executor *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    made->plan = plan;
    made->device = device;
    TDMI_TRY(plan->backend->stream.open(device, &made->stream, err));
    made->most_images = n;
    made->memory = plan->backend->memory.alloc(device, bytes);
    if (!made->memory)
        return TDM_FAIL(err, TDM_E_MEMORY,
                        "reserving %zu MiB for %d images of activations: out of memory; a "
                        "smaller --shard or --size needs less",
                        bytes >> 20, n);
    if (plan->staging.bytes)
        TDMI_TRY(tdmi_staging_open(
            plan, device, at(made, plan->staging),
            plan->first_node > 0 ? at(made, plan->nodes[plan->first_node - 1].y) : NULL,
            &made->staging, err));
    *executor = tdmi_take(&made);
    return TDM_OK;
}

void tdmi_executor_close(tdmi_executor *executor)
{
    if (!executor)
        return;
    if (executor->staging) /* what failed on the way has left work that reads its memory */
        (void)executor->plan->backend->stream.wait(executor->stream, NULL);
    tdmi_staging_close(executor->staging);
    if (executor->memory)
        executor->plan->backend->memory.free(executor->device, executor->memory);
    if (executor->stream)
        executor->plan->backend->stream.close(executor->stream);
    tdmi_free(executor);
}

tdmi_stream *tdmi_executor_stream(const tdmi_executor *executor)
{
    return executor->stream;
}

bool tdmi_executor_can_prefetch(const tdmi_executor *executor)
{
    return executor->staging != NULL;
}

tdm_status tdmi_executor_prefetch(tdmi_executor *executor, const uint8_t *pictures, int n,
                                  tdm_error *err)
{
    return tdmi_staging_prefetch(executor->staging, pictures, n, err);
}

tdm_status tdmi_executor_await_prefetch(tdmi_executor *executor, tdm_error *err)
{
    return tdmi_executor_can_prefetch(executor)
               ? tdmi_staging_await_prefetch(executor->staging, err)
               : TDM_OK;
}

void tdmi_executor_keep(tdmi_executor *executor, const tdmi_feature_table *kept)
{
    executor->kept = kept;
}

void tdmi_executor_use(tdmi_executor *executor, const void *packed)
{
    executor->packed = packed;
}

void tdmi_executor_profile(tdmi_executor *executor, const struct tdmi_profile *profile)
{
    executor->profile = profile ? *profile : (struct tdmi_profile){0};
}

void tdmi_executor_trace(tdmi_executor *executor, tdmi_lane *const *lanes)
{
    executor->lanes = lanes;
}

/* The gradient of the node's output, which may lie in another's. */
static float *dy_at(const tdmi_executor *executor, int node)
{
    const struct tdmi_node_plan *nodes = executor->plan->nodes;
    return at(executor, nodes[nodes[node].dy_of].dy);
}

static struct tdmi_norm norm_of(const tdmi_executor *executor, struct tdmi_values values, int index)
{
    const tdmi_graph *graph = executor->plan->graph;
    const struct tdmi_node *node = &graph->nodes[index];
    struct tdmi_norm norm =
        tdmi_norm_at(at(executor, executor->plan->nodes[index].saved), node->out.c);
    norm.centre = values.states + graph->states[node->first_state].offset;
    norm.total = executor->total_images ? norm.total : norm.sums;
    norm.total_images = executor->total_images ? executor->total_images : executor->group.n;
    return norm;
}

/* The input of the node. */
static void take_inputs(const tdmi_executor *executor, struct tdmi_values values, int index,
                        struct tdmi_op_call *call)
{
    const tdmi_plan *plan = executor->plan;
    const struct tdmi_node_plan *it = &plan->nodes[index];
    for (int k = 0; k < plan->graph->nodes[index].n_inputs; k++) {
        call->x[k] = at(executor, plan->nodes[it->in[k].node].y);
        if (it->in[k].norm >= 0 && !it->is_virtual)
            call->in_norm[k] = norm_of(executor, values, it->in[k].norm);
    }
    if (it->residual >= 0)
        call->residual = at(executor, plan->nodes[it->residual].y);
    if (plan->graph->nodes[index].kind == TDMI_OP_BATCH_NORM && it->desc.is_training)
        call->norm = norm_of(executor, values, index);
    else if (it->norm >= 0 && it->desc.is_training)
        call->norm = norm_of(executor, values, it->norm);
    if (it->packed_bytes)
        call->packed = (const char *)executor->packed + it->packed_offset;
}

static struct tdmi_op_call call_of(const tdmi_executor *executor, struct tdmi_values values,
                                   int index, float *sums)
{
    const tdmi_graph *graph = executor->plan->graph;
    const struct tdmi_node *node = &graph->nodes[index];
    const struct tdmi_node_plan *it = &executor->plan->nodes[index];
    struct tdmi_op_call call = {
        .n = executor->group.n,
        .y = at(executor, it->y),
        .dy = dy_at(executor, index),
        .saved = at(executor, it->saved),
        .pixels = executor->group.pixels,
        .changes = executor->group.changes,
        .labels = executor->group.labels,
        .mixed = executor->group.mixed,
        .judgements = executor->group.judgements,
        .class_weights = executor->group.class_weights,
        .draws = executor->group.draws,
        .loss_scale = executor->group.loss_scale,
    };
    take_inputs(executor, values, index, &call);
    if (it->desc.fusion.reads_gradient_form)
        call.dy = dy_at(executor, it->norm);
    for (int i = 0; i < node->n_params; i++) {
        int64_t offset = graph->params[node->first_param + i].offset;
        call.params[i] = values.params + offset;
        call.dparams[i] = sums ? sums + offset : NULL;
    }
    for (int i = 0; i < node->n_states; i++) {
        int64_t offset = graph->states[node->first_state + i].offset;
        call.states[i] = values.states + offset;
        call.state_sums[i] = sums ? sums + tdmi_graph_state_sums_at(graph) + offset : NULL;
    }
    return call;
}

/* The places of the gradients of the node's inputs. A kernel that cannot add writes to the spill.
 */
static void give_gradients(const tdmi_executor *executor, int index, struct tdmi_op_call *call)
{
    const tdmi_plan *plan = executor->plan;
    const struct tdmi_node_plan *it = &plan->nodes[index];
    for (int k = 0; k < tdmi_plan_reads(plan, index); k++) {
        int at_node = tdmi_gradient_of(it->in[k]);
        const struct tdmi_node_plan *target = &plan->nodes[at_node];
        if (!target->has_backward || it->is_virtual)
            continue;
        call->dx[k] = dy_at(executor, at_node);
        if (it->in[k].norm >= 0 && target->last_writer == index)
            call->dx_sums[k] = call->in_norm[k].sums;
        if (target->first_writer == index)
            continue;
        if (it->kernel->adds_dx)
            call->dx_add[k] = call->dx[k];
        else
            call->dx[k] = at(executor, it->spill[k]);
    }
}

static bool is_trained_norm(const tdmi_plan *plan, int node)
{
    return plan->nodes[node].desc.is_training &&
           plan->graph->nodes[node].kind == TDMI_OP_BATCH_NORM;
}

/* A run of nodes by one thread, or by one member of a team. */
struct run {
    const tdmi_executor *executor;
    struct tdmi_values values;
    float *sums;
    const struct tdmi_member *member;
    tdmi_lane *lane; /* of this thread; NULL: not traced */
};

static struct run begin_run(const tdmi_executor *executor, struct tdmi_values values, float *sums,
                            const struct tdmi_member *member)
{
    tdmi_lane *lane = executor->lanes ? executor->lanes[member ? member->index : 0] : NULL;
    return (struct run){executor, values, sums, member, lane};
}

static void run_kernel(const struct run *run, int index, tdmi_kernel_run *kernel,
                       enum tdmi_sharing sharing, struct tdmi_buffer workspace)
{
    const tdmi_executor *executor = run->executor;
    struct tdmi_op_call call = call_of(executor, run->values, index, run->sums);
    call.workspace = at(executor, workspace);
    call.member = run->member;
    tdmi_kernel_run_shared(kernel, sharing, executor->stream, &executor->plan->nodes[index].desc,
                           &call);
    tdmi_member_wait(run->member);
}

/* Compute the sums of a batch norm, unless it is virtual and the conv before it has taken them. */
static void reduce_forward(const struct run *run, int index)
{
    const struct tdmi_node_plan *nodes = run->executor->plan->nodes, *it = &nodes[index];
    if (!it->desc.keeps_statistics &&
        !(it->is_virtual && nodes[it->in[0].node].desc.fusion.gives_sums))
        run_kernel(run, index, it->kernel->reduce_forward, it->kernel->shares_forward,
                   it->forward_workspace);
}

/* All links of the chain that ends here. */
static void run_chain(const struct run *run, int last)
{
    const tdmi_executor *executor = run->executor;
    const struct tdmi_node_plan *nodes = executor->plan->nodes;
    const struct tdmi_op_desc *descs[TDMI_CHAIN_LINKS];
    struct tdmi_op_call calls[TDMI_CHAIN_LINKS];
    int links[TDMI_CHAIN_LINKS], n = tdmi_chain_links(executor->plan, last, links);
    for (int i = 0; i < n; i++) {
        descs[i] = &nodes[links[i]].desc;
        calls[i] = call_of(executor, run->values, links[i], NULL);
    }
    calls[n - 1].workspace = at(executor, nodes[last].forward_workspace);
    calls[n - 1].member = run->member;
    nodes[last].kernel->chain->forward(executor->stream, descs, calls, n);
    tdmi_member_wait(run->member);
}

/* The last writer of a virtual norm's gradient has taken its sums too. */
static void reduce_backward(const struct run *run, int index)
{
    const struct tdmi_node_plan *it = &run->executor->plan->nodes[index];
    if (!it->is_virtual)
        run_kernel(run, index, it->kernel->reduce_backward, it->kernel->shares_backward,
                   it->backward_workspace);
}

/* Add a gradient that was written to the side. */
static void add_spill(const struct run *run, int index, int k, const float *spill)
{
    const tdmi_executor *executor = run->executor;
    const tdmi_plan *plan = executor->plan;
    const struct tdmi_node_plan *it = &plan->nodes[index];
    const int64_t values =
        executor->group.n * tdmi_shape_values(tdmi_plan_shape_read(plan, index, k));
    const size_t bytes = tdmi_dtype_bytes(it->desc.storage);
    enum { unit = 1024 };
    const struct tdmi_share units = tdmi_member_share(run->member, (values + unit - 1) / unit);
    const int64_t first = units.first * unit;
    const int64_t end = units.end * unit < values ? units.end * unit : values;
    if (first < end)
        plan->backend->update->accumulate(executor->stream, it->desc.storage,
                                          (char *)dy_at(executor, tdmi_gradient_of(it->in[k])) +
                                              (size_t)first * bytes,
                                          (const char *)spill + (size_t)first * bytes, end - first);
    tdmi_member_wait(run->member);
}

static void run_backward(const struct run *run, int index)
{
    const tdmi_executor *executor = run->executor;
    const struct tdmi_node_plan *it = &executor->plan->nodes[index];
    struct tdmi_op_call call = call_of(executor, run->values, index, run->sums);
    call.workspace = at(executor, it->backward_workspace);
    call.member = run->member;
    give_gradients(executor, index, &call);
    tdmi_kernel_run_shared(it->kernel->backward, it->kernel->shares_backward, executor->stream,
                           &it->desc, &call);
    tdmi_member_wait(run->member);
    for (int k = 0; k < tdmi_plan_reads(executor->plan, index); k++)
        if (call.dx[k] && call.dx[k] == at(executor, it->spill[k]))
            add_spill(run, index, k, call.dx[k]);
}

/* Add loss and counts to the sums that are reduced; in inference the caller downloads them. */
static void end_forward(const tdmi_executor *executor, float *sums)
{
    const tdmi_plan *plan = executor->plan;
    const struct tdmi_group *group = &executor->group;
    if (plan->is_training)
        plan->backend->update->tail(executor->stream, group->judgements, group->labels,
                                    group->mixed, group->n, sums + tdmi_graph_tail_at(plan->graph));
}

tdm_status tdmi_executor_fetch_evaluations(const tdmi_executor *executor, tdm_error *err)
{
    const struct tdmi_group *group = &executor->group;
    if (!executor->staging || !group->labels)
        return TDM_OK; /* they are in the caller's memory already */
    return TDM_WRAP(err,
                    executor->plan->backend->memory.download(
                        executor->stream, executor->given.judgements, group->judgements,
                        (size_t)group->n * sizeof *group->judgements, err),
                    "downloading losses and predictions");
}

static int64_t start_clock(const struct run *run)
{
    return run->executor->profile.forward_s || run->lane ? tdmi_clock_ns() : 0;
}

static int in_a_row(const tdmi_executor *executor)
{
    return executor->profile.in_a_row > 0 ? executor->profile.in_a_row : 1;
}

static void stop_clock(const struct run *run, enum tdmi_trace_kind kind, int node, int64_t begin)
{
    const tdmi_executor *executor = run->executor;
    double *seconds =
        kind == TDMI_TRACE_FORWARD ? executor->profile.forward_s : executor->profile.backward_s;
    tdmi_lane_end(run->lane, kind, node, begin);
    if (!seconds)
        return;
    if (!executor->plan->backend->device.is_host) /* else it is done */
        (void)executor->plan->backend->stream.wait(executor->stream,
                                                   NULL); /* a failure shows at the next use */
    seconds[node] += tdmi_clock_seconds_since(begin) / in_a_row(executor);
}

/* One node, and the sums of the batch norm that comes next: after `index` in forward. */
static void step_forward(const struct run *run, int index)
{
    const tdmi_executor *executor = run->executor;
    const tdmi_plan *plan = executor->plan;
    const struct tdmi_node_plan *it = &plan->nodes[index];
    const bool is_silent =
        it->n_links <= 1 && (tdmi_plan_is_silent(plan, index) || it->chained_by >= 0);
    int64_t begin = start_clock(run);
    for (int i = 0; i < in_a_row(executor) && !is_silent; i++)
        if (it->n_links > 1)
            run_chain(run, index);
        else
            run_kernel(run, index, it->kernel->forward, it->kernel->shares_forward,
                       it->forward_workspace);
    if (!is_silent)
        stop_clock(run, TDMI_TRACE_FORWARD, index, begin);
    if (index + 1 >= plan->graph->n_nodes || !is_trained_norm(plan, index + 1))
        return;
    begin = start_clock(run);
    for (int i = 0; i < in_a_row(executor); i++)
        reduce_forward(run, index + 1);
    stop_clock(run, TDMI_TRACE_FORWARD, index + 1, begin);
}

static void step_backward(const struct run *run, int index)
{
    const tdmi_executor *executor = run->executor;
    const tdmi_plan *plan = executor->plan;
    const bool is_silent = !plan->nodes[index].has_backward || tdmi_plan_is_silent(plan, index);
    int64_t begin = start_clock(run);
    for (int i = 0; i < in_a_row(executor) && !is_silent; i++)
        run_backward(run, index);
    if (!is_silent)
        stop_clock(run, TDMI_TRACE_BACKWARD, index, begin);
    if (index == 0 || !is_trained_norm(plan, index - 1) || !plan->nodes[index - 1].has_backward)
        return;
    begin = start_clock(run);
    for (int i = 0; i < in_a_row(executor); i++)
        reduce_backward(run, index - 1);
    stop_clock(run, TDMI_TRACE_BACKWARD, index - 1, begin);
}

void tdmi_executor_begin(tdmi_executor *executor, const struct tdmi_group *group, int total_images)
{
    assert(group->n <= executor->most_images);
    executor->given = *group;
    executor->group =
        executor->staging ? tdmi_staging_fill(executor->staging, executor->stream, group) : *group;
    executor->total_images = total_images;
    if (group->rows)
        tdmi_feature_table_await(executor->kept, executor->stream);
}

int tdmi_executor_forward_end(const tdmi_plan *plan, int node)
{
    while (node + 1 < plan->graph->n_nodes && !is_trained_norm(plan, node + 1))
        node++;
    return node;
}

int tdmi_executor_backward_end(const tdmi_plan *plan, int node, int lowest)
{
    while (node > lowest && !is_trained_norm(plan, node - 1))
        node--;
    return node;
}

/* Put the cached features in the place of the missing nodes' output. On a device they are there
 * already, or are gathered from its feature table: the first work of a group that may be recorded,
 * because its three addresses never change. */
static void take_rows(const struct run *run)
{
    const tdmi_executor *executor = run->executor;
    const tdmi_plan *plan = executor->plan;
    const size_t bytes = tdmi_plan_sample_bytes(plan);
    char *y = at(executor, plan->nodes[plan->first_node - 1].y);
    if (executor->group.rows)
        tdmi_feature_table_gather(executor->kept, executor->stream, executor->group.rows,
                                  executor->group.n, y);
    if (executor->staging)
        return;
    const struct tdmi_share mine = tdmi_member_share(run->member, executor->group.n);
    for (int64_t i = mine.first; i < mine.end; i++) /* a failure shows at the next wait */
        (void)plan->backend->memory.upload(executor->stream, y + (size_t)i * bytes,
                                           executor->given.pixels[i], bytes, NULL);
    tdmi_member_wait(run->member);
}

void tdmi_executor_forward_part(tdmi_executor *executor, struct tdmi_values values, int first,
                                int last, float *sums, const struct tdmi_member *member)
{
    const tdmi_plan *plan = executor->plan;
    const struct run run = begin_run(executor, values, sums, member);
    if (first == 0 && plan->first_node > 0)
        take_rows(&run);
    for (int i = first; i <= last; i++)
        step_forward(&run, i);
    if (last + 1 == plan->graph->n_nodes && tdmi_member_is_first(member))
        end_forward(executor, sums);
}

void tdmi_executor_backward_part(tdmi_executor *executor, struct tdmi_values values, int first,
                                 int last, float *sums, const struct tdmi_member *member)
{
    const struct run run = begin_run(executor, values, sums, member);
    for (int i = first; i >= last; i--)
        step_backward(&run, i);
}

void tdmi_executor_forward(tdmi_executor *executor, struct tdmi_values values,
                           const struct tdmi_group *group, float *sums)
{
    tdmi_executor_begin(executor, group, 0);
    tdmi_executor_forward_part(executor, values, 0, executor->plan->graph->n_nodes - 1, sums, NULL);
}

void tdmi_executor_backward(tdmi_executor *executor, struct tdmi_values values, int segment,
                            float *sums, const struct tdmi_member *member)
{
    const struct tdmi_segment *range = &executor->plan->segments[segment];
    tdmi_executor_backward_part(executor, values, range->first_node, range->last_node, sums,
                                member);
}

void tdmi_executor_measure(tdmi_executor *executor, struct tdmi_values values,
                           const struct tdmi_group *group, int first, double *sums)
{
    const tdmi_graph *graph = executor->plan->graph;
    const struct run run = begin_run(executor, values, NULL, NULL);
    tdmi_executor_begin(executor, group, 0);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tdmi_node_plan *it = &executor->plan->nodes[i];
        if (i >= first && graph->nodes[i].kind == TDMI_OP_BATCH_NORM) {
            struct tdmi_op_call call = call_of(executor, values, i, NULL);
            call.norm = (struct tdmi_norm){.centre = call.states[0], .sums = sums};
            it->kernel->reduce_forward(executor->stream, &it->desc, &call);
            sums += 2 * (int64_t)graph->nodes[i].out.c;
        }
        step_forward(&run, i);
    }
}

static struct tdmi_norm sums_at(const tdmi_executor *executor, int node)
{
    return tdmi_norm_at(at(executor, executor->plan->nodes[node].saved),
                        executor->plan->graph->nodes[node].out.c);
}

const double *tdmi_executor_norm_sums(const tdmi_executor *executor, int node)
{
    return sums_at(executor, node).sums;
}

double *tdmi_executor_norm_total(const tdmi_executor *executor, int node)
{
    return sums_at(executor, node).total;
}

/* The node that computes what the last one gives. */
static int last_of(const tdmi_plan *plan)
{
    const int last = plan->graph->n_nodes - 1, leader = plan->nodes[last].computed_by;
    return leader >= 0 ? leader : last;
}

/* n values of that type, as floats: they come to the end of the room for those. */
static tdm_status fetch(const tdmi_executor *executor, enum tdmi_dtype type, const void *from,
                        int64_t n, float *to, tdm_error *err)
{
    const struct tdmi_backend *backend = executor->plan->backend;
    const size_t bytes = tdmi_dtype_bytes(type) * (size_t)n;
    char *raw = (char *)(to + n) - bytes;
    TDM_TRY(backend->memory.download(executor->stream, raw, from, bytes, err), err,
            "downloading the output of the network");
    TDM_TRY(backend->stream.wait(executor->stream, err), err,
            "downloading the output of the network");
    if (type != TDMI_DTYPE_F32)
        tdmi_floats_load(type, to, raw, n);
    return TDM_OK;
}

tdm_status tdmi_executor_fetch_output(const tdmi_executor *executor, int n, float *to,
                                      tdm_error *err)
{
    const tdmi_graph *graph = executor->plan->graph;
    const int last = last_of(executor->plan);
    const bool is_output = tdmi_op_of(graph->nodes[last].kind)->is_output;
    return fetch(executor, is_output ? TDMI_DTYPE_F32 : executor->plan->storage,
                 at(executor, executor->plan->nodes[last].y),
                 n * tdmi_shape_values(graph->nodes[graph->n_nodes - 1].out), to, err);
}

tdm_status tdmi_executor_fetch_logits(const tdmi_executor *executor, int n, float *to,
                                      tdm_error *err)
{
    return fetch(executor, executor->plan->storage, tdmi_executor_logits(executor),
                 (int64_t)n * tdmi_graph_logits(executor->plan->graph), to, err);
}

const float *tdmi_executor_logits(const tdmi_executor *executor)
{
    const tdmi_plan *plan = executor->plan;
    return at(executor, plan->nodes[plan->nodes[plan->graph->n_nodes - 1].in[0].node].y);
}
