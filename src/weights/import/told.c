/*
 * Networks that a file tells node by node: a model file of ours, or an export of one. Paddings,
 * epsilons and the head are the file's, so nothing about them is taken for granted. For other
 * classes the network ends before its last layer with weights, and a new head follows; for another
 * size of images, which moves paddings, it is built anew by its name.
 */
#include "weights/allocated.h"
#include "weights/import/internal.h"
#include "weights/names.h"

#include <stdio.h>
#include <string.h>

struct telling {
    struct tdmi_importing *it;
    const tdmi_graph *told;
    struct tdmi_head head; /* as told; classes 0: no last layer is known */
    int classifier;        /* the last layer with weights; 0: none is known */
    int cut;               /* the head's first node */
    bool is_known;         /* by its name */
    struct tdmi_network network;
};

/* ---- the head as told ------------------------------------------------------------------------ */

static bool is_called(const tdmi_graph *graph, int node, enum tdmi_op_kind kind, const char *name)
{
    return node > 0 && graph->nodes[node].kind == kind &&
           strcmp(graph->nodes[node].name, name) == 0;
}

/*
 * Networks that a Keras file describes may have dense layers of other names between a global
 * pooling and the last (import/described.c): they are head as well. Otherwise from.
 */
static int first_of_dense(const tdmi_graph *told, int from)
{
    int first = from;
    for (int at = from; at > 0 && told->nodes[at].n_inputs == 1; at = told->nodes[at].inputs[0]) {
        const struct tdmi_node *node = &told->nodes[at];
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
static void find_head(struct telling *t)
{
    const tdmi_graph *told = t->told;
    const int last = told->n_nodes - 1;
    int at = told->nodes[last].inputs[0];
    while (at > 0 && told->nodes[at].n_params == 0 && told->nodes[at].n_inputs == 1)
        at = told->nodes[at].inputs[0];
    const struct tdmi_node *node = &told->nodes[at];
    t->cut = last;
    if (node->n_params == 0 || (node->kind != TDMI_OP_DENSE && node->kind != TDMI_OP_CONV))
        return;
    t->classifier = t->cut = at;
    t->head = (struct tdmi_head){.classes = told->nodes[last].out.c,
                                 .is_logistic = told->nodes[last].kind == TDMI_OP_LOGISTIC,
                                 .label_smoothing = told->nodes[last].attrs.label_smoothing};
    if (is_called(told, t->cut - 1, TDMI_OP_DROPOUT, "dropout"))
        t->head.dropout = told->nodes[--t->cut].attrs.rate;
    if (is_called(told, t->cut - 1, TDMI_OP_RELU, "hidden_relu") &&
        is_called(told, t->cut - 2, TDMI_OP_DENSE, "hidden")) {
        t->cut -= 2;
        t->head.hidden = told->nodes[t->cut].attrs.channels;
    }
    t->cut = first_of_dense(told, t->cut);
}

/* What is not asked for stays as it is. */
static bool keeps_head(const struct telling *t)
{
    const struct tdmi_head *asked = &t->it->request->head, *told = &t->head;
    return asked->classes == 0 || (asked->classes == told->classes &&
                                   (asked->hidden == 0 || asked->hidden == told->hidden) &&
                                   (!(asked->dropout > 0.0) || !(asked->dropout < told->dropout ||
                                                                 asked->dropout > told->dropout)) &&
                                   (!asked->is_logistic || told->is_logistic));
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

/* Of whoever's form and padding it is as told, at the size told. */
static tdm_status make_anew(struct telling *t, const struct tdmi_preprocess *preprocess,
                            tdmi_graph **made, tdm_error *err)
{
    struct tdmi_build what = tdmi_network_defaults(&t->network, t->head.classes);
    what.head = t->head;
    for (int form = 0; t->is_known && form <= (int)TDMI_PUBLISHER_TORCH; form++)
        for (int padding = 0; padding <= (int)TDMI_PADDING_NONE; padding++) {
            tdmi_graph *graph = NULL;
            what.preprocess = *tdmi_graph_preprocess(t->told);
            what.publisher = (enum tdmi_publisher)form;
            what.padding = (enum tdmi_padding)padding;
            tdm_status status = tdmi_network_make(&t->network, &what, &graph, NULL);
            const bool is_it = status == TDM_OK && same_graph(graph, t->told);
            tdmi_graph_free(graph);
            if (status == TDM_E_MEMORY)
                return TDM_FAIL(err, TDM_E_MEMORY, "building a network: out of memory");
            what.preprocess = *preprocess;
            if (is_it)
                return tdmi_network_make(&t->network, &what, made, err);
        }
    return TDM_FAIL(err, TDM_E_USAGE,
                    "the network is told for pictures of %d×%d and is none that is known by its "
                    "name %s: it cannot be had for %d×%d",
                    tdmi_graph_preprocess(t->told)->width, tdmi_graph_preprocess(t->told)->height,
                    t->it->import->network, preprocess->width, preprocess->height);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static tdm_status add_new_head(struct telling *t, tdmi_graph *graph, tdm_error *err)
{
    const struct tdmi_node *classifier = t->classifier ? &t->told->nodes[t->classifier] : NULL;
    int node = t->told->nodes[t->cut].inputs[0];
    const bool is_picture =
        graph->mistake.code == TDM_OK && tdmi_shape_pixels(graph->nodes[node].out) > 1;
    if (is_picture && !(classifier && classifier->kind == TDMI_OP_DENSE))
        node = tdmi_add_global_pool(graph, "features", node);
    tdmi_add_head(graph, &t->it->request->head, classifier ? classifier->name : "predictions",
                  node);
    t->it->import->has_new_head = true;
    return tdmi_import_note(t->it, err,
                            classifier ? "the head for %d classes is new: the file's has %d"
                                       : "the head for %d classes is new: the file has none",
                            t->it->request->head.classes, t->head.classes);
}

/* The told one, or the same at another size, with the head that is asked for. */
static tdm_status build(struct telling *t, tdm_error *err)
{
    struct tdmi_import *import = t->it->import;
    struct tdmi_preprocess preprocess = *tdmi_graph_preprocess(t->told);
    const struct tdmi_preprocess was = preprocess;
    tdmi_graph *resized = NULL;
    TDM_TRY(tdmi_import_take_input(t->it, &preprocess, err), err, "importing %s",
            tdmi_weights_path(t->it->weights));
    const bool is_resized = preprocess.width != was.width || preprocess.height != was.height;
    if (is_resized)
        TDM_TRY(make_anew(t, &preprocess, &resized, err), err, "importing %s",
                tdmi_weights_path(t->it->weights));
    const bool is_kept = keeps_head(t);
    const tdmi_graph *from = resized ? resized : t->told;
    import->graph = tdmi_graph_begun(from, is_kept ? from->n_nodes : t->cut);
    tdmi_graph_free(resized);
    TDMI_NEED_MEMORY(import->graph, err);
    import->graph->nodes[0].attrs.preprocess = preprocess;
    import->graph->head = t->classifier ? t->cut : 0;
    TDMI_TRY(is_kept ? TDM_OK : add_new_head(t, import->graph, err));
    TDMI_TRY(tdmi_graph_finish(import->graph, import->network, err));
    if (is_resized)
        TDMI_TRY(tdmi_import_note(t->it, err,
                                  "pictures become %d×%d here; those of the weights were %d×%d",
                                  preprocess.width, preprocess.height, was.width, was.height));
    return TDM_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Those of the head that was told are of no use to a new one, and no mistake. */
static tdm_status take_old_head(struct telling *t, tdm_error *err)
{
    struct tdmi_importing *it = t->it;
    struct tdmi_bindings old;
    TDM_TRY(tdmi_bindings_init(&old, t->told, it->import->network, it->weights, it->origin,
                               &it->import->arena, err),
            err, "looking for weights");
    TDM_TRY(tdmi_origin_bind(&old, err), err, "looking for weights");
    for (int node = t->cut; node < t->told->n_nodes; node++) {
        const struct tdmi_binding *binding;
        for (int i = 0; (binding = tdmi_binding_of(&old, node, i)) != NULL; i++)
            if (binding->from)
                tdmi_bindings_take(&it->bindings, binding->from);
    }
    tdmi_import_renew_head(it);
    return TDM_OK;
}

static tdm_status bind(struct telling *t, tdm_error *err)
{
    struct tdmi_importing *it = t->it;
    TDM_TRY(tdmi_bindings_init(&it->bindings, it->import->graph, it->import->network, it->weights,
                               it->origin, &it->import->arena, err),
            err, "looking for weights");
    TDM_TRY(tdmi_origin_bind(&it->bindings, err), err, "looking for weights");
    TDMI_TRY(it->import->has_new_head ? take_old_head(t, err) : TDM_OK);
    return tdmi_bindings_check(&it->bindings, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* A name may be said again, not otherwise. */
static tdm_status check_request(const struct telling *t, tdm_error *err)
{
    const struct tdmi_import_request *request = t->it->request;
    const char *path = tdmi_weights_path(t->it->weights);
    struct tdmi_network asked;
    if (request->input.padding)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "importing %s: the file says the padding of each layer; --padding %s says "
                        "it again",
                        path, request->input.padding);
    if (!request->network)
        return TDM_OK;
    TDM_TRY(tdmi_network_find(request->network, &asked, err), err, "importing %s", path);
    if (strcmp(asked.name, t->is_known ? t->network.name : t->it->facts.network) != 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "importing %s: it says that it is a %s, and --model says %s; without "
                        "--model the file's word is taken",
                        path, t->it->facts.network, request->network);
    return TDM_OK;
}

tdm_status tdmi_import_told(struct tdmi_importing *it, tdm_error *err)
{
    struct telling t = {.it = it, .told = it->facts.graph};
    struct tdmi_import *import = it->import;
    t.is_known = tdmi_network_find(it->facts.network, &t.network, NULL) == TDM_OK;
    TDMI_TRY(check_request(&t, err));
    import->network = it->facts.network;
    import->shard = it->facts.shard ? it->facts.shard : t.is_known ? t.network.shard : 8;
    import->learning_rate = t.is_known ? t.network.learning_rate : 0.0125;
    find_head(&t);
    TDMI_TRY(build(&t, err));
    return bind(&t, err);
}
