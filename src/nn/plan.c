/*
 * Planning: descs, lifetimes, places, segments.
 */
#include "nn/plan.h"
#include "base/memory.h"

/* A segment closes when it holds this many gradients (1 MiB): enough to be worth sending. */
enum { segment_values = 256 * 1024 };

static int backward_time(const tdmi_graph *graph, int node)
{
    return 2 * graph->n_nodes - 1 - node;
}

/* Has this node, or any below it, parameters? Then its backward has something to do. */
static bool feeds_parameters(const tdmi_graph *graph, int node)
{
    for (int at = node;; at = graph->nodes[at].inputs[0]) {
        if (graph->nodes[at].n_params > 0)
            return true;
        if (graph->nodes[at].n_inputs == 0)
            return false;
    }
}

static tdm_status plan_node(tdmi_plan *plan, int index, tdm_error *err)
{
    const struct tdmi_node *node = &plan->graph->nodes[index];
    struct tdmi_node_plan *it = &plan->nodes[index];
    it->has_backward = plan->is_training && feeds_parameters(plan->graph, index);
    it->desc = (struct tdmi_op_desc){
        .kind = node->kind,
        .attrs = node->attrs,
        .in = {node->in[0]},
        .out = node->out,
        .max_images = plan->max_images,
        .is_training = plan->is_training,
        .wants_dx = it->has_backward && node->n_inputs > 0 &&
                    feeds_parameters(plan->graph, node->inputs[0]),
    };
    it->kernel = plan->backend->kernels[node->kind];
    if (!it->kernel || (it->kernel->can_run && !it->kernel->can_run(&it->desc)))
        return TDM_FAIL(err, TDM_E_ABSENT,
                        "planning node '%s': the backend %s cannot run the op %s of this shape",
                        node->name, plan->backend->name, tdmi_op_name(node->kind));
    return TDM_OK;
}

static size_t activation_bytes(const tdmi_plan *plan, struct tdmi_shape shape)
{
    return sizeof(float) * (size_t)plan->max_images * (size_t)tdmi_shape_values(shape);
}

/* Lifetimes of what node `index` writes, and what its own runs need. */
static void live(tdmi_plan *plan, int index)
{
    const tdmi_graph *graph = plan->graph;
    const struct tdmi_node *node = &graph->nodes[index];
    struct tdmi_node_plan *it = &plan->nodes[index];
    int last = graph->n_nodes - 1, backward = backward_time(graph, index);
    struct tdmi_kernel_needs needs = {0};
    it->kernel->needs(&it->desc, &needs);

    it->y = (struct tdmi_buffer){activation_bytes(plan, node->out), 0, index, index};
    if (index == last || (index == last - 1))
        it->y.last =
            plan->is_training ? it->y.last : last; /* probabilities and logits are asked for */
    if (it->has_backward && tdmi_op_of(node->kind)->backward_reads_y)
        it->y.last = backward;
    for (int j = index + 1; j < graph->n_nodes; j++) {
        if (graph->nodes[j].n_inputs == 0 || graph->nodes[j].inputs[0] != index)
            continue;
        bool reads =
            plan->nodes[j].has_backward && tdmi_op_of(graph->nodes[j].kind)->backward_reads_x;
        int until = reads ? backward_time(graph, j) : j;
        it->y.last = until > it->y.last ? until : it->y.last;
        if (it->has_backward)
            it->dy = (struct tdmi_buffer){activation_bytes(plan, node->out), 0,
                                          backward_time(graph, j), backward};
    }
    it->saved =
        (struct tdmi_buffer){needs.saved_bytes, 0, index, it->has_backward ? backward : index};
    it->forward_workspace = (struct tdmi_buffer){needs.workspace_bytes, 0, index, index};
    if (it->has_backward)
        it->backward_workspace = (struct tdmi_buffer){needs.workspace_bytes, 0, backward, backward};
}

static tdm_status place(tdmi_plan *plan, tdm_error *err)
{
    int n = plan->graph->n_nodes;
    struct tdmi_buffer **buffers = tdmi_arena_alloc(&plan->arena, 5 * (size_t)n, sizeof *buffers);
    if (!buffers)
        return TDM_FAIL(err, TDM_E_MEMORY, "placing buffers: out of memory");
    int count = 0;
    for (int i = 0; i < n; i++) {
        struct tdmi_node_plan *it = &plan->nodes[i];
        buffers[count++] = &it->y;
        buffers[count++] = &it->dy;
        buffers[count++] = &it->saved;
        buffers[count++] = &it->forward_workspace;
        buffers[count++] = &it->backward_workspace;
    }
    plan->arena_bytes = tdmi_place_buffers(buffers, count);
    return TDM_OK;
}

/* From the last node down; each segment's gradients lie right before those of the one before. */
static void cut_segments(tdmi_plan *plan)
{
    const tdmi_graph *graph = plan->graph;
    int64_t end = tdmi_graph_sums_values(graph);
    int first_node = graph->n_nodes - 1;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct tdmi_node *node = &graph->nodes[i];
        bool is_lowest = i == 0 || !feeds_parameters(graph, i - 1);
        int64_t begin = node->n_params ? graph->params[node->first_param].offset : end;
        if (is_lowest || end - begin >= segment_values) {
            begin = is_lowest ? 0 : begin;
            plan->segments[plan->n_segments++] =
                (struct tdmi_segment){first_node, i, begin, end - begin};
            end = begin;
            first_node = i - 1;
        }
        if (is_lowest)
            break;
    }
}

tdm_status tdmi_plan_new(const tdmi_graph *graph, const struct tdmi_backend *backend,
                         int max_images, bool is_training, tdmi_plan **plan, tdm_error *err)
{
    tdmi_plan *made = tdmi_alloc(1, sizeof *made);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "planning a network of %d nodes: out of memory",
                        graph->n_nodes);
    tdmi_arena_init(&made->arena, 0);
    made->graph = graph;
    made->backend = backend;
    made->max_images = max_images;
    made->is_training = is_training;
    size_t n = (size_t)graph->n_nodes;
    made->nodes = tdmi_arena_alloc(&made->arena, n, sizeof *made->nodes);
    made->segments = tdmi_arena_alloc(&made->arena, n, sizeof *made->segments);
    tdm_status status = TDM_OK;
    if (!made->nodes || !made->segments)
        status = TDM_FAIL(err, TDM_E_MEMORY, "planning a network of %d nodes: out of memory",
                          graph->n_nodes);
    for (int i = 0; i < graph->n_nodes && status == TDM_OK; i++)
        status = plan_node(made, i, err);
    for (int i = 0; i < graph->n_nodes && status == TDM_OK; i++)
        live(made, i);
    if (status == TDM_OK)
        status = place(made, err);
    if (status == TDM_OK && is_training)
        cut_segments(made);
    if (status != TDM_OK) {
        tdmi_plan_free(made);
        return status;
    }
    *plan = made;
    return TDM_OK;
}

void tdmi_plan_free(tdmi_plan *plan)
{
    if (plan) {
        tdmi_arena_release(&plan->arena);
        tdmi_free(plan);
    }
}

static void print_buffer(tdmi_text *text, const char *name, struct tdmi_buffer buffer)
{
    if (buffer.bytes)
        tdmi_text_printf(text, "  %s %zu+%zu [%d,%d]", name, buffer.offset, buffer.bytes,
                         buffer.first, buffer.last);
}

void tdmi_plan_print(const tdmi_plan *plan, tdmi_text *text)
{
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct tdmi_node *node = &plan->graph->nodes[i];
        const struct tdmi_node_plan *it = &plan->nodes[i];
        tdmi_text_printf(text, "%-12s %-12s %4d×%-4d×%-4d", node->name, tdmi_op_name(node->kind),
                         node->out.h, node->out.w, node->out.c);
        print_buffer(text, "y", it->y);
        print_buffer(text, "dy", it->dy);
        print_buffer(text, "saved", it->saved);
        print_buffer(text, "forward", it->forward_workspace);
        print_buffer(text, "backward", it->backward_workspace);
        tdmi_text_printf(text, "\n");
    }
    for (int s = 0; s < plan->n_segments; s++)
        tdmi_text_printf(text, "segment %d: nodes %s to %s, %lld values\n", s,
                         plan->graph->nodes[plan->segments[s].first_node].name,
                         plan->graph->nodes[plan->segments[s].last_node].name,
                         (long long)plan->segments[s].n_values);
    tdmi_text_printf(text, "arena %zu bytes for %d images\n", plan->arena_bytes, plan->max_images);
}
