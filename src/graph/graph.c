/*
 * Building a graph: nodes, shapes, and the flat layout of parameters and states.
 */
#include "graph/graph.h"
#include "base/memory.h"
#include "base/hash/rng.h"

#include <math.h>
#include <string.h>

/* most_values, of one tensor or one image's activation, keeps every product of sizes below 2^63. */
enum { max_nodes = 4096, align_values = 16, most_values = INT32_MAX };

tdmi_graph *tdmi_graph_new(void)
{
    tdmi_graph *graph = tdmi_alloc(1, sizeof *graph);
    if (graph)
        tdmi_arena_init(&graph->arena, 0);
    return graph;
}

void tdmi_graph_free(tdmi_graph *graph)
{
    if (graph) {
        tdmi_arena_release(&graph->arena);
        tdmi_free(graph);
    }
}

/* items with room for n_more behind the first n, in the arena; NULL when out of memory. The old
 * block is left behind, which costs at most as much again. */
static void *with_room(tdmi_graph *graph, void *items, int n, int n_more, int *capacity,
                       size_t item_bytes)
{
    if (n + n_more <= *capacity)
        return items;
    int larger = *capacity ? 2 * *capacity : 32;
    void *block = tdmi_arena_alloc(&graph->arena, (size_t)larger, item_bytes);
    if (block && n > 0)
        memcpy(block, items, (size_t)n * item_bytes);
    if (block)
        *capacity = larger;
    return block;
}

/* Lay one tensor out behind the others. */
static tdm_status place(tdmi_graph *graph, const char *node, struct tdmi_tensor_spec spec,
                        struct tdmi_tensor *tensor, int64_t *total, tdm_error *err)
{
    int64_t n = 1;
    for (int i = 0; i < spec.n_dims; i++) {
        if (spec.dims[i] < 1 || n > most_values / spec.dims[i])
            return TDM_FAIL(err, TDM_E_INPUT,
                            "tensor %s.%s would have %lld × %d values or more; at most %d are "
                            "accepted",
                            node, spec.name, (long long)n, spec.dims[i], most_values);
        n *= spec.dims[i];
    }
    tensor->name = tdmi_arena_printf(&graph->arena, "%s.%s", node, spec.name);
    if (!tensor->name)
        return TDM_FAIL(err, TDM_E_MEMORY, "naming tensor %s.%s: out of memory", node, spec.name);
    tensor->spec = spec;
    tensor->offset = *total;
    tensor->n = n;
    *total += (n + align_values - 1) / align_values * align_values;
    return TDM_OK;
}

static tdm_status add_tensors(tdmi_graph *graph, struct tdmi_node *node, tdm_error *err)
{
    const struct tdmi_op *op = tdmi_op_of(node->kind);
    struct tdmi_tensor_spec params[TDMI_OP_PARAMS], states[TDMI_OP_STATES];
    node->first_param = graph->n_params;
    node->first_state = graph->n_states;
    node->n_params = op->params ? op->params(&node->attrs, node->in, params) : 0;
    node->n_states = op->states ? op->states(&node->attrs, node->in, states) : 0;
    for (int i = 0; i < node->n_params; i++) {
        struct tdmi_tensor *tensor = &graph->params[graph->n_params++];
        TDM_TRY(place(graph, node->name, params[i], tensor, &graph->param_values, err), err,
                "laying out parameters");
        graph->parameters += tensor->n;
    }
    for (int i = 0; i < node->n_states; i++)
        TDM_TRY(place(graph, node->name, states[i], &graph->states[graph->n_states++],
                      &graph->state_values, err),
                err, "laying out states");
    return TDM_OK;
}

/* Make room for the tensors of one more node. */
static bool make_room_for_tensors(tdmi_graph *graph)
{
    struct tdmi_tensor *params = with_room(graph, graph->params, graph->n_params, TDMI_OP_PARAMS,
                                           &graph->param_capacity, sizeof *params);
    struct tdmi_tensor *states = with_room(graph, graph->states, graph->n_states, TDMI_OP_STATES,
                                           &graph->state_capacity, sizeof *states);
    graph->params = params ? params : graph->params;
    graph->states = states ? states : graph->states;
    return params && states;
}

static tdm_status check_inputs(const tdmi_graph *graph, const int *inputs, int wanted,
                               tdm_error *err)
{
    if (wanted == 0 && inputs[0] != -1)
        return TDM_FAIL(err, TDM_E_INPUT, "reads node %d; it reads no input", inputs[0]);
    for (int k = 0; k < wanted; k++)
        if (inputs[k] < 0 || inputs[k] >= graph->n_nodes)
            return TDM_FAIL(err, TDM_E_INPUT, "reads node %d; only earlier nodes can be read",
                            inputs[k]);
    if (wanted == 2 && inputs[0] == inputs[1])
        return TDM_FAIL(err, TDM_E_INPUT, "reads node '%s' twice; two different nodes are required",
                        graph->nodes[inputs[0]].name);
    return TDM_OK;
}

static tdm_status add_node(tdmi_graph *graph, enum tdmi_op_kind kind, const char *name,
                           const int *inputs, struct tdmi_op_attrs attrs, tdm_error *err)
{
    int wanted = tdmi_op_inputs(kind);
    if (graph->n_nodes >= max_nodes)
        return TDM_FAIL(err, TDM_E_INPUT, "a graph of more than %d nodes", max_nodes);
    TDM_TRY(check_inputs(graph, inputs, wanted, err), err, "op %s", tdmi_op_name(kind));
    for (int i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return TDM_FAIL(err, TDM_E_INPUT, "its name is taken by node %d", i);
    struct tdmi_node *nodes = with_room(graph, graph->nodes, graph->n_nodes, 1,
                                        &graph->node_capacity, sizeof *graph->nodes);
    if (!nodes || !make_room_for_tensors(graph))
        return TDM_FAIL(err, TDM_E_MEMORY, "out of memory after %d nodes", graph->n_nodes);
    graph->nodes = nodes;
    struct tdmi_node *node = &graph->nodes[graph->n_nodes];
    *node = (struct tdmi_node){.kind = kind, .attrs = attrs, .n_inputs = wanted};
    node->name = tdmi_arena_copy(&graph->arena, name);
    if (!node->name)
        return TDM_FAIL(err, TDM_E_MEMORY, "out of memory");
    for (int k = 0; k < wanted; k++) {
        node->inputs[k] = inputs[k];
        node->in[k] = graph->nodes[inputs[k]].out;
    }
    TDM_TRY(tdmi_op_shape(kind, &node->attrs, node->in, &node->out, err), err, "op %s does not fit",
            tdmi_op_name(kind));
    if (tdmi_shape_pixels(node->out) > most_values / node->out.c)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "op %s would give an image of %d×%d with %d channels; at most %d values "
                        "are accepted",
                        tdmi_op_name(kind), node->out.w, node->out.h, node->out.c, most_values);
    TDM_TRY(add_tensors(graph, node, err), err, "op %s", tdmi_op_name(kind));
    graph->n_nodes++;
    return TDM_OK;
}

int tdmi_graph_add(tdmi_graph *graph, enum tdmi_op_kind kind, const char *name, int input,
                   struct tdmi_op_attrs attrs)
{
    return tdmi_graph_join(graph, kind, name, input, -1, attrs);
}

int tdmi_graph_join(tdmi_graph *graph, enum tdmi_op_kind kind, const char *name, int first,
                    int second, struct tdmi_op_attrs attrs)
{
    const int inputs[] = {first, second};
    if (graph->mistake.code != TDM_OK)
        return -1;
    if (TDM_WRAP(&graph->mistake, add_node(graph, kind, name, inputs, attrs, &graph->mistake),
                 "node '%s'", name) != TDM_OK)
        return -1;
    return graph->n_nodes - 1;
}

tdmi_graph *tdmi_graph_begun(const tdmi_graph *from, int n)
{
    tdmi_graph *graph = tdmi_graph_new();
    for (int i = 0; graph && i < n; i++) {
        const struct tdmi_node *node = &from->nodes[i];
        tdmi_graph_join(graph, node->kind, node->name, node->n_inputs > 0 ? node->inputs[0] : -1,
                        node->n_inputs > 1 ? node->inputs[1] : -1, node->attrs);
    }
    return graph;
}

tdm_status tdmi_graph_finish(tdmi_graph *graph, const char *name, tdm_error *err)
{
    if (graph->mistake.code != TDM_OK) {
        if (err)
            *err = graph->mistake;
        return TDM_WRAP(err, graph->mistake.code, "building the network %s", name);
    }
    if (graph->n_nodes == 0 || graph->nodes[0].kind != TDMI_OP_INPUT ||
        !tdmi_op_of(graph->nodes[graph->n_nodes - 1].kind)->is_output)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "building the network %s: it must begin with an input and end with softmax "
                        "or a logistic loss",
                        name);
    for (int i = 0; i + 1 < graph->n_nodes; i++) {
        int readers = 0;
        /* Pixels have the shape of one input, and labels are of one output. */
        if ((i > 0 && graph->nodes[i].kind == TDMI_OP_INPUT) ||
            tdmi_op_of(graph->nodes[i].kind)->is_output)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "building the network %s: node '%s' is of op %s; only the %s node may "
                            "be",
                            name, graph->nodes[i].name, tdmi_op_name(graph->nodes[i].kind),
                            graph->nodes[i].kind == TDMI_OP_INPUT ? "first" : "last");
        for (int j = i + 1; j < graph->n_nodes; j++)
            for (int k = 0; k < graph->nodes[j].n_inputs; k++)
                readers += graph->nodes[j].inputs[k] == i;
        if (readers == 0)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "building the network %s: node '%s' is read by no other; only the last "
                            "node may be",
                            name, graph->nodes[i].name);
    }
    return TDM_OK;
}

tdm_status tdmi_graph_base(const tdmi_graph *graph, int end, tdmi_graph **base, tdm_error *err)
{
    if (end < 1 || end >= graph->n_nodes)
        return TDM_FAIL(err, TDM_E_USAGE, "a backbone of %d nodes of %d; 1 to %d are accepted", end,
                        graph->n_nodes, graph->n_nodes - 1);
    for (int i = end; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_inputs; k++)
            if (graph->nodes[i].inputs[k] < end - 1)
                return TDM_FAIL(
                    err, TDM_E_USAGE,
                    "a backbone that ends with node '%s' has more than one output: '%s' "
                    "reads '%s'",
                    graph->nodes[end - 1].name, graph->nodes[i].name,
                    graph->nodes[graph->nodes[i].inputs[k]].name);
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *made = tdmi_graph_begun(graph, end);
    if (!made)
        return TDM_FAIL(err, TDM_E_MEMORY, "taking a network apart: out of memory");
    if (made->mistake.code != TDM_OK) {
        if (err)
            *err = made->mistake;
        return TDM_WRAP(err, made->mistake.code, "taking a network apart");
    }
    *base = tdmi_take(&made);
    return TDM_OK;
}

int64_t tdmi_graph_state_sums_at(const tdmi_graph *graph)
{
    return graph->param_values;
}

int64_t tdmi_graph_tail_at(const tdmi_graph *graph)
{
    return graph->param_values + graph->state_values;
}

int64_t tdmi_graph_sums_values(const tdmi_graph *graph)
{
    return tdmi_graph_tail_at(graph) + align_values;
}

double tdmi_node_flops(const struct tdmi_node *node)
{
    const struct tdmi_op *op = tdmi_op_of(node->kind);
    return op->flops ? op->flops(&node->attrs, node->in[0], node->out) : 0.0;
}

const struct tdmi_preprocess *tdmi_graph_preprocess(const tdmi_graph *graph)
{
    return &graph->nodes[0].attrs.preprocess;
}

int tdmi_graph_classes(const tdmi_graph *graph)
{
    return graph->nodes[graph->n_nodes - 1].out.c;
}

int tdmi_graph_logits(const tdmi_graph *graph)
{
    return graph->nodes[graph->n_nodes - 1].in[0].c;
}

/*
 * Squares of a weight's bound, times its inputs. 6 is He's: from scratch a network with less begins
 * too slowly. A new head on known layers begins with less.
 */
enum { scratch_gain = 6, on_known_gain = 1 };

static void draw(const struct tdmi_tensor *tensor, uint64_t seed, int index, int gain,
                 float *values)
{
    if (tensor->spec.init == TDMI_INIT_HE) {
        tdmi_rng rng = tdmi_rng_at(seed, TDMI_RNG_INIT, 0, (uint64_t)index);
        float bound = sqrtf((float)gain / (float)tensor->spec.fan_in);
        for (int64_t i = 0; i < tensor->n; i++)
            values[i] = tdmi_rng_uniform(&rng, -bound, bound);
    } else {
        for (int64_t i = 0; i < tensor->n; i++)
            values[i] = tensor->spec.init == TDMI_INIT_ONE ? 1.0f : 0.0f;
    }
}

void tdmi_tensor_init_on_known(const struct tdmi_tensor *tensor, uint64_t seed, int index,
                               float *values)
{
    draw(tensor, seed, index, on_known_gain, values);
}

void tdmi_graph_init_values(const tdmi_graph *graph, uint64_t seed, float *params, float *states)
{
    for (int i = 0; i < graph->n_params; i++)
        draw(&graph->params[i], seed, i, scratch_gain, params + graph->params[i].offset);
    for (int i = 0; i < graph->n_states; i++)
        draw(&graph->states[i], seed, i, scratch_gain, states + graph->states[i].offset);
}
