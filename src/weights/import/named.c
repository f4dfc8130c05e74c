/*
 * One of our networks by name, in the form of its publisher, with as many input channels and
 * classes as the file's tensors have. A model_config beside the weights holds over what is usual of
 * the publisher's: epsilon and momentum of batch norms, and where zeros stand around windows. A
 * configuration that cannot be read is ignored.
 */
#include "base/file/file.h"
#include "weights/fetch/catalogue.h"
#include "weights/import/internal.h"
#include "weights/names.h"

#include <stdio.h>
#include <string.h>

/* ---- the model_config ------------------------------------------------------------------------ */

struct config {
    tdm_json_document *document;
    struct tdmi_keras_config keras;
    bool is_there; /* and can be read */
};

static void release_config(struct config *config)
{
    tdm_json_document_free(config->document);
}

static tdm_status read_config(struct tdmi_importing *it, struct config *config, tdm_error *err)
{
    const char *text = tdmi_weights_fact(it->weights, "model_config");
    if (!text)
        return TDM_OK;
    tdm_status status = tdm_json_read(text, strlen(text), "model_config", &config->document, err);
    if (status == TDM_OK)
        status = tdmi_keras_config_read(tdm_json_root(config->document), &it->import->arena,
                                        &config->keras, err);
    config->is_there = status == TDM_OK;
    if (status == TDM_E_MEMORY)
        return status;
    tdm_error_clear(err);
    return TDM_OK;
}

/* The only layer of that name and class; NULL: none. */
static const struct tdmi_keras_layer *layer_of(const struct tdmi_importing *it,
                                               const struct config *config,
                                               const struct tdmi_node *node, const char *class)
{
    char name[TDMI_NAME_BYTES];
    const struct tdmi_keras_layer *found = NULL;
    if (!tdmi_keras_layer(it->import->network, node->name, name))
        return NULL;
    for (int i = 0; i < config->keras.n_layers; i++) {
        const struct tdmi_keras_layer *layer = &config->keras.layers[i];
        if (strcmp(layer->name, name) != 0 || !strstr(layer->class, class))
            continue;
        if (found)
            return NULL;
        found = layer;
    }
    return found;
}

/* Zeros that two sides share out evenly, or as "same" does, the odd one behind. */
static bool read_zeros(const struct tdmi_keras_layer *zeros, enum tdmi_padding *padding)
{
    const tdm_json_value *rows = tdm_json_at(tdm_json_member(zeros->config, "padding"), 0);
    if (strcmp(zeros->class, "ZeroPadding2D") != 0 || tdm_json_count(rows) != 2)
        return false;
    const int64_t above = tdm_json_as_integer(tdm_json_at(rows, 0), 0);
    const int64_t below = tdm_json_as_integer(tdm_json_at(rows, 1), 0);
    *padding = above == below ? TDMI_PADDING_SYMMETRIC : TDMI_PADDING_SAME;
    return true;
}

static bool config_padding(const struct tdmi_importing *it, const struct config *config,
                           enum tdmi_padding *padding)
{
    const tdmi_graph *graph = it->import->graph;
    for (int i = 0; config->is_there && i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        if (node->kind != TDMI_OP_CONV || node->attrs.stride != 2 || node->attrs.kernel < 2)
            continue;
        const struct tdmi_keras_layer *layer = layer_of(it, config, node, "Conv2D");
        const char *word =
            layer ? tdm_json_as_string(tdm_json_member(layer->config, "padding"), "") : "";
        if (strcmp(word, "same") == 0) {
            *padding = TDMI_PADDING_SAME;
            return true;
        }
        if (strcmp(word, "valid") == 0 && layer->n_inputs == 1 &&
            read_zeros(&config->keras.layers[layer->inputs[0]], padding))
            return true;
    }
    return false;
}

static void config_norms(const struct tdmi_importing *it, const struct config *config)
{
    tdmi_graph *graph = it->import->graph;
    for (int i = 0; config->is_there && i < graph->n_nodes; i++) {
        struct tdmi_op_attrs *attrs = &graph->nodes[i].attrs;
        const struct tdmi_keras_layer *layer =
            graph->nodes[i].kind == TDMI_OP_BATCH_NORM
                ? layer_of(it, config, &graph->nodes[i], "BatchNormalization")
                : NULL;
        if (!layer)
            continue;
        const double epsilon = tdm_json_as_number(tdm_json_member(layer->config, "epsilon"), 0.0);
        const double kept = tdm_json_as_number(tdm_json_member(layer->config, "momentum"), -1.0);
        attrs->epsilon = epsilon > 0.0 && epsilon <= 1.0 ? epsilon : attrs->epsilon;
        attrs->momentum = kept >= 0.0 && kept <= 1.0 ? 1.0 - kept : attrs->momentum;
    }
}

/* ---- the publisher's form -------------------------------------------------------------------- */

/* Where a publisher differs from our defaults of the network. */
static const struct published {
    const char *network; /* or the stem of a family's */
    enum tdmi_publisher publisher;
    enum tdmi_padding padding;
    enum tdmi_scale scale;
} published[] = {
    {"mobilenetv2", TDMI_PUBLISHER_TORCH, TDMI_PADDING_SYMMETRIC, TDMI_SCALE_TORCH},
    {"resnet50", TDMI_PUBLISHER_KERAS, TDMI_PADDING_SYMMETRIC, TDMI_SCALE_CAFFE},
};

static bool is_of_family(const char *name, const char *stem)
{
    size_t n = strlen(stem);
    return strncmp(name, stem, n) == 0 &&
           (name[n] == '\0' || (name[n] == '-' && strcmp(name + n, "-cifar") != 0));
}

/* A file of Keras' form with our names of ResNet-50 holds our form of it. */
static bool has_own_names(const tdmi_weights *weights)
{
    for (size_t i = 0; i < tdmi_weights_count(weights); i++)
        if (strstr(tdmi_weights_at(weights, i)->name, "layer1.0.conv1"))
            return true;
    return false;
}

static void take_published(const struct tdmi_importing *it, const char *network,
                           struct tdmi_build *what)
{
    what->publisher = it->origin;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        const struct published *p = &published[i];
        if (p->publisher != it->origin || !is_of_family(network, p->network))
            continue;
        what->padding = p->padding;
        what->preprocess.scale = p->scale;
    }
    if (it->origin == TDMI_PUBLISHER_KERAS && strcmp(network, "resnet50") == 0 &&
        has_own_names(it->weights)) {
        what->publisher = TDMI_PUBLISHER_OURS;
        what->preprocess.scale = TDMI_SCALE_TORCH;
    }
}

static tdm_status build(struct tdmi_importing *it, const struct tdmi_network *network,
                        const struct tdmi_build *what, tdm_error *err)
{
    tdmi_graph_free(it->import->graph);
    it->import->graph = NULL;
    TDMI_TRY(tdmi_network_make(network, what, &it->import->graph, err));
    return tdmi_import_bind(it, it->import->graph, &it->bindings, err);
}

/* ---- channels and classes -------------------------------------------------------------------- */

/* The axis of a weight that counts inputs (is_out: outputs), as the publisher lays it out. */
static int64_t axis_of(const struct tdmi_importing *it, int node, bool is_out)
{
    const struct tdmi_weights_tensor *from = tdmi_binding_of(&it->bindings, node, 0)->from;
    if (!from || from->rank < 2)
        return 0;
    bool is_torch = it->origin == TDMI_PUBLISHER_TORCH;
    int axis = is_torch ? !is_out : from->rank - 2 + is_out;
    return from->shape[axis];
}

static int first_with_weights(const tdmi_graph *graph, int from)
{
    while (from < graph->n_nodes && graph->nodes[from].n_params == 0)
        from++;
    return from;
}

/* Classes of the last layer, when the head is that layer alone; else 0. */
static int64_t classes_of(const struct tdmi_importing *it)
{
    const tdmi_graph *graph = it->import->graph;
    int last = graph->n_nodes - 2;
    return graph->nodes[last].n_params ? axis_of(it, last, true) : 0;
}

/* PyTorch's tutorial trains LeNet-5 on colours of 32×32 pixels, without padding; its numbers of
 * tensors are those of 28×28 with padding. */
static void take_channels(const struct tdmi_importing *it, const char *network,
                          struct tdmi_build *what)
{
    int64_t channels = axis_of(it, first_with_weights(it->import->graph, 0), false);
    if ((channels != 1 && channels != 3) || channels == what->preprocess.channels)
        return;
    what->preprocess.channels = (int)channels;
    if (channels == 3 && strcmp(network, "lenet5") == 0) {
        what->preprocess.width = what->preprocess.height = 32;
        what->padding = TDMI_PADDING_NONE;
        what->preprocess.scale = TDMI_SCALE_TF;
    }
}

/* Facts of an export of ours. */
static void take_facts(const struct tdmi_importing *it, struct tdmi_build *what)
{
    if (it->facts.has_preprocess)
        what->preprocess = it->facts.preprocess;
    if (it->facts.has_padding)
        what->padding = it->facts.padding;
}

/* ---- what was published ---------------------------------------------------------------------- */

/* torchvision's files are known by eight digits in their names, or by what is in them; those of
 * Keras by their names. */
static tdm_status recognise(struct tdmi_importing *it, const char *network,
                            const struct tdm_weights_known **known, tdm_error *err)
{
    struct tdmi_digest digest;
    *known = NULL;
    if (it->origin == TDMI_PUBLISHER_OURS || it->facts.has_preprocess)
        return TDM_OK;
    *known =
        tdmi_catalogue_recognise(network, tdmi_path_name(tdmi_weights_path(it->weights)), NULL);
    if (*known || it->origin != TDMI_PUBLISHER_TORCH ||
        !tdmi_catalogue_has_size(network, (int64_t)tdmi_weights_file_bytes(it->weights)))
        return TDM_OK;
    TDMI_TRY(tdmi_weights_digest(it->weights, &digest, err));
    *known = tdmi_catalogue_recognise(network, "", digest.sha256);
    return TDM_OK;
}

static void take_recipe(const struct tdm_weights_known *known, struct tdmi_preprocess *preprocess)
{
    preprocess->fit = TDMI_FIT_CROP;
    preprocess->filter = TDMI_FILTER_BILINEAR;
    preprocess->scale = TDMI_SCALE_TORCH;
    preprocess->crop_fraction = 224.0 / known->resize;
}

static void add_guess(tdmi_text *guesses, const char *given, const char *name, const char *value,
                      const char *crop)
{
    if (!given)
        tdmi_text_printf(guesses, "%s%s %s%s", guesses->length_bytes > 0 ? ", " : "", name, value,
                         crop);
}

/* Note the preprocessing in effect where neither file nor request gives all of it. */
static tdm_status report_assumed(struct tdmi_importing *it, const struct tdmi_build *what,
                                 const struct tdm_weights_known *known, tdm_error *err)
{
    const struct tdmi_import_input *input = &it->request->input;
    const struct tdmi_preprocess *preprocess = &what->preprocess;
    char crop[40] = "";
    if (it->facts.has_preprocess || (input->scale && input->padding && input->fit))
        return TDM_OK;
    if (preprocess->fit == TDMI_FIT_CROP)
        snprintf(crop, sizeof crop, " to %.4g", preprocess->crop_fraction);
    if (known)
        return tdmi_import_note(it, err,
                                "the file is %s's %s: images become numbers as was published with "
                                "it: scale %s, fit %s%s, padding %s",
                                known->origin, known->file, tdmi_scale_word(preprocess->scale),
                                tdmi_fit_word(preprocess->fit), crop,
                                tdmi_padding_word(what->padding));
    TDMI_AT_END(tdmi_text_release) tdmi_text guesses = {0};
    add_guess(&guesses, input->scale, "scale", tdmi_scale_word(preprocess->scale), "");
    add_guess(&guesses, input->fit, "fit", tdmi_fit_word(preprocess->fit), crop);
    add_guess(&guesses, input->padding, "padding", tdmi_padding_word(what->padding), "");
    TDMI_TRY(tdmi_text_status(&guesses, err));
    return tdmi_import_note(it, err,
                            TDMI_IMPORT_WARNING
                            "the file does not say how images become numbers; guessed: %s "
                            "(--scale, --fit, --crop-fraction, --padding); " TDMI_IMPORT_CHECK,
                            tdmi_text_string(&guesses));
}

/* ---- the head -------------------------------------------------------------------------------- */

static bool nodes_fit(const struct tdmi_importing *it, int first, int end)
{
    for (int i = first; i < end; i++)
        if (!tdmi_bindings_fit(&it->bindings, i))
            return false;
    return true;
}

static tdm_status settle_head(struct tdmi_importing *it, int64_t classes, tdm_error *err)
{
    const int requested = it->request->head.classes;
    const tdmi_graph *graph = it->import->graph;
    const bool fits = nodes_fit(it, graph->head, graph->n_nodes);
    if (!nodes_fit(it, 0, graph->head) || (fits && tdmi_import_keeps_classes(it)))
        return TDM_OK; /* the check says what does not fit */
    if (requested == 0 && classes == 0)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the weights %s have no last layer for the network %s (%s), and so no "
                        "classes; training on classes of one's own makes one",
                        tdmi_weights_path(it->weights), it->import->network,
                        tdmi_binding_of(&it->bindings, graph->n_nodes - 2, 0)->name);
    if (requested == 0)
        return TDM_OK;
    tdmi_import_renew_head(it);
    return tdmi_import_note_head(it, classes, err);
}

/* ---- which network --------------------------------------------------------------------------- */

static struct tdmi_import_fit fit_of(const struct tdmi_importing *it)
{
    const tdmi_graph *graph = it->import->graph;
    struct tdmi_import_fit fit = {0};
    for (int i = 0; i < graph->head; i++) {
        fit.nodes += graph->nodes[i].n_params > 0;
        fit.fitting += graph->nodes[i].n_params > 0 && tdmi_bindings_fit(&it->bindings, i);
    }
    for (size_t i = 0; i < tdmi_weights_count(it->weights); i++)
        fit.extra += !it->bindings.is_taken[i];
    return fit;
}

/* Builds the network with the channels of the file. */
static tdm_status build_alike(struct tdmi_importing *it, const struct tdmi_network *network,
                              struct tdmi_build *what, tdm_error *err)
{
    TDMI_ARENA_COPY(&it->import->arena, it->import->network, network->name, err);
    *what = tdmi_network_defaults(network, network->classes);
    take_published(it, network->name, what);
    TDMI_TRY(build(it, network, what, err));
    take_channels(it, network->name, what);
    return what->preprocess.channels == network->preprocess.channels
               ? TDM_OK
               : build(it, network, what, err);
}

tdm_status tdmi_import_try(struct tdmi_importing *it, const char *name, struct tdmi_import_fit *fit,
                           tdm_error *err)
{
    struct tdmi_network network;
    struct tdmi_build what;
    TDMI_TRY(tdmi_network_find(name, &network, err));
    TDMI_TRY(build_alike(it, &network, &what, err));
    *fit = fit_of(it);
    return TDM_OK;
}

/* A file of another network is refused in one sentence; the tensors of a file that nearly fits are
 * listed. */
static tdm_status check(struct tdmi_importing *it, const char *name, tdm_error *err)
{
    const struct tdmi_import_fit fit = fit_of(it);
    const char *recognised = NULL;
    if (2 * fit.fitting >= fit.nodes)
        return tdmi_bindings_check(&it->bindings, err);
    TDMI_TRY(tdmi_import_recognise(it, &recognised, err));
    if (recognised)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "the weights %s are of another network than %s: by their tensors they are "
                        "those of %s (--model %s)",
                        tdmi_weights_path(it->weights), name, recognised, recognised);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "the weights %s are of another network than %s: of its %d layers with weights "
                    "before the head, %d are in the file",
                    tdmi_weights_path(it->weights), name, fit.nodes, fit.fitting);
}

tdm_status tdmi_import_named(struct tdmi_importing *it, const char *name, tdm_error *err)
{
    const struct tdmi_import_request *request = it->request;
    TDMI_AT_END(release_config) struct config config = {0};
    struct tdmi_network network;
    const struct tdm_weights_known *known;
    TDMI_TRY(read_config(it, &config, err));
    TDMI_TRY(tdmi_network_find(name, &network, err));
    it->import->shard = network.shard;
    it->import->learning_rate = network.learning_rate;
    TDMI_ARENA_COPY(&it->import->arena, it->import->network, network.name, err);
    struct tdmi_build what = tdmi_network_defaults(&network, network.classes);
    take_published(it, network.name, &what);
    if (request->head.classes > 0)
        what.head = request->head;
    /* The tensors that this first network binds show channels and classes of the second. */
    TDMI_TRY(build(it, &network, &what, err));
    const int64_t classes = classes_of(it);
    TDMI_TRY(recognise(it, network.name, &known, err));
    if (known && known->resize > 0)
        take_recipe(known, &what.preprocess);
    take_channels(it, network.name, &what);
    (void)config_padding(it, &config, &what.padding);
    take_facts(it, &what);
    if (request->head.classes == 0 && classes > 0 && classes <= INT32_MAX)
        what.head.classes = (int)classes;
    TDMI_TRY(tdmi_import_take_input(it, &what.preprocess, err));
    TDMI_TRY(tdmi_import_take_padding(request->input.padding, &what.padding, err));
    TDMI_TRY(build(it, &network, &what, err));
    config_norms(it, &config);
    TDMI_TRY(settle_head(it, classes, err));
    TDMI_TRY(check(it, network.name, err));
    return report_assumed(it, &what, known, err);
}
