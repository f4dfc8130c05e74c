/*
 * safetensors for PyTorch: the names and layouts of torchvision where it has the network, ours in
 * PyTorch's layout otherwise, and a counter beside each batch norm, as load_state_dict requires.
 *
 * torchvision's classes have no numbers but weights: a batch norm of theirs has epsilon 1e-5. What
 * a network of ours with another epsilon has more goes into its running variance, where it comes to
 * the same. The note records what weights do not express, such as Keras' padding.
 */
#include "models/network.h"
#include "weights/names.h"
#include "weights/safetensors/safetensors.h"
#include "train/export/export.h"

#include <stdio.h>
#include <string.h>

static const double torchvision_epsilon = 1e-5;

struct writing {
    struct tdmi_export *export;
    tdmi_safetensors_writer *writer;
    bool is_torchvision;
};

/* ---- tensors ------------------------------------------------------------------------------ */

/* variance + epsilon is what a batch norm divides by. */
static const float *shifted_variance(const struct writing *writing, const struct tdmi_node *node,
                                     const struct tdmi_tensor *tensor, const float *variance)
{
    double shift = node->attrs.epsilon - torchvision_epsilon;
    float *out = tdmi_arena_alloc(&writing->export->arena, (size_t)tensor->n, sizeof *out);
    for (int64_t i = 0; out && i < tensor->n; i++)
        out[i] = (float)((double)variance[i] + shift);
    return out;
}

static tdm_status add_tensor(const struct writing *writing, const struct tdmi_node *node,
                             const struct tdmi_tensor *tensor, bool is_state, tdm_error *err)
{
    char name[TDMI_NAME_BYTES];
    const char *network = writing->export->model->network;
    struct tdmi_layout layout = tdmi_layout_of_torch(node, tensor);
    const float *values = tdmi_export_torch_values(writing->export, node, tensor, is_state);
    bool has_other_epsilon =
        node->attrs.epsilon < torchvision_epsilon || node->attrs.epsilon > torchvision_epsilon;
    if (values && writing->is_torchvision && has_other_epsilon &&
        strcmp(tensor->spec.name, "running_var") == 0)
        values = shifted_variance(writing, node, tensor, values);
    TDMI_CHECK_MEMORY(values, err);
    if (!tdmi_torch_name(network, node, tensor, name))
        return TDM_FAIL(err, TDM_E_INPUT, "the name of the tensor '%s' is too long", tensor->name);
    tdmi_safetensors_add(writing->writer, name, TDMI_DTYPE_F32, layout.rank, layout.shape, values);
    return TDM_OK;
}

/* How many batches a batch norm of PyTorch's has seen. */
static tdm_status add_counter(const struct writing *writing, const struct tdmi_node *node,
                              tdm_error *err)
{
    static const struct tdmi_tensor counter = {.spec = {.name = "num_batches_tracked"}};
    char name[TDMI_NAME_BYTES];
    if (!tdmi_torch_name(writing->export->model->network, node, &counter, name))
        return TDM_FAIL(err, TDM_E_INPUT, "the name of the node '%s' is too long", node->name);
    tdmi_safetensors_add(writing->writer, name, TDMI_DTYPE_I64, 0, NULL,
                         &writing->export->model->progress.step);
    return TDM_OK;
}

static tdm_status add_node(const struct writing *writing, const struct tdmi_node *node,
                           tdm_error *err)
{
    const tdmi_graph *graph = writing->export->graph;
    for (int i = 0; i < node->n_params; i++)
        TDMI_TRY(add_tensor(writing, node, &graph->params[node->first_param + i], false, err));
    for (int i = 0; i < node->n_states; i++)
        TDMI_TRY(add_tensor(writing, node, &graph->states[node->first_state + i], true, err));
    return node->kind == TDMI_OP_BATCH_NORM ? add_counter(writing, node, err) : TDM_OK;
}

/* ---- is it the network that torchvision builds? ------------------------------------------- */

/* The next node that computes something without training. */
static int next_of(const tdmi_graph *graph, int at)
{
    while (at < graph->n_nodes && graph->nodes[at].kind == TDMI_OP_DROPOUT)
        at++;
    return at;
}

/* Apart from padding. */
static bool is_same_op(const struct tdmi_node *a, const struct tdmi_node *b)
{
    const struct tdmi_op_attrs *x = &a->attrs, *y = &b->attrs;
    if (a->kind != b->kind)
        return false;
    return x->channels == y->channels && x->kernel == y->kernel && x->stride == y->stride &&
           x->dilation == y->dilation && x->groups == y->groups && x->has_bias == y->has_bias;
}

static void note_difference(struct tdmi_export *export, const struct tdmi_node *ours,
                            const struct tdmi_node *theirs)
{
    const struct tdmi_op_attrs *x = &ours->attrs, *y = &theirs->attrs;
    char *note = export->result->note;
    const char *network = export->model->network;
    if (ours->kind == theirs->kind && !tdmi_export_pads_alike(x, y))
        snprintf(note, TDM_ERROR_TEXT_BYTES,
                 "torchvision's %s gives other outputs with these weights: '%s' pads %d, %d, %d "
                 "and %d above, below, left and right, and torchvision %d, %d, %d and %d",
                 network, ours->name, x->pad_top, x->pad_bottom, x->pad_left, x->pad_right,
                 y->pad_top, y->pad_bottom, y->pad_left, y->pad_right);
    else
        snprintf(note, TDM_ERROR_TEXT_BYTES,
                 "torchvision's %s is another network from '%s' on, where torchvision has '%s'",
                 network, ours->name, theirs->name);
}

/* The network of that name as torchvision publishes it, of our size; NULL when it has none. */
static tdmi_graph *published(const struct tdmi_export *export)
{
    struct tdmi_network network;
    tdmi_graph *graph = NULL;
    if (!tdmi_is_of_torchvision(export->model->network) ||
        tdmi_network_find(export->model->network, &network, NULL) != TDM_OK)
        return NULL;
    struct tdmi_build what = tdmi_network_defaults(&network, export->model->n_classes);
    what.preprocess = *tdmi_graph_preprocess(export->graph);
    what.padding = TDMI_PADDING_SYMMETRIC;
    what.publisher = TDMI_PUBLISHER_TORCH;
    return tdmi_network_make(&network, &what, &graph, NULL) == TDM_OK ? graph : NULL;
}

/* Do torchvision's class and this network have the same layers, except perhaps in the head? What
 * differs first is noted, padding too. */
static bool is_torchvisions(struct tdmi_export *export)
{
    tdmi_graph *theirs = published(export);
    const tdmi_graph *ours = export->graph;
    if (!theirs)
        return false;
    int a = next_of(ours, 0), b = next_of(theirs, 0);
    while (a < ours->n_nodes && b < theirs->n_nodes &&
           is_same_op(&ours->nodes[a], &theirs->nodes[b])) {
        if (!tdmi_export_pads_alike(&ours->nodes[a].attrs, &theirs->nodes[b].attrs) &&
            !*export->result->note)
            note_difference(export, &ours->nodes[a], &theirs->nodes[b]);
        a = next_of(ours, a + 1);
        b = next_of(theirs, b + 1);
    }
    bool is_whole = a == ours->n_nodes || b == theirs->n_nodes;
    if (!is_whole && !*export->result->note)
        note_difference(export, &ours->nodes[a], &theirs->nodes[b]);
    tdmi_graph_free(theirs);
    return is_whole || (ours->head > 0 && a >= ours->head);
}

/* ---- the file ----------------------------------------------------------------------------- */

/* The graph node by node, with the epsilon that its variances are shifted for: the library's reader
 * builds the network from it. NULL without memory. */
static const char *describe_graph(const struct writing *writing)
{
    struct tdmi_export *export = writing->export;
    tdmi_graph *graph = tdmi_graph_begun(export->graph, export->graph->n_nodes);
    tdm_json_writer *writer = tdm_json_writer_new(0);
    if (graph && graph->mistake.code == TDM_OK) {
        for (int i = 0; writing->is_torchvision && i < graph->n_nodes; i++)
            if (graph->nodes[i].kind == TDMI_OP_BATCH_NORM)
                graph->nodes[i].attrs.epsilon = torchvision_epsilon;
        tdmi_graph_to_json(graph, writer, NULL);
    }
    tdmi_graph_free(graph);
    return tdmi_export_finished(export, writer);
}

static tdm_status add_all(struct writing *writing, tdm_error *err)
{
    struct tdmi_export *export = writing->export;
    struct tdmi_export_note notes[TDMI_EXPORT_NOTES];
    const char *graph = describe_graph(writing);
    TDMI_CHECK_MEMORY(graph, err);
    TDMI_TRY(tdmi_export_notes(export, notes, err));
    tdmi_safetensors_note(writing->writer, "format", "pt");
    for (int i = 0; i < TDMI_EXPORT_NOTES; i++) {
        if (i == TDMI_EXPORT_PADDING)
            tdmi_safetensors_note(writing->writer, "graph", graph);
        if (*notes[i].text)
            tdmi_safetensors_note(writing->writer, notes[i].key, notes[i].text);
    }
    for (int i = 0; i < export->graph->n_nodes; i++)
        TDMI_TRY(add_node(writing, &export->graph->nodes[i], err));
    return TDM_OK;
}

tdm_status tdmi_export_safetensors(struct tdmi_export *export, tdm_error *err)
{
    TDMI_AT_END(tdmi_safetensors_writer_free_at)
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    struct writing writing = {
        .export = export, .writer = writer, .is_torchvision = is_torchvisions(export)};
    TDMI_TRY(add_all(&writing, err));
    return tdmi_safetensors_finish(writer, export->path, err);
}
