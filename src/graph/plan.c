/*
 * Planning: descs, lifetimes, places, segments.
 */
#include "graph/plan.h"
#include "base/memory.h"
#include "graph/staging.h"

/* A segment closes when it holds this many gradients (1 MiB): enough to be worth sending. */
enum { segment_values = 256 * 1024 };

static int backward_time(const tdmi_graph *graph, int node)
{
    return 2 * graph->n_nodes - 1 - node;
}

/* Has this node, or any below it, parameters? Then its backward has something to do. */
static bool feeds_parameters(const tdmi_plan *plan, int node)
{
    const struct tdmi_node *it = &plan->graph->nodes[node];
    for (int k = 0; k < it->n_inputs; k++)
        if (plan->nodes[it->inputs[k]].has_backward)
            return true;
    return it->n_params > 0;
}

static tdm_status plan_node(tdmi_plan *plan, int index, tdm_error *err)
{
    const struct tdmi_node *node = &plan->graph->nodes[index];
    struct tdmi_node_plan *it = &plan->nodes[index];
    const bool is_training = index >= plan->first_trained;
    it->has_backward = is_training && feeds_parameters(plan, index);
    it->desc = (struct tdmi_op_desc){
        .kind = node->kind,
        .attrs = node->attrs,
        .out = node->out,
        .max_images = plan->max_images,
        .team = plan->team,
        .is_training = is_training,
        .storage = plan->storage,
        .allows_tf32 = plan->allows_tf32,
        .splits_products = plan->splits_products,
        .may_vary = plan->may_vary,
        .most_workspace = plan->most_workspace,
        .device = plan->device,
        .keeps_statistics =
            is_training && plan->keeps_statistics && node->kind == TDMI_OP_BATCH_NORM,
    };
    for (int k = 0; k < node->n_inputs; k++) {
        it->desc.in[k] = node->in[k];
        it->desc.wants_dx |= plan->nodes[node->inputs[k]].has_backward;
    }
    it->kernel = plan->backend->kernels[node->kind];
    if (index >= plan->first_node &&
        (!it->kernel || (it->kernel->can_run && !it->kernel->can_run(&it->desc))))
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "planning node '%s': the backend %s cannot run the op %s of this shape",
                        node->name, plan->backend->name, tdmi_op_name(node->kind));
    return TDM_OK;
}

bool tdmi_plan_is_silent(const tdmi_plan *plan, int index)
{
    const struct tdmi_node_plan *it = &plan->nodes[index];
    return index < plan->first_node || (it->is_virtual && !it->desc.fusion.is_virtual);
}

int tdmi_plan_reads(const tdmi_plan *plan, int index)
{
    const struct tdmi_node_plan *it = &plan->nodes[index];
    return plan->graph->nodes[index].n_inputs + (it->desc.is_training && it->residual >= 0);
}

size_t tdmi_plan_sample_bytes(const tdmi_plan *plan)
{
    const struct tdmi_node *nodes = plan->graph->nodes;
    if (plan->first_node == 0)
        return (size_t)tdmi_shape_values(nodes[0].out);
    return sizeof(float) * (size_t)tdmi_shape_values(nodes[plan->first_node - 1].out);
}

static size_t chain_workspace(const tdmi_plan *plan, int last)
{
    const struct tdmi_op_desc *descs[TDMI_CHAIN_LINKS];
    int links[TDMI_CHAIN_LINKS], n = tdmi_chain_links(plan, last, links);
    for (int i = 0; i < n; i++)
        descs[i] = &plan->nodes[links[i]].desc;
    return plan->nodes[last].kernel->chain->workspace_bytes(descs, n);
}

static tdm_status prepare(tdmi_plan *plan, tdm_error *err)
{
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        struct tdmi_node_plan *it = &plan->nodes[i];
        if (tdmi_plan_is_silent(plan, i))
            continue;
        if (it->kernel->prepare)
            TDM_TRY(it->kernel->prepare(&it->desc, &it->desc.prepared, err), err,
                    "preparing node '%s'", plan->graph->nodes[i].name);
        struct tdmi_kernel_needs needs = tdmi_kernel_needs_of(it->kernel, &it->desc);
        if (it->chained_by >= 0)
            needs.workspace_bytes = 0;
        else if (it->n_links > 1)
            needs.workspace_bytes = chain_workspace(plan, i);
        it->saved.bytes = needs.saved_bytes;
        it->forward_workspace.bytes = it->backward_workspace.bytes = needs.workspace_bytes;
        it->packed_bytes = needs.packed_bytes;
        it->packed_offset = plan->packed_bytes;
        plan->packed_bytes += (needs.packed_bytes + 63) / 64 * 64;
    }
    return TDM_OK;
}

/* Do activations lie by image? */
static bool is_by_image(const tdmi_plan *plan)
{
    return !plan->is_training && plan->backend->device.is_host;
}

static size_t images_of(const tdmi_plan *plan)
{
    return is_by_image(plan) ? 1 : (size_t)plan->max_images;
}

size_t tdmi_plan_bytes(const tdmi_plan *plan, int n)
{
    return plan->arena_bytes - (size_t)(plan->max_images - n) * plan->image_bytes;
}

static size_t activation_bytes(const tdmi_plan *plan, struct tdmi_shape shape)
{
    return tdmi_dtype_bytes(plan->storage) * images_of(plan) * (size_t)tdmi_shape_values(shape);
}

/* Probabilities are f32, whatever comes before them. */
static size_t y_bytes(const tdmi_plan *plan, int index)
{
    const struct tdmi_op_desc *desc = &plan->nodes[index].desc;
    if (tdmi_op_of(desc->kind)->is_output)
        return sizeof(float) * images_of(plan) * (size_t)tdmi_shape_values(desc->out);
    return activation_bytes(plan, tdmi_op_result(desc));
}

int tdmi_gradient_of(struct tdmi_node_source source)
{
    return source.norm >= 0 ? source.norm : source.node;
}

/* A residual is as large as what it is added to. */
struct tdmi_shape tdmi_plan_shape_read(const tdmi_plan *plan, int index, int k)
{
    const struct tdmi_node *node = &plan->graph->nodes[index];
    return k < node->n_inputs ? node->in[k] : node->out;
}

static void extend(struct tdmi_buffer *buffer, int until)
{
    buffer->last = until > buffer->last ? until : buffer->last;
}

/* The buffers of node `index`, and the lifetimes that it needs of its inputs. */
static void live(tdmi_plan *plan, int index)
{
    const tdmi_graph *graph = plan->graph;
    struct tdmi_node_plan *it = &plan->nodes[index];
    const struct tdmi_op *op = tdmi_op_of(graph->nodes[index].kind);
    const int backward = backward_time(graph, index);
    if (index + 1 == plan->first_node) /* what is given from outside */
        it->y = (struct tdmi_buffer){activation_bytes(plan, it->desc.out), 0, index, index,
                                     is_by_image(plan)};
    if (tdmi_plan_is_silent(plan, index))
        return;
    bool is_norm = graph->nodes[index].kind == TDMI_OP_BATCH_NORM && it->desc.is_training;
    it->first_writer = it->last_writer = -1;
    it->y = (struct tdmi_buffer){.first = index, .last = index, .is_by_image = is_by_image(plan)};
    if (!it->is_virtual && it->chained_by < 0)
        it->y.bytes = y_bytes(plan, index);
    if (it->has_backward && (op->backward_reads_y || it->desc.fusion.reads_gradient_form ||
                             (is_norm && it->desc.fusion.act != TDMI_ACT_NONE)))
        it->y.last = backward;
    if (is_norm)
        it->saved.bytes = tdmi_norm_bytes(graph->nodes[index].out.c);
    it->saved.first = index;
    it->saved.last = it->has_backward ? backward : index;
    it->forward_workspace.first = it->forward_workspace.last = index;
    it->backward_workspace.first = it->backward_workspace.last = backward;
    if (!it->has_backward)
        it->backward_workspace.bytes = 0;
}

/* The node reads: its sources live until then, and their gradients from its backward on. */
static void live_for(tdmi_plan *plan, int index)
{
    const tdmi_graph *graph = plan->graph;
    struct tdmi_node_plan *it = &plan->nodes[index];
    const struct tdmi_op *op = tdmi_op_of(graph->nodes[index].kind);
    const int backward = backward_time(graph, index);
    const int forward = it->chained_by >= 0 ? it->chained_by : index;
    if (tdmi_plan_is_silent(plan, index))
        return;
    if (it->residual >= 0)
        extend(&plan->nodes[it->residual].y, forward);
    if (it->desc.is_training && it->norm >= 0) { /* it fills the norm's sums, and reads its form */
        struct tdmi_node_plan *norm = &plan->nodes[it->norm];
        norm->saved.first = index;
        extend(&norm->saved, backward);
        extend(&norm->dy, backward);
    }
    for (int k = 0; k < tdmi_plan_reads(plan, index); k++) {
        const struct tdmi_node_source *in = &it->in[k];
        bool has_form = in->norm >= 0 || in->act != TDMI_ACT_NONE;
        bool is_input = k < graph->nodes[index].n_inputs;
        bool reads_again = it->has_backward && ((op->backward_reads_x && is_input) || has_form);
        extend(&plan->nodes[in->node].y, reads_again ? backward : forward);
        if (in->norm >= 0)
            extend(&plan->nodes[in->norm].saved, reads_again ? backward : index);
        struct tdmi_node_plan *target = &plan->nodes[tdmi_gradient_of(*in)];
        if (!it->has_backward || it->is_virtual || !target->has_backward)
            continue;
        if (index > target->first_writer)
            target->first_writer = index;
        if (target->last_writer < 0 || index < target->last_writer)
            target->last_writer = index;
    }
}

/* Gradients: each node's own, and a side buffer where a kernel cannot add to one. */
static void live_backward(tdmi_plan *plan, int index)
{
    const tdmi_graph *graph = plan->graph;
    struct tdmi_node_plan *it = &plan->nodes[index];
    const int backward = backward_time(graph, index);
    if (tdmi_plan_is_silent(plan, index))
        return;
    if (it->first_writer >= 0) {
        int until = it->dy.last > backward ? it->dy.last : backward;
        it->dy = (struct tdmi_buffer){activation_bytes(plan, tdmi_op_result(&it->desc)), 0,
                                      backward_time(graph, it->first_writer), until, false};
    }
    const int n_reads = it->has_backward && !it->is_virtual ? tdmi_plan_reads(plan, index) : 0;
    for (int k = 0; k < n_reads; k++) {
        const struct tdmi_node_plan *target = &plan->nodes[tdmi_gradient_of(it->in[k])];
        size_t bytes = activation_bytes(plan, tdmi_plan_shape_read(plan, index, k));
        bool adds = target->has_backward && target->first_writer != index;
        if (adds && !it->kernel->adds_dx)
            it->spill[k] = (struct tdmi_buffer){bytes, 0, backward, backward, false};
    }
}

static tdm_status place(tdmi_plan *plan, tdm_error *err)
{
    int n = plan->graph->n_nodes;
    struct tdmi_buffer **buffers =
        tdmi_arena_alloc(&plan->arena, (5 + TDMI_OP_INPUTS) * (size_t)n + 1, sizeof *buffers);
    if (!buffers)
        return TDM_FAIL(err, TDM_E_MEMORY, "placing buffers: out of memory");
    int count = 0;
    for (int i = 0; i < n; i++)
        buffers[count++] = &plan->nodes[i].y;
    const int n_apart = is_by_image(plan) ? count : 0;
    for (int i = 0; i < n; i++) {
        struct tdmi_node_plan *it = &plan->nodes[i];
        buffers[count++] = &it->dy;
        buffers[count++] = &it->saved;
        buffers[count++] = &it->forward_workspace;
        buffers[count++] = &it->backward_workspace;
        for (int k = 0; k < TDMI_OP_INPUTS; k++)
            buffers[count++] = &it->spill[k];
    }
    for (int i = 0; i < n; i++)
        live(plan, i);
    for (int i = 0; i < n; i++)
        live_for(plan, i);
    for (int i = 0; i < n; i++)
        live_backward(plan, i);
    tdmi_share_gradients(plan);
    plan->staging = (struct tdmi_buffer){tdmi_staging_bytes(plan), 0, 0, 2 * n, false};
    buffers[count++] = &plan->staging;
    plan->image_bytes = tdmi_place_buffers(buffers, n_apart);
    plan->arena_bytes = tdmi_place_buffers(buffers + n_apart, count - n_apart) +
                        (size_t)plan->max_images * plan->image_bytes;
    return TDM_OK;
}

/* From the last node down; each segment's gradients lie right before those of the one before. The
 * lowest node with a backward is the first trained one with parameters; where nothing has
 * parameters, one segment covers all. */
static void cut_segments(tdmi_plan *plan)
{
    const tdmi_graph *graph = plan->graph;
    int64_t end = tdmi_graph_sums_values(graph);
    int first_node = graph->n_nodes - 1, lowest = 0;
    while (lowest < first_node && !plan->nodes[lowest].has_backward)
        lowest++;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct tdmi_node *node = &graph->nodes[i];
        bool is_lowest = i == lowest;
        int64_t begin = node->n_params ? graph->params[node->first_param].offset
                        : is_lowest    ? 0
                                       : end;
        if (is_lowest || end - begin >= segment_values) {
            plan->segments[plan->n_segments++] =
                (struct tdmi_segment){first_node, i, begin, end - begin};
            end = begin;
            first_node = i - 1;
        }
        if (is_lowest)
            break;
    }
}

/* One past the last node with parameters: training must begin before it. */
static int end_of_parameters(const tdmi_graph *graph)
{
    int end = graph->n_nodes;
    while (end > 0 && graph->nodes[end - 1].n_params == 0)
        end--;
    return end;
}

/* Everything from first_node on reads only the node before it, or nodes that are run. */
static tdm_status check_freeze_point(const tdmi_graph *graph,
                                     const struct tdmi_plan_options *request, tdm_error *err)
{
    const int first = request->first_node;
    if (first == 0)
        return TDM_OK;
    if (first < 0 || first >= graph->n_nodes ||
        (request->is_training && request->first_trained < first))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "nodes 1 to %d may begin it, and what is trained must lie behind",
                        graph->n_nodes - 1);
    for (int i = first; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] < first - 1)
                return TDM_FAIL(
                    err, TDM_E_USAGE,
                    "node '%s' reads '%s', which is not the node before the freeze point",
                    graph->nodes[i].name, graph->nodes[graph->nodes[i].inputs[k]].name);
    return TDM_OK;
}

tdm_status tdmi_plan_make(const tdmi_graph *graph, const struct tdmi_backend *backend,
                          const struct tdmi_plan_options *request, tdmi_plan **plan, tdm_error *err)
{
    if (request->is_training && request->first_trained > 0 &&
        request->first_trained >= end_of_parameters(graph))
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "planning training with %d of %d nodes frozen: nothing with weights is left "
            "to train; at most %d are accepted",
            request->first_trained, graph->n_nodes, end_of_parameters(graph) - 1);
    TDM_TRY(check_freeze_point(graph, request, err), err, "planning a network from node %d on",
            request->first_node);
    if (!tdmi_backend_stores(backend, request->storage))
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "planning a network with activations stored as %s: the backend %s has no "
                        "kernels for it",
                        tdmi_dtype_name(request->storage), backend->name);
    TDMI_AT_END(tdmi_plan_free_at) tdmi_plan *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    tdmi_arena_init(&made->arena, 0);
    made->graph = graph;
    made->backend = backend;
    made->max_images = request->max_images;
    made->team = request->team > 0 ? request->team : 1;
    made->is_training = request->is_training;
    made->storage = request->storage;
    made->allows_tf32 = request->allows_tf32;
    made->splits_products = request->splits_products;
    made->may_vary = request->may_vary;
    made->most_workspace = request->most_workspace;
    made->device = request->device;
    made->is_apart = request->is_apart;
    made->first_node = request->first_node;
    made->keeps_statistics = request->keeps_statistics;
    made->first_trained = request->is_training ? request->first_trained : graph->n_nodes;
    size_t n = (size_t)graph->n_nodes;
    made->nodes = tdmi_arena_alloc(&made->arena, n, sizeof *made->nodes);
    made->segments = tdmi_arena_alloc(&made->arena, n, sizeof *made->segments);
    if (!made->nodes || !made->segments)
        return TDM_FAIL(err, TDM_E_MEMORY, "planning a network of %d nodes: out of memory",
                        graph->n_nodes);
    for (int i = 0; i < graph->n_nodes; i++)
        TDMI_TRY(plan_node(made, i, err));
    tdmi_fuse(made);
    tdmi_chain(made);
    TDMI_TRY(prepare(made, err));
    TDMI_TRY(place(made, err));
    if (request->is_training)
        cut_segments(made);
    *plan = tdmi_take(&made);
    return TDM_OK;
}

tdm_status tdmi_plan_new(const tdmi_graph *graph, const struct tdmi_backend *backend,
                         int max_images, bool is_training, tdmi_plan **plan, tdm_error *err)
{
    const struct tdmi_plan_options request = {.max_images = max_images, .is_training = is_training};
    return tdmi_plan_make(graph, backend, &request, plan, err);
}

double tdmi_plan_node_operations(const tdmi_plan *plan, int index)
{
    const struct tdmi_node *node = &plan->graph->nodes[index];
    const struct tdmi_node_plan *it = &plan->nodes[index];
    int passes = 1;
    if (it->has_backward)
        passes += (node->n_params > 0) + it->desc.wants_dx;
    return passes * tdmi_node_flops(node);
}

void tdmi_plan_free(tdmi_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; plan->nodes && i < plan->graph->n_nodes; i++)
        if (plan->nodes[i].desc.prepared)
            plan->nodes[i].kernel->release(plan->nodes[i].desc.prepared);
    tdmi_arena_release(&plan->arena);
    tdmi_free(plan);
}
