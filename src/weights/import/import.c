/*
 * The importer: which of request and file decides the network, names of classes, and the values.
 */
#include "weights/import/internal.h"
#include "base/file/file.h"
#include "base/text/quote.h"

#include <stdarg.h>
#include <string.h>

tdm_status tdmi_import_note(struct tdmi_importing *it, tdm_error *err, const char *format, ...)
{
    struct tdmi_import *import = it->import;
    char text[TDM_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    tdmi_quote(text, sizeof text, format, arguments);
    va_end(arguments);
    TDMI_ARENA_ROOM(&import->arena, import->notes, import->notes_capacity, (size_t)import->n_notes,
                    err);
    TDMI_ARENA_COPY(&import->arena, import->notes[import->n_notes], text, err);
    import->n_notes++;
    return TDM_OK;
}

bool tdmi_import_keeps_classes(const struct tdmi_importing *it)
{
    const struct tdmi_import_request *request = it->request;
    if (request->head.classes == 0 || !request->classes)
        return true;
    bool is_same = it->facts.n_classes == request->n_classes;
    for (int i = 0; is_same && i < request->n_classes; i++)
        is_same = strcmp(it->facts.classes[i], request->classes[i]) == 0;
    return is_same;
}

tdm_status tdmi_import_note_head(struct tdmi_importing *it, int64_t file_classes, tdm_error *err)
{
    const int classes = it->request->head.classes;
    it->import->has_new_head = true;
    if (file_classes == 0 && it->request->ignores_head)
        return TDM_OK;
    if (file_classes == 0)
        return tdmi_import_note(it, err, "the head for %d classes is new: the file has none",
                                classes);
    if (file_classes == classes && !tdmi_import_keeps_classes(it))
        return tdmi_import_note(
            it, err, "the head for %d classes is new: the file's is for as many, %s", classes,
            it->facts.classes ? "with other names" : "which it does not name");
    return tdmi_import_note(it, err, "the head for %d classes is new: the file's has %lld", classes,
                            (long long)file_classes);
}

/* ---- the input ------------------------------------------------------------------------------- */

tdm_status tdmi_import_take_padding(const char *word, enum tdmi_padding *padding, tdm_error *err)
{
    if (!word)
        return TDM_OK;
    bool is_same = strcmp(word, "same") == 0;
    if (!is_same && strcmp(word, "symmetric") != 0)
        return TDM_FAIL(err, TDM_E_USAGE, "padding \"%s\"; same and symmetric are possible", word);
    *padding = is_same ? TDMI_PADDING_SAME : TDMI_PADDING_SYMMETRIC;
    return TDM_OK;
}

tdm_status tdmi_import_input_apply(const struct tdmi_import_input *input,
                                   struct tdmi_preprocess *preprocess, tdm_error *err)
{
    if (input->fit)
        TDMI_TRY(tdmi_fit_find(input->fit, &preprocess->fit, err));
    if (input->filter)
        TDMI_TRY(tdmi_filter_find(input->filter, &preprocess->filter, err));
    if (input->scale)
        TDMI_TRY(tdmi_scale_find(input->scale, &preprocess->scale, err));
    if (input->crop_fraction != 0.0) {
        if (!(input->crop_fraction >= 0.01 && input->crop_fraction <= 1.0))
            return TDM_FAIL(err, TDM_E_USAGE, "crop fraction %g; 0.01 to 1 is possible",
                            input->crop_fraction);
        preprocess->crop_fraction = input->crop_fraction;
    }
    if (input->crop_fraction != 0.0 && preprocess->fit != TDMI_FIT_CROP)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a crop fraction is given and images are not cropped; --fit crop crops");
    if (input->size > 0)
        preprocess->width = preprocess->height = input->size;
    return TDM_OK;
}

tdm_status tdmi_import_take_input(const struct tdmi_importing *it,
                                  struct tdmi_preprocess *preprocess, tdm_error *err)
{
    TDMI_TRY(tdmi_import_input_apply(&it->request->input, preprocess, err));
    /* Published accuracies are of whole images. */
    preprocess->uses_draft = it->facts.has_preprocess && it->facts.preprocess.uses_draft;
    return TDM_OK;
}

/* ---- bindings -------------------------------------------------------------------------------- */

void tdmi_import_renew_head(struct tdmi_importing *it)
{
    const tdmi_graph *graph = it->import->graph;
    for (int node = graph->head; node < graph->n_nodes; node++) {
        struct tdmi_binding *binding;
        for (int i = 0; (binding = tdmi_binding_of(&it->bindings, node, i)) != NULL; i++)
            binding->is_fresh = true;
    }
}

tdm_status tdmi_import_bind(const struct tdmi_importing *it, const tdmi_graph *graph,
                            struct tdmi_bindings *bindings, tdm_error *err)
{
    TDMI_TRY(tdmi_bindings_init(bindings, graph, it->import->network, it->weights, it->origin,
                                &it->import->arena, err));
    return tdmi_origin_bind(bindings, err);
}

/* ---- colours -------------------------------------------------------------------------------- */

/* Weights of the scale "caffe" were trained on blue, green and red; our pixels have the opposite
 * order, so the first convolution is flipped. */
static tdm_status flip_colours(struct tdmi_importing *it, tdm_error *err)
{
    const tdmi_graph *graph = it->import->graph;
    const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(graph);
    if (it->facts.has_preprocess)
        return TDM_OK; /* ours, flipped before it was exported */
    if (preprocess->scale != TDMI_SCALE_CAFFE || preprocess->channels != 3)
        return TDM_OK;
    for (int i = 1; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        if (node->inputs[0] != 0 && !(node->n_inputs > 1 && node->inputs[1] == 0))
            continue;
        if (node->kind != TDMI_OP_CONV || node->attrs.groups != 1)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "the scale caffe flips the colours of a first convolution, and '%s' is "
                            "none; tf, torch, unit and raw are possible",
                            node->name);
        const struct tdmi_tensor *weight = &graph->params[node->first_param];
        const int outputs = weight->spec.dims[3];
        float *values = it->import->params + weight->offset;
        for (int64_t pixel = 0; pixel < weight->n / (3 * outputs); pixel++)
            for (int o = 0; o < outputs; o++) {
                float *red = values + 3 * outputs * pixel + o, *blue = red + (ptrdiff_t)2 * outputs;
                float kept = *red;
                *red = *blue;
                *blue = kept;
            }
    }
    return TDM_OK;
}

/* ---- classes --------------------------------------------------------------------------------- */

static tdm_status name_classes(struct tdmi_importing *it, tdm_error *err)
{
    struct tdmi_import *import = it->import;
    const char *const *names = it->request->classes;
    import->n_classes = tdmi_graph_classes(import->graph);
    if (it->request->classes && it->request->n_classes != import->n_classes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%d names of classes for the %d outputs of %s; each needs one",
                        it->request->n_classes, import->n_classes, tdmi_weights_path(it->weights));
    if (!names && !import->has_new_head && it->facts.n_classes == import->n_classes)
        names = it->facts.classes;
    import->is_unnamed = !names;
    if (!names && !import->has_new_head && import->n_classes == TDMI_IMAGENET_CLASSES) {
        names = tdmi_imagenet_classes();
        TDMI_TRY(tdmi_import_note(it, err,
                                  "the file has %d classes without names: those of ImageNet are "
                                  "taken (predict --classes FILE gives others)",
                                  TDMI_IMAGENET_CLASSES));
    }
    TDMI_ARENA_NEW(&import->arena, import->classes, import->n_classes, err);
    for (int i = 0; i < import->n_classes; i++) {
        import->classes[i] = names ? tdmi_arena_copy(&import->arena, names[i])
                                   : tdmi_arena_printf(&import->arena, "class %d", i);
        TDMI_CHECK_MEMORY(import->classes[i], err);
    }
    return TDM_OK;
}

/* ---- where it came from ---------------------------------------------------------------------- */

static tdm_status trace(struct tdmi_importing *it, tdm_error *err)
{
    struct tdmi_lineage *lineage = &it->import->lineage;
    tdmi_arena *arena = &it->import->arena;
    struct tdmi_digest digest;
    const char *licence = tdmi_weights_fact(it->weights, "license");
    if (!licence)
        licence = tdmi_weights_fact(it->weights, "licence");
    lineage->origin = tdmi_origin_name(it->origin);
    lineage->network = it->import->network;
    TDMI_ARENA_COPY(arena, lineage->file, tdmi_path_name(tdmi_weights_path(it->weights)), err);
    TDMI_ARENA_COPY(arena, lineage->form, tdmi_weights_form_name(it->weights), err);
    if (licence)
        TDMI_ARENA_COPY(arena, lineage->licence, licence, err);
    if (it->request->wants_hash && !tdmi_weights_is_folder(it->weights)) {
        TDMI_TRY(tdmi_weights_digest(it->weights, &digest, err));
        TDMI_ARENA_COPY(arena, lineage->sha256, digest.sha256, err);
    }
    return TDM_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Does --model only repeat the file? */
static bool repeats_file(const struct tdmi_importing *it)
{
    struct tdmi_network requested, recorded;
    return it->facts.network &&
           tdmi_network_find(it->request->network, &requested, NULL) == TDM_OK &&
           tdmi_network_find(it->facts.network, &recorded, NULL) == TDM_OK &&
           strcmp(requested.name, recorded.name) == 0;
}

/* As numpy.savez(file, *arrays) leaves them. */
static bool has_no_names(const tdmi_weights *weights)
{
    return tdmi_weights_find(weights, "arr_0") && tdmi_weights_find(weights, "arr_1");
}

/* The most detailed description decides: nodes, then layers, then a name. */
static tdm_status make_graph(struct tdmi_importing *it, tdm_error *err)
{
    const bool is_described = tdmi_weights_fact(it->weights, "model_config") != NULL;
    if (it->facts.graph)
        return tdmi_import_graph(it, err);
    if (has_no_names(it->weights))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its arrays have no names (arr_0, arr_1 and so on), so nothing says which "
                        "is which; numpy.savez(file, **{name: array}) gives them some");
    if (it->request->network && !(is_described && repeats_file(it)))
        return tdmi_import_named(it, it->request->network, err);
    if (is_described)
        return tdmi_import_described(it, err);
    if (it->facts.network)
        return tdmi_import_named(it, it->facts.network, err);
    const char *name = NULL;
    TDMI_TRY(tdmi_import_recognise(it, &name, err));
    if (!name)
        return TDM_FAIL(
            err, TDM_E_USAGE,
            "the file does not say its network, and its tensors are those of no network "
            "that is known here; --model NAME says it (tandem train --help lists them)");
    TDMI_TRY(tdmi_import_note(it, err, "by its tensors the file is a %s", name));
    return tdmi_import_named(it, name, err);
}

/* A few words of a file can describe a network that no memory holds. Within these limits it is
 * made, if the machine has the memory. */
enum { MOST_SIDE = 4096, MOST_ACTIVATION = 1 << 27, MOST_TIMES_FILE = 16 };
#define ALWAYS_MADE ((int64_t)64 << 20)

/* As many outputs before the last layer as keep the network within so many times the file; 0: none
 * do, or it is not they that make it large. */
static int64_t most_hidden(const struct tdmi_importing *it, int64_t allowed_bytes)
{
    const tdmi_graph *graph = it->import->graph;
    const int64_t values = allowed_bytes / (int64_t)sizeof(float);
    for (int i = 0; it->request->head.hidden > 0 && i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        if (node->kind != TDMI_OP_DENSE || strcmp(node->name, "hidden") != 0)
            continue;
        const int64_t an_output = tdmi_shape_values(node->in[0]) + 1 + it->request->head.classes;
        const int64_t others = graph->param_values - an_output * it->request->head.hidden;
        return others < values ? (values - others) / an_output : 0;
    }
    return 0;
}

static tdm_status check_size(const struct tdmi_importing *it, tdm_error *err)
{
    const tdmi_graph *graph = it->import->graph;
    const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(graph);
    const int64_t needed = (int64_t)sizeof(float) * graph->param_values;
    int64_t stored = 0;
    for (size_t i = 0; i < tdmi_weights_count(it->weights); i++)
        stored += (int64_t)tdmi_weights_at(it->weights, i)->bytes;
    if (preprocess->width > MOST_SIDE || preprocess->height > MOST_SIDE)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "its network reads images of %d×%d pixels; at most %d a side are accepted",
                        preprocess->width, preprocess->height, MOST_SIDE);
    for (int i = 0; i < graph->n_nodes; i++)
        if (tdmi_shape_values(graph->nodes[i].out) > MOST_ACTIVATION)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "'%s' would give %lld values of one image; at most %d are accepted",
                            graph->nodes[i].name, (long long)tdmi_shape_values(graph->nodes[i].out),
                            MOST_ACTIVATION);
    if (needed <= ALWAYS_MADE || needed / MOST_TIMES_FILE <= stored)
        return TDM_OK;
    const int64_t allowed =
        stored > ALWAYS_MADE / MOST_TIMES_FILE ? stored * MOST_TIMES_FILE : ALWAYS_MADE;
    const int64_t hidden = most_hidden(it, allowed);
    if (hidden > 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "--hidden %d makes a network of %lld bytes of weights, and the file has "
                        "%lld; with it at most %lld is accepted",
                        it->request->head.hidden, (long long)needed, (long long)stored,
                        (long long)hidden);
    return TDM_FAIL(err, TDM_E_INPUT,
                    "its network would have %lld bytes of weights, and the file has %lld; %d times "
                    "as much, and 64 MiB always, is accepted",
                    (long long)needed, (long long)stored, MOST_TIMES_FILE);
}

static tdm_status import(struct tdmi_importing *it, tdm_error *err)
{
    struct tdmi_import *made = it->import;
    TDMI_TRY(tdmi_import_read_facts(it, err));
    TDMI_TRY(make_graph(it, err));
    TDMI_TRY(check_size(it, err));
    TDMI_ARENA_NEW(&made->arena, made->params, made->graph->param_values + 1, err);
    TDMI_ARENA_NEW(&made->arena, made->states, made->graph->state_values + 1, err);
    TDMI_TRY(tdmi_bindings_fill(&it->bindings, it->request->seed, made->params, made->states, err));
    TDMI_TRY(flip_colours(it, err));
    TDMI_TRY(name_classes(it, err));
    return trace(it, err);
}

tdm_status tdmi_import(const tdmi_weights *weights, const struct tdmi_import_request *request,
                       struct tdmi_import *imported, tdm_error *err)
{
    struct tdmi_importing it = {.weights = weights,
                                .request = request,
                                .import = imported,
                                .origin = tdmi_origin_of(weights)};
    *imported = (struct tdmi_import){0};
    const tdm_status status = import(&it, err);
    tdmi_graph_free(it.facts.graph);
    if (status != TDM_OK)
        tdmi_import_release(imported);
    return TDM_WRAP(err, status, "importing %s", tdmi_weights_path(weights));
}

void tdmi_import_release(struct tdmi_import *import)
{
    tdmi_graph_free(import->graph);
    tdmi_arena_release(&import->arena);
    *import = (struct tdmi_import){0};
}
