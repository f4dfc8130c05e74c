/*
 * A network that a Keras model_config describes: its layers become nodes, and every node's tensors
 * are looked for under the layer's name. For other classes, the network ends before the layers that
 * made its classes, and a head of ours follows.
 */
#include "base/text/json.h"
#include "weights/import/internal.h"
#include "weights/keras/layers.h"
#include "weights/keras/names.h"

#include <string.h>

/* Where the variables of a layer are among those of its group, in the order of Keras. */
struct listed {
    int n_trained, n_fixed; /* variables that training changes, and statistics */
    int trained, fixed;     /* the first of each in the group */
    bool is_by_order;       /* the file names them anew */
};

struct describing {
    struct tdmi_importing *it;
    struct tdmi_keras_config config;
    struct tdmi_keras_build build;
    struct listed *listed; /* by layer */
    bool *is_needed;       /* by layer */
    int classifier;        /* the layer that gives a number a class; -1: none is known */
    int head;        /* the first of the layers that make the classes; the classifier, or before */
    int64_t classes; /* of the classifier */
    int end;         /* the last layer that is taken */
    bool is_cut;     /* a new head follows it */
};

/* ---- what to take --------------------------------------------------------------------------- */

/* From a layer without weights to the one that it makes something of. */
static bool step_back(const struct tdmi_keras_config *config, int *at)
{
    const struct tdmi_keras_layer *layer = &config->layers[*at];
    if (tdmi_keras_is_pair(config, *at, at))
        return true;
    if (*at == 0 || layer->n_inputs != 1 || !tdmi_keras_is_passive(layer))
        return false;
    *at = layer->inputs[0];
    return true;
}

/* Back from the output over what has no weights. */
static void find_classifier(struct describing *d)
{
    const struct tdmi_keras_config *config = &d->config;
    int at = config->output;
    d->classifier = -1;
    while (step_back(config, &at))
        ;
    const struct tdmi_keras_layer *layer = &config->layers[at];
    const bool is_dense = strcmp(layer->class, "Dense") == 0;
    if (at == 0 || layer->n_inputs != 1 || (!is_dense && strcmp(layer->class, "Conv2D") != 0))
        return;
    d->classifier = at;
    d->classes =
        tdm_json_as_integer(tdm_json_member(layer->config, is_dense ? "units" : "filters"), 0);
    if (d->classes == 1)
        d->classes = 2; /* one number decides between two */
}

/*
 * Dense layers in a row from a global pooling to the classifier made the former classes of the
 * features, so they are head. Those behind a whole image (Flatten) are features themselves.
 */
static void find_head(struct describing *d)
{
    const struct tdmi_keras_config *config = &d->config;
    int first = d->classifier;
    d->head = first;
    for (int at = first; at > 0 && config->layers[at].n_inputs == 1;) {
        const struct tdmi_keras_layer *layer = &config->layers[at];
        if (strcmp(layer->class, "GlobalAveragePooling2D") == 0) {
            d->head = first;
            return;
        }
        if (strcmp(layer->class, "Dense") == 0)
            first = at;
        else if (at != d->classifier && strcmp(layer->class, "BatchNormalization") != 0 &&
                 !tdmi_keras_is_passive(layer))
            return;
        at = layer->inputs[0];
    }
}

static void choose_end(struct describing *d)
{
    const struct tdmi_head *head = &d->it->request->head;
    const bool is_other = d->classifier < 0 || d->classes != head->classes || head->hidden > 0 ||
                          head->dropout > 0.0 || head->is_logistic ||
                          !tdmi_import_keeps_classes(d->it);
    d->is_cut = head->classes > 0 && is_other;
    d->end = d->config.output;
    if (d->is_cut && d->classifier >= 0)
        d->end = d->config.layers[d->head].inputs[0];
}

static void mark_needed(struct describing *d)
{
    d->is_needed[d->end] = true;
    for (int i = d->end; i > 0; i--)
        for (int k = 0; d->is_needed[i] && k < d->config.layers[i].n_inputs; k++)
            d->is_needed[d->config.layers[i].inputs[k]] = true;
}

/* ---- the input ------------------------------------------------------------------------------- */

/* Models of keras.applications say who they are; of others nothing is known but the usual. */
static void take_known(struct describing *d, struct tdmi_preprocess *preprocess)
{
    static const struct {
        const char *stem, *network;
        enum tdmi_scale scale;
    } known[] = {{"xception", "xception", TDMI_SCALE_TF},
                 {"mobilenetv2_", "mobilenetv2", TDMI_SCALE_TF},
                 {"resnet50", "resnet50", TDMI_SCALE_CAFFE}};
    struct tdmi_import *import = d->it->import;
    *preprocess = (struct tdmi_preprocess){.fit = TDMI_FIT_STRETCH,
                                           .crop_fraction = 1.0,
                                           .filter = TDMI_FILTER_BILINEAR,
                                           .scale = TDMI_SCALE_TF};
    import->shard = 8;
    import->learning_rate = 0.0125;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct tdmi_network network;
        if (strncmp(d->config.name, known[i].stem, strlen(known[i].stem)) != 0 ||
            tdmi_network_find(known[i].network, &network, NULL) != TDM_OK)
            continue;
        *preprocess = network.preprocess;
        preprocess->scale = known[i].scale;
        import->shard = network.shard;
        import->learning_rate = network.learning_rate;
    }
    if (d->it->facts.has_preprocess)
        *preprocess = d->it->facts.preprocess;
}

static tdm_status add_input(struct describing *d, tdm_error *err)
{
    const struct tdmi_import_input *input = &d->it->request->input;
    struct tdmi_preprocess preprocess;
    bool is_said = false;
    take_known(d, &preprocess);
    for (int i = 1; i < d->config.n_layers; i++) {
        const struct tdmi_keras_layer *layer = &d->config.layers[i];
        if (!d->is_needed[i] || strcmp(layer->class, "Rescaling") != 0 || layer->inputs[0] != 0)
            continue;
        TDMI_TRY(tdmi_keras_rescaling(layer, &preprocess.scale, err));
        is_said = true;
    }
    if (is_said && input->scale)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "the file rescales its input itself; --scale %s says it again",
                        input->scale);
    if (d->config.width || !d->it->facts.has_preprocess)
        preprocess.width = d->config.width ? d->config.width : 224;
    if (d->config.height || !d->it->facts.has_preprocess)
        preprocess.height = d->config.height ? d->config.height : 224;
    preprocess.channels = d->config.channels;
    if (input->padding)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "the file says the padding of each layer; --padding %s says it again",
                        input->padding);
    TDMI_TRY(tdmi_import_take_input(d->it, &preprocess, err));
    tdmi_add_input(d->build.graph, &preprocess);
    if (!is_said && !input->scale && !d->it->facts.has_preprocess)
        return tdmi_import_note(
            d->it, err,
            TDMI_IMPORT_WARNING
            "the file does not say how images become numbers; guessed: scale %s%s%s "
            "(--scale, --fit); " TDMI_IMPORT_CHECK,
            tdmi_scale_word(preprocess.scale), input->fit ? "" : ", fit ",
            input->fit ? "" : tdmi_fit_word(preprocess.fit));
    return TDM_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static tdm_status add_new_head(struct describing *d, int node, tdm_error *err)
{
    tdmi_graph *graph = d->build.graph;
    const struct tdmi_keras_value *value = &d->build.values[d->end];
    bool is_taken = false;
    for (int i = 0; i < graph->n_nodes; i++)
        is_taken |= strcmp(graph->nodes[i].name, "predictions") == 0;
    if (!value->is_flat && graph->mistake.code == TDM_OK &&
        tdmi_shape_pixels(graph->nodes[node].out) > 1)
        node = tdmi_add_global_pool(graph, "features", node);
    tdmi_add_head(graph, &d->it->request->head, is_taken ? "new_predictions" : "predictions", node);
    d->it->import->has_new_head = true;
    const int classes = d->it->request->head.classes;
    const struct tdmi_keras_layer *layers = d->config.layers;
    if (d->classifier < 0 || (d->classes == classes && !tdmi_import_keeps_classes(d->it)))
        return tdmi_import_note_head(d->it, d->classifier < 0 ? 0 : d->classes, err);
    if (d->head == d->classifier)
        return tdmi_import_note(d->it, err,
                                "the head for %d classes is new: it takes the place of layer '%s'",
                                classes, layers[d->classifier].name);
    return tdmi_import_note(
        d->it, err, "the head for %d classes is new: it takes the place of layers '%s' to '%s'",
        classes, layers[d->head].name, layers[d->classifier].name);
}

static tdm_status add_end(struct describing *d, tdm_error *err)
{
    tdmi_graph *graph = d->build.graph;
    const enum tdmi_keras_end end = d->build.values[d->end].end;
    const int node = tdmi_keras_node(&d->build, d->end);
    if (d->is_cut)
        return add_new_head(d, node, err);
    if (graph->mistake.code == TDM_OK && tdmi_shape_pixels(graph->nodes[node].out) > 1)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the network ends in an image of features, not in classes; training on "
                        "classes of one's own gives it a head");
    for (int i = 0; i < d->build.n_sources; i++)
        if (d->build.sources[i].layer == d->head)
            graph->head = d->build.sources[i].node;
    struct tdmi_op_attrs attrs = {.label_smoothing = d->it->request->head.label_smoothing};
    const bool is_logistic = end == TDMI_KERAS_SIGMOID;
    tdmi_graph_add(graph, is_logistic ? TDMI_OP_LOGISTIC : TDMI_OP_SOFTMAX,
                   is_logistic ? "logistic" : "softmax", node, attrs);
    if (end == TDMI_KERAS_LOGITS)
        return tdmi_import_note(
            d->it, err, "the network does not end in softmax: its outputs are taken for logits");
    return TDM_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static bool has(const struct tdmi_keras_layer *layer, const char *key)
{
    return tdm_json_as_bool(tdm_json_member(layer->config, key), true);
}

/* Variable of its layer that tensor i of a node is, and its number there; false: Keras leaves it at
 * 1 or 0. */
static bool variable_of(const struct describing *d, const struct tdmi_keras_source *source, int i,
                        enum tdmi_keras_variable *variable, int *number)
{
    const struct tdmi_keras_layer *layer = &d->config.layers[source->layer];
    *number = i;
    if (strcmp(layer->class, "BatchNormalization") == 0) {
        const bool has_gamma = has(layer, "scale"), has_beta = has(layer, "center");
        *variable = (enum tdmi_keras_variable)(TDMI_KERAS_GAMMA + i);
        *number -= (i > 0 && !has_gamma) + (i > 1 && !has_beta);
        return i == 0 ? has_gamma : i == 1 ? has_beta : true;
    }
    const bool is_second = source->part == TDMI_KERAS_SECOND_HALF;
    *number += is_second;
    *variable = i > 0                                   ? TDMI_KERAS_BIAS
                : is_second                             ? TDMI_KERAS_POINTWISE
                : source->part == TDMI_KERAS_FIRST_HALF ? TDMI_KERAS_DEPTHWISE
                                                        : TDMI_KERAS_KERNEL;
    return true;
}

static void count_variables(const struct tdmi_keras_layer *layer, struct listed *listed)
{
    static const struct {
        const char *class;
        int n_kernels;
    } known[] = {{"Conv2D", 1}, {"Dense", 1}, {"DepthwiseConv2D", 1}, {"SeparableConv2D", 2}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(layer->class, known[i].class) == 0)
            listed->n_trained = known[i].n_kernels + has(layer, "use_bias");
    if (strcmp(layer->class, "BatchNormalization") == 0) {
        listed->n_trained = has(layer, "scale") + has(layer, "center");
        listed->n_fixed = 2;
    }
}

/* A group lists the variables that are trained, layer by layer, then all others: statistics, and
 * the variables of frozen layers. */
static void list_group(struct describing *d, const struct tdmi_keras_names *names, int first,
                       int end)
{
    const struct tdmi_keras_layer *layers = d->config.layers;
    int n = 0;
    bool is_named_anew = false;
    for (int i = first; i < end; i++) {
        struct listed *it = &d->listed[i];
        count_variables(&layers[i], it);
        is_named_anew |= it->n_trained + it->n_fixed > 0 &&
                         !tdmi_keras_has_layer(names, layers[i].group, layers[i].name);
        if (!has(&layers[i], "trainable"))
            continue;
        it->trained = n;
        n += it->n_trained;
    }
    for (int i = first; i < end; i++) {
        struct listed *it = &d->listed[i];
        if (!has(&layers[i], "trainable")) {
            it->trained = n;
            n += it->n_trained;
        }
        it->fixed = n;
        n += it->n_fixed;
    }
    is_named_anew = is_named_anew && tdmi_keras_count_in(names, layers[first].group) == n;
    for (int i = first; i < end; i++)
        d->listed[i].is_by_order = is_named_anew;
}

/* Groups are layers of the outermost model: what lies in one follows one another. */
static tdm_status list_groups(struct describing *d, const struct tdmi_keras_names *names,
                              tdm_error *err)
{
    const struct tdmi_keras_layer *layers = d->config.layers;
    TDMI_ARENA_NEW(d->it->bindings.arena, d->listed, d->config.n_layers, err);
    for (int first = 1, end; !names->is_numbered && first < d->config.n_layers; first = end) {
        for (end = first + 1;
             end < d->config.n_layers && strcmp(layers[end].group, layers[first].group) == 0;)
            end++;
        list_group(d, names, first, end);
    }
    return TDM_OK;
}

static struct tdmi_keras_place place_of(const struct describing *d,
                                        const struct tdmi_keras_names *names, int layer_index,
                                        int number)
{
    const struct tdmi_keras_layer *layer = &d->config.layers[layer_index];
    const struct listed *listed = &d->listed[layer_index];
    if (!names->is_numbered) {
        if (listed->is_by_order)
            number +=
                number < listed->n_trained ? listed->trained : listed->fixed - listed->n_trained;
        return (struct tdmi_keras_place){layer->name, layer->group, number, listed->is_by_order};
    }
    const char *slash = strrchr(layer->number, '/');
    return (struct tdmi_keras_place){slash ? slash + 1 : layer->number, layer->number, number,
                                     false};
}

static tdm_status bind_source(struct describing *d, const struct tdmi_keras_names *names,
                              const struct tdmi_keras_source *source, tdm_error *err)
{
    struct tdmi_bindings *bindings = &d->it->bindings;
    const struct tdmi_keras_layer *layer = &d->config.layers[source->layer];
    struct tdmi_binding *binding;
    for (int i = 0; (binding = tdmi_binding_of(bindings, source->node, i)) != NULL; i++) {
        enum tdmi_keras_variable variable;
        int number;
        if (!variable_of(d, source, i, &variable, &number)) {
            binding->is_fresh = true;
            continue;
        }
        const struct tdmi_keras_place place = place_of(d, names, source->layer, number);
        const char *name = names->is_numbered
                               ? tdmi_arena_printf(bindings->arena, "%s/vars/%d (layer %s)",
                                                   layer->number, number, layer->name)
                               : tdmi_arena_printf(bindings->arena, "%s/%s", layer->name,
                                                   tdmi_keras_variable_name(variable));
        TDMI_CHECK_MEMORY(name, err);
        TDMI_TRY(tdmi_bind(bindings, binding, tdmi_keras_find(names, &place, variable), name, err));
    }
    return TDM_OK;
}

/* Tensors of layers that a new head replaces, or that no layer reads, are of no use and no mistake.
 */
static void take_unneeded(struct describing *d, const struct tdmi_keras_names *names)
{
    for (int i = 1; i < d->config.n_layers; i++) {
        const struct listed *listed = &d->listed[i];
        const int n = listed->is_by_order ? listed->n_trained + listed->n_fixed
                                          : (int)TDMI_KERAS_VARIANCE + 1;
        for (int v = 0; !d->is_needed[i] && v < n; v++) {
            const struct tdmi_keras_place place = place_of(d, names, i, v);
            const struct tdmi_weights_tensor *tensor =
                tdmi_keras_find(names, &place, (enum tdmi_keras_variable)v);
            if (tensor)
                tdmi_bindings_take(&d->it->bindings, tensor);
        }
    }
}

static tdm_status bind(struct describing *d, tdm_error *err)
{
    struct tdmi_importing *it = d->it;
    struct tdmi_keras_names names;
    TDMI_TRY(tdmi_bindings_init(&it->bindings, it->import->graph, it->import->network, it->weights,
                                TDMI_PUBLISHER_KERAS, &it->import->arena, err));
    TDMI_TRY(tdmi_keras_names_init(&names, &it->bindings, err));
    TDMI_TRY(list_groups(d, &names, err));
    for (int i = 0; i < d->build.n_sources; i++)
        TDMI_TRY(bind_source(d, &names, &d->build.sources[i], err));
    take_unneeded(d, &names);
    if (d->is_cut)
        tdmi_import_renew_head(it);
    return tdmi_bindings_check(&it->bindings, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static tdm_status build(struct describing *d, tdm_error *err)
{
    struct tdmi_import *import = d->it->import;
    const size_t n = (size_t)d->config.n_layers;
    TDMI_ARENA_NEW(&import->arena, d->is_needed, n, err);
    TDMI_ARENA_NEW(&import->arena, d->build.values, n, err);
    TDMI_ARENA_NEW(&import->arena, d->build.sources, 2 * n, err);
    TDMI_ARENA_COPY(&import->arena, import->network, d->config.name, err);
    d->build.graph = import->graph = tdmi_graph_new();
    d->build.config = &d->config;
    TDMI_CHECK_MEMORY(import->graph, err);
    find_classifier(d);
    find_head(d);
    choose_end(d);
    mark_needed(d);
    TDMI_TRY(add_input(d, err));
    for (int i = 1; i <= d->end; i++)
        if (d->is_needed[i])
            TDMI_TRY(tdmi_keras_add_layer(&d->build, i, err));
    TDMI_TRY(add_end(d, err));
    TDMI_TRY(tdmi_graph_finish(import->graph, import->network, err));
    if (d->build.left_out)
        TDMI_TRY(tdmi_import_note(d->it, err,
                                  "layers with an effect in training alone are left out (%s)",
                                  d->build.left_out));
    return TDM_OK;
}

tdm_status tdmi_import_described(struct tdmi_importing *it, tdm_error *err)
{
    struct describing d = {.it = it};
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const char *text = tdmi_weights_fact(it->weights, "model_config");
    TDMI_TRY(tdm_json_read(text, strlen(text), "model_config", &document, err));
    TDMI_TRY(tdmi_keras_config_read(tdm_json_root(document), &it->import->arena, &d.config, err));
    TDMI_TRY(build(&d, err));
    return bind(&d, err);
}
