/*
 * The network of a file that stores its graph node by node: a model file of ours, or an export of
 * one. Paddings, epsilons and the head are the file's, so no defaults are assumed. For other
 * classes the network ends before its last layer with weights, and a new head follows. Another size
 * of images moves paddings, so the network is built again by its name.
 */
#include "weights/import/internal.h"

#include <string.h>

struct import_graph {
    struct tdmi_importing *it;
    const tdmi_graph *stored;
    struct tdmi_head head; /* as stored; classes 0: no last layer is known */
    int classifier;        /* the last layer with weights; 0: none is known */
    int cut;               /* the head's first node */
    bool is_known;         /* by its name */
    struct tdmi_network network;
};

/* ---- the stored head ------------------------------------------------------------------------ */

static bool is_called(const tdmi_graph *graph, int node, enum tdmi_op_kind kind, const char *name)
{
    return node > 0 && graph->nodes[node].kind == kind &&
           strcmp(graph->nodes[node].name, name) == 0;
}

/*
 * Networks that a Keras file describes may have dense layers of other names between a global
 * pooling and the last (import/described.c): they are head as well. Otherwise from.
 */
static int first_of_dense(const tdmi_graph *stored, int from)
{
    int first = from;
    for (int at = from; at > 0 && stored->nodes[at].n_inputs == 1;
         at = stored->nodes[at].inputs[0]) {
        const struct tdmi_node *node = &stored->nodes[at];
        if (node->kind == TDMI_OP_GLOBAL_POOL)
            return first;
        if (node->kind == TDMI_OP_DENSE)
            first = at;
        else if (at != from && node->n_params > 0 && node->kind != TDMI_OP_BATCH_NORM)
            return from;
    }
    return from;
}

/* Back from the end over what has no weights, then over what tdmi_add_head puts before. */
static void find_head(struct import_graph *t)
{
    const tdmi_graph *stored = t->stored;
    const int last = stored->n_nodes - 1;
    int at = stored->nodes[last].inputs[0];
    while (at > 0 && stored->nodes[at].n_params == 0 && stored->nodes[at].n_inputs == 1)
        at = stored->nodes[at].inputs[0];
    const struct tdmi_node *node = &stored->nodes[at];
    t->cut = last;
    if (node->n_params == 0 || (node->kind != TDMI_OP_DENSE && node->kind != TDMI_OP_CONV))
        return;
    t->classifier = t->cut = at;
    t->head = (struct tdmi_head){.classes = stored->nodes[last].out.c,
                                 .is_logistic = stored->nodes[last].kind == TDMI_OP_LOGISTIC,
                                 .label_smoothing = stored->nodes[last].attrs.label_smoothing};
    if (is_called(stored, t->cut - 1, TDMI_OP_DROPOUT, "dropout"))
        t->head.dropout = stored->nodes[--t->cut].attrs.rate;
    if (is_called(stored, t->cut - 1, TDMI_OP_RELU, "hidden_relu") &&
        is_called(stored, t->cut - 2, TDMI_OP_DENSE, "hidden")) {
        t->cut -= 2;
        t->head.hidden = stored->nodes[t->cut].attrs.channels;
    }
    t->cut = first_of_dense(stored, t->cut);
}

/* Members that the request leaves at 0 stay as they are. */
static bool keeps_head(const struct import_graph *t)
{
    const struct tdmi_head *requested = &t->it->request->head, *stored = &t->head;
    return requested->classes == 0 ||
           (tdmi_import_keeps_classes(t->it) && requested->classes == stored->classes &&
            (requested->hidden == 0 || requested->hidden == stored->hidden) &&
            (!(requested->dropout > 0.0) ||
             !(requested->dropout < stored->dropout || requested->dropout > stored->dropout)) &&
            (!requested->is_logistic || stored->is_logistic));
}

/* ---- another size ---------------------------------------------------------------------------- */

static bool same_node(const struct tdmi_node *a, const struct tdmi_node *b)
{
    const struct tdmi_op_attrs *x = &a->attrs, *y = &b->attrs;
    return a->kind == b->kind && strcmp(a->name, b->name) == 0 && a->inputs[0] == b->inputs[0] &&
           a->out.h == b->out.h && a->out.w == b->out.w && a->out.c == b->out.c &&
           x->pad_top == y->pad_top && x->pad_bottom == y->pad_bottom &&
           x->pad_left == y->pad_left && x->pad_right == y->pad_right &&
           x->has_bias == y->has_bias && x->stride == y->stride && x->kernel == y->kernel &&
           !(x->epsilon < y->epsilon || x->epsilon > y->epsilon);
}

static bool same_graph(const tdmi_graph *a, const tdmi_graph *b)
{
    bool is_same = a->n_nodes == b->n_nodes;
    for (int i = 0; is_same && i < a->n_nodes; i++)
        is_same = same_node(&a->nodes[i], &b->nodes[i]);
    return is_same;
}

/* Find the publisher and padding whose network is the stored graph, and build it at the new size.
 */
static tdm_status build_resized(struct import_graph *t, const struct tdmi_preprocess *preprocess,
                                tdmi_graph **made, tdm_error *err)
{
    struct tdmi_build what = tdmi_network_defaults(&t->network, t->head.classes);
    what.head = t->head;
    for (int form = 0; t->is_known && form <= (int)TDMI_PUBLISHER_TORCH; form++)
        for (int padding = 0; padding <= (int)TDMI_PADDING_NONE; padding++) {
            TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
            what.preprocess = *tdmi_graph_preprocess(t->stored);
            what.publisher = (enum tdmi_publisher)form;
            what.padding = (enum tdmi_padding)padding;
            tdm_status status = tdmi_network_make(&t->network, &what, &graph, NULL);
            TDMI_CHECK_MEMORY(status != TDM_E_MEMORY, err);
            what.preprocess = *preprocess;
            if (status == TDM_OK && same_graph(graph, t->stored))
                return tdmi_network_make(&t->network, &what, made, err);
        }
    return TDM_FAIL(err, TDM_E_USAGE,
                    "the network is stored for images of %d×%d and is none that is known by its "
                    "name %s: it cannot be built for %d×%d",
                    tdmi_graph_preprocess(t->stored)->width,
                    tdmi_graph_preprocess(t->stored)->height, t->it->import->network,
                    preprocess->width, preprocess->height);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static tdm_status add_new_head(struct import_graph *t, tdmi_graph *graph, tdm_error *err)
{
    const struct tdmi_node *classifier = t->classifier ? &t->stored->nodes[t->classifier] : NULL;
    int node = t->stored->nodes[t->cut].inputs[0];
    const bool is_image =
        graph->mistake.code == TDM_OK && tdmi_shape_pixels(graph->nodes[node].out) > 1;
    if (is_image && !(classifier && classifier->kind == TDMI_OP_DENSE))
        node = tdmi_add_global_pool(graph, "features", node);
    tdmi_add_head(graph, &t->it->request->head, classifier ? classifier->name : "predictions",
                  node);
    return tdmi_import_note_head(t->it, classifier ? t->head.classes : 0, err);
}

/* The stored graph, or the same at another size, with the requested head. */
static tdm_status build(struct import_graph *t, tdm_error *err)
{
    struct tdmi_import *import = t->it->import;
    struct tdmi_preprocess preprocess = *tdmi_graph_preprocess(t->stored);
    const struct tdmi_preprocess was = preprocess;
    TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *resized = NULL;
    TDMI_TRY(tdmi_import_take_input(t->it, &preprocess, err));
    const bool is_resized = preprocess.width != was.width || preprocess.height != was.height;
    if (is_resized)
        TDMI_TRY(build_resized(t, &preprocess, &resized, err));
    const bool is_kept = keeps_head(t);
    const tdmi_graph *from = resized ? resized : t->stored;
    import->graph = tdmi_graph_begun(from, is_kept ? from->n_nodes : t->cut);
    TDMI_CHECK_MEMORY(import->graph, err);
    import->graph->nodes[0].attrs.preprocess = preprocess;
    import->graph->head = t->classifier ? t->cut : 0;
    if (!is_kept)
        TDMI_TRY(add_new_head(t, import->graph, err));
    TDMI_TRY(tdmi_graph_finish(import->graph, import->network, err));
    if (is_resized)
        TDMI_TRY(tdmi_import_note(t->it, err,
                                  "images become %d×%d here; those of the weights were %d×%d",
                                  preprocess.width, preprocess.height, was.width, was.height));
    return TDM_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Tensors of the stored head are of no use to a new one, and no mistake. */
static tdm_status take_old_head(struct import_graph *t, tdm_error *err)
{
    struct tdmi_importing *it = t->it;
    struct tdmi_bindings old;
    TDMI_TRY(tdmi_import_bind(it, t->stored, &old, err));
    for (int node = t->cut; node < t->stored->n_nodes; node++) {
        const struct tdmi_binding *binding;
        for (int i = 0; (binding = tdmi_binding_of(&old, node, i)) != NULL; i++)
            if (binding->from)
                tdmi_bindings_take(&it->bindings, binding->from);
    }
    tdmi_import_renew_head(it);
    return TDM_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The request may repeat the name, but not contradict it. */
static tdm_status check_request(const struct import_graph *t, tdm_error *err)
{
    const struct tdmi_import_request *request = t->it->request;
    struct tdmi_network requested;
    if (request->input.padding)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "the file says the padding of each layer; --padding %s says it again",
                        request->input.padding);
    if (!request->network)
        return TDM_OK;
    TDMI_TRY(tdmi_network_find(request->network, &requested, err));
    if (strcmp(requested.name, t->is_known ? t->network.name : t->it->facts.network) != 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "it says that it is a %s, and --model says %s; without --model the "
                        "file's word is taken",
                        t->it->facts.network, request->network);
    return TDM_OK;
}

tdm_status tdmi_import_graph(struct tdmi_importing *it, tdm_error *err)
{
    struct import_graph t = {.it = it, .stored = it->facts.graph};
    struct tdmi_import *import = it->import;
    t.is_known = tdmi_network_find(it->facts.network, &t.network, NULL) == TDM_OK;
    TDMI_TRY(check_request(&t, err));
    import->network = it->facts.network;
    import->shard = it->facts.shard ? it->facts.shard : t.is_known ? t.network.shard : 8;
    import->learning_rate = t.is_known ? t.network.learning_rate : 0.0125;
    find_head(&t);
    TDMI_TRY(build(&t, err));
    TDMI_TRY(tdmi_import_bind(it, import->graph, &it->bindings, err));
    if (import->has_new_head)
        TDMI_TRY(take_old_head(&t, err));
    return tdmi_bindings_check(&it->bindings, err);
}
