/* Describing a network: one row a node, and their sums. */
#include "models/describe.h"
#include "base/text/text.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "base/sized.h"
#include "models/network.h"

static int64_t values_of(const struct tdmi_tensor *tensors, int first, int n)
{
    int64_t values = 0;
    for (int i = first; i < first + n; i++)
        values += tensors[i].n;
    return values;
}

static bool multiplies(enum tdmi_op_kind kind)
{
    return kind == TDMI_OP_CONV || kind == TDMI_OP_DENSE;
}

static void add_pads(tdmi_text *text, const struct tdmi_op_attrs *a)
{
    if (a->pad_top == a->pad_bottom && a->pad_top == a->pad_left && a->pad_top == a->pad_right) {
        if (a->pad_top)
            tdmi_text_printf(text, ", pad %d", a->pad_top);
        return;
    }
    tdmi_text_printf(text, ", pad %d above, %d below, %d left, %d right", a->pad_top, a->pad_bottom,
                     a->pad_left, a->pad_right);
}

static void add_window(tdmi_text *text, const struct tdmi_node *node)
{
    const struct tdmi_op_attrs *a = &node->attrs;
    tdmi_text_printf(text, "%d×%d", a->kernel, a->kernel);
    if (a->stride > 1)
        tdmi_text_printf(text, " stride %d", a->stride);
    if (node->kind == TDMI_OP_CONV && a->dilation > 1)
        tdmi_text_printf(text, ", dilation %d", a->dilation);
    if (node->kind == TDMI_OP_CONV && a->groups > 1) {
        if (a->groups == node->in[0].c)
            tdmi_text_printf(text, ", depthwise");
        else
            tdmi_text_printf(text, ", %d groups", a->groups);
    }
    add_pads(text, a);
}

/* The attributes that the name of the op does not show. */
static void add_detail(tdmi_text *text, const struct tdmi_node *node)
{
    const struct tdmi_op_attrs *a = &node->attrs;
    switch (node->kind) {
    case TDMI_OP_CONV:
    case TDMI_OP_MAX_POOL:
    case TDMI_OP_AVG_POOL:
        add_window(text, node);
        break;
    case TDMI_OP_PAD:
        tdmi_text_printf(text, "%d, %d, %d, %d, channels %d, %d", a->pad_top, a->pad_bottom,
                         a->pad_left, a->pad_right, a->pad_front, a->pad_back);
        break;
    case TDMI_OP_DROPOUT:
        tdmi_text_printf(text, "%g", a->rate);
        break;
    case TDMI_OP_LRN:
        tdmi_text_printf(text, "over %d channels", a->kernel);
        break;
    default:
        break;
    }
}

static bool describe_node(struct tdm_network *network, int index)
{
    const tdmi_graph *graph = network->graph;
    const struct tdmi_node *node = &graph->nodes[index];
    struct tdm_network_node *it = &network->nodes[index];
    tdmi_text detail = {0};
    add_detail(&detail, node);
    double flops = tdmi_node_flops(node);
    *it = (struct tdm_network_node){
        .name = node->name,
        .op = tdmi_op_name(node->kind),
        .detail = tdmi_arena_copy(&network->arena, tdmi_text_string(&detail)),
        .n_inputs = node->n_inputs,
        .height = node->out.h,
        .width = node->out.w,
        .channels = node->out.c,
        .parameters = values_of(graph->params, node->first_param, node->n_params),
        .states = values_of(graph->states, node->first_state, node->n_states),
        .multiplications = multiplies(node->kind) ? flops / 2.0 : 0.0,
        .flops = flops,
    };
    for (int k = 0; k < node->n_inputs; k++)
        it->inputs[k] = node->inputs[k];
    bool is_complete = !detail.is_broken && it->detail;
    tdmi_text_release(&detail);
    network->totals.parameters += it->parameters;
    network->totals.states += it->states;
    network->totals.multiplications += it->multiplications;
    network->totals.flops += it->flops;
    return is_complete;
}

tdm_status tdmi_network_describe(struct tdm_network *network, const char *name, const char *summary,
                                 tdm_error *err)
{
    const tdmi_graph *graph = network->graph;
    network->nodes =
        tdmi_arena_alloc(&network->arena, (size_t)graph->n_nodes, sizeof *network->nodes);
    bool is_complete = network->nodes != NULL;
    network->totals = (struct tdm_network_totals){
        .name = tdmi_arena_copy(&network->arena, name),
        .summary = summary,
        .height = graph->nodes[0].out.h,
        .width = graph->nodes[0].out.w,
        .channels = graph->nodes[0].out.c,
        .classes = tdmi_graph_classes(graph),
        .nodes = graph->n_nodes,
    };
    for (int i = 0; i < graph->n_nodes && is_complete; i++)
        is_complete = describe_node(network, i);
    if (!is_complete || !network->totals.name)
        return TDM_FAIL(err, TDM_E_MEMORY, "describing the network %s: out of memory", name);
    return TDM_OK;
}

static tdm_status build(struct tdm_network *network, const struct tdm_network_options *options,
                        tdm_error *err)
{
    struct tdmi_network known;
    TDM_TRY(tdmi_network_find(options->model, &known, err), err, "describing a network");
    struct tdmi_build what =
        tdmi_network_defaults(&known, options->classes > 0 ? options->classes : known.classes);
    if (options->size > 0)
        what.preprocess.width = what.preprocess.height = options->size;
    what.head.hidden = options->hidden;
    what.head.dropout = options->dropout;
    TDM_TRY(tdmi_network_make(&known, &what, &network->graph, err), err, "describing a network");
    return tdmi_network_describe(network, known.name, known.summary, err);
}

tdm_status tdm_network_open(const struct tdm_network_options *options, tdm_network **network,
                            tdm_error *err)
{
    TDMI_OPTIONS(tdm_network_options, options, {0}, err);
    TDMI_AT_END(tdm_network_close_at) tdm_network *made = NULL;
    TDMI_TRY(TDMI_NEW(made, 1, err));
    tdmi_arena_init(&made->arena, 0);
    TDMI_TRY(build(made, options, err));
    *network = tdmi_take(&made);
    return TDM_OK;
}

void tdm_network_close(tdm_network *network)
{
    if (!network)
        return;
    tdmi_graph_free(network->graph);
    tdmi_arena_release(&network->arena);
    tdmi_free(network);
}

const struct tdm_network_totals *tdm_network_totals(const tdm_network *network)
{
    return &network->totals;
}

const struct tdm_network_node *tdm_network_node_at(const tdm_network *network, int index)
{
    return index >= 0 && index < network->totals.nodes ? &network->nodes[index] : NULL;
}

tdm_status tdm_network_draw(const tdm_network *network, const char *path, tdm_error *err)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    TDM_TRY(tdmi_network_svg(network, &text, err), err, "drawing the network %s",
            network->totals.name);
    return TDM_WRAP(err, tdmi_file_write(path, text.bytes, text.length_bytes, err),
                    "drawing the network %s", network->totals.name);
}
