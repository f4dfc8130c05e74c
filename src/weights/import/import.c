/*
 * The importer: whose word is taken for the network, what its classes are called, and the values.
 */
#include "weights/import/import.h"
#include "base/file/file.h"
#include "weights/allocated.h"
#include "weights/fetch/digest.h"
#include "weights/import/internal.h"
#include "base/text/quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static tdm_status no_memory(const tdmi_weights *weights, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "importing %s: out of memory", tdmi_weights_path(weights));
}

tdm_status tdmi_import_note(struct tdmi_importing *it, tdm_error *err, const char *format, ...)
{
    struct tdmi_import *import = it->import;
    char text[TDM_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    tdmi_quote(text, sizeof text, format, arguments);
    va_end(arguments);
    /* A new array for each: there are few. */
    const char **notes =
        tdmi_arena_alloc(&import->arena, (size_t)import->n_notes + 1, sizeof *notes);
    const char *note = tdmi_arena_copy(&import->arena, text);
    TDMI_NEED_MEMORY(notes && note, err);
    if (import->n_notes > 0)
        memcpy(notes, import->notes, (size_t)import->n_notes * sizeof *notes);
    notes[import->n_notes++] = note;
    import->notes = notes;
    return TDM_OK;
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
        TDM_TRY(tdmi_fit_find(input->fit, &preprocess->fit, err), err, "the input's fit");
    if (input->filter)
        TDM_TRY(tdmi_filter_find(input->filter, &preprocess->filter, err), err,
                "the input's resampling");
    if (input->scale)
        TDM_TRY(tdmi_scale_find(input->scale, &preprocess->scale, err), err, "the input's scale");
    if (input->crop_fraction != 0.0) {
        if (!(input->crop_fraction >= 0.01 && input->crop_fraction <= 1.0))
            return TDM_FAIL(err, TDM_E_USAGE, "crop fraction %g; 0.01 to 1 is possible",
                            input->crop_fraction);
        preprocess->crop_fraction = input->crop_fraction;
    }
    if (input->crop_fraction != 0.0 && preprocess->fit != TDMI_FIT_CROP)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "a crop fraction is given and pictures are not cropped; --fit crop crops");
    if (input->size > 0)
        preprocess->width = preprocess->height = input->size;
    return TDM_OK;
}

tdm_status tdmi_import_take_input(const struct tdmi_importing *it,
                                  struct tdmi_preprocess *preprocess, tdm_error *err)
{
    TDM_TRY(tdmi_import_input_apply(&it->request->input, preprocess, err), err, "the input");
    /* Published accuracies are of whole images. */
    preprocess->uses_draft = it->facts.has_preprocess && it->facts.preprocess.uses_draft;
    return TDM_OK;
}

/* ---- the head -------------------------------------------------------------------------------- */

void tdmi_import_renew_head(struct tdmi_importing *it)
{
    const tdmi_graph *graph = it->import->graph;
    for (int node = graph->head; node < graph->n_nodes; node++) {
        struct tdmi_binding *binding;
        for (int i = 0; (binding = tdmi_binding_of(&it->bindings, node, i)) != NULL; i++)
            binding->is_fresh = true;
    }
}

/* ---- colours -------------------------------------------------------------------------------- */

/* Weights of the scale "caffe" were trained on blue, green and red; our pixels are the other way
 * round, so the first convolution is turned. */
static tdm_status turn_colours(struct tdmi_importing *it, tdm_error *err)
{
    const tdmi_graph *graph = it->import->graph;
    const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(graph);
    if (it->facts.has_preprocess)
        return TDM_OK; /* ours, turned before it was exported */
    if (preprocess->scale != TDMI_SCALE_CAFFE || preprocess->channels != 3)
        return TDM_OK;
    for (int i = 1; i < graph->n_nodes; i++) {
        const struct tdmi_node *node = &graph->nodes[i];
        if (node->inputs[0] != 0 && !(node->n_inputs > 1 && node->inputs[1] == 0))
            continue;
        if (node->kind != TDMI_OP_CONV || node->attrs.groups != 1)
            return TDM_FAIL(err, TDM_E_USAGE,
                            "importing %s: the scale caffe turns the colours of a first "
                            "convolution, and '%s' is none; tf, torch, unit and raw are possible",
                            tdmi_weights_path(it->weights), node->name);
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

static const char *class_name(const struct tdmi_importing *it, const tdm_json_value *said, int i)
{
    tdmi_arena *arena = &it->import->arena;
    if (it->request->classes)
        return tdmi_arena_copy(arena, it->request->classes[i]);
    const char *name = tdm_json_as_string(tdm_json_at(said, (size_t)i), NULL);
    return name ? tdmi_arena_copy(arena, name) : tdmi_arena_printf(arena, "class %d", i);
}

/* What a file says of its classes: an array of names under "classes", as our writers put it. */
static tdm_status name_classes(struct tdmi_importing *it, tdm_error *err)
{
    struct tdmi_import *import = it->import;
    tdm_json_document *document = NULL;
    const char *text = tdmi_weights_fact(it->weights, "classes");
    const tdm_json_value *said = NULL;
    tdm_status status = TDM_OK;
    import->n_classes = tdmi_graph_classes(import->graph);
    if (it->request->classes && it->request->n_classes != import->n_classes)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%d names of classes for the %d outputs of %s; one for each is wanted",
                        it->request->n_classes, import->n_classes, tdmi_weights_path(it->weights));
    if (text && !import->has_new_head &&
        tdm_json_read(text, strlen(text), "the classes of the weights", &document, NULL) == TDM_OK)
        said = tdm_json_root(document);
    if (tdm_json_count(said) != (size_t)import->n_classes)
        said = NULL;
    import->is_unnamed = !said && !it->request->classes;
    import->classes =
        tdmi_arena_alloc(&import->arena, (size_t)import->n_classes, sizeof *import->classes);
    for (int i = 0; import->classes && i < import->n_classes && status == TDM_OK; i++) {
        import->classes[i] = class_name(it, said, i);
        if (!import->classes[i])
            status = no_memory(it->weights, err);
    }
    tdm_json_document_free(document);
    return import->classes ? status : no_memory(it->weights, err);
}

/* ---- where it came from ---------------------------------------------------------------------- */

static tdm_status trace(struct tdmi_importing *it, tdm_error *err)
{
    struct tdmi_import *import = it->import;
    tdmi_arena *arena = &import->arena;
    const char *path = tdmi_weights_path(it->weights);
    const char *licence = tdmi_weights_fact(it->weights, "license");
    if (!licence)
        licence = tdmi_weights_fact(it->weights, "licence");
    import->lineage = (struct tdmi_lineage){
        .file = tdmi_arena_copy(arena, tdmi_path_name(path)),
        .form = tdmi_arena_copy(arena, tdmi_weights_form_name(it->weights)),
        .origin = tdmi_origin_name(it->origin),
        .network = import->network,
        .licence = licence ? tdmi_arena_copy(arena, licence) : NULL,
    };
    if (!import->lineage.file || !import->lineage.form || (licence && !import->lineage.licence))
        return no_memory(it->weights, err);
    if (it->request->wants_hash && tdmi_file_kind_of(path) == TDMI_FILE_REGULAR) {
        struct tdmi_digest digest;
        TDM_TRY(tdmi_digest_file(path, &digest, err), err, "importing %s", path);
        import->lineage.sha256 = tdmi_arena_copy(arena, digest.sha256);
        TDMI_NEED_MEMORY(import->lineage.sha256, err);
    }
    return TDM_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Is --model no more than what the file says itself? */
static bool says_it_again(const struct tdmi_importing *it)
{
    struct tdmi_network asked, told;
    return it->facts.network && tdmi_network_find(it->request->network, &asked, NULL) == TDM_OK &&
           tdmi_network_find(it->facts.network, &told, NULL) == TDM_OK &&
           strcmp(asked.name, told.name) == 0;
}

/* As numpy.savez(file, *arrays) leaves them. */
static bool has_no_names(const tdmi_weights *weights)
{
    return tdmi_weights_find(weights, "arr_0") && tdmi_weights_find(weights, "arr_1");
}

/* Who knows more goes first: nodes, then layers, then a name. */
static tdm_status make_graph(struct tdmi_importing *it, tdm_error *err)
{
    const bool is_described = tdmi_weights_fact(it->weights, "model_config") != NULL;
    if (it->facts.graph)
        return tdmi_import_told(it, err);
    if (has_no_names(it->weights))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "importing %s: its arrays have no names (arr_0, arr_1 and so on), so "
                        "nothing says which is which; numpy.savez(file, **{name: array}) gives "
                        "them some",
                        tdmi_weights_path(it->weights));
    if (it->request->network && !(is_described && says_it_again(it)))
        return tdmi_import_named(it, it->request->network, err);
    if (is_described)
        return tdmi_import_described(it, err);
    if (it->facts.network)
        return tdmi_import_named(it, it->facts.network, err);
    return TDM_FAIL(err, TDM_E_USAGE,
                    "importing %s: the file does not say its network; --model NAME does "
                    "(tandem train --help lists them)",
                    tdmi_weights_path(it->weights));
}

/* A few words of a file can ask for a network that no memory holds. What stays within this is made:
 * as much as fits is then the machine's to say. */
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
    const char *path = tdmi_weights_path(it->weights);
    const int64_t wanted = (int64_t)sizeof(float) * graph->param_values;
    int64_t stored = 0;
    for (size_t i = 0; i < tdmi_weights_count(it->weights); i++)
        stored += (int64_t)tdmi_weights_at(it->weights, i)->bytes;
    if (preprocess->width > MOST_SIDE || preprocess->height > MOST_SIDE)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "importing %s: its network wants pictures of %d×%d pixels; at most %d a "
                        "side are accepted",
                        path, preprocess->width, preprocess->height, MOST_SIDE);
    for (int i = 0; i < graph->n_nodes; i++)
        if (tdmi_shape_values(graph->nodes[i].out) > MOST_ACTIVATION)
            return TDM_FAIL(err, TDM_E_INPUT,
                            "importing %s: '%s' would give %lld values of one picture; at most %d "
                            "are accepted",
                            path, graph->nodes[i].name,
                            (long long)tdmi_shape_values(graph->nodes[i].out), MOST_ACTIVATION);
    const bool is_large = wanted > ALWAYS_MADE && wanted / MOST_TIMES_FILE > stored;
    const int64_t allowed =
        stored > ALWAYS_MADE / MOST_TIMES_FILE ? stored * MOST_TIMES_FILE : ALWAYS_MADE;
    const int64_t hidden = is_large ? most_hidden(it, allowed) : 0;
    if (hidden > 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "importing %s: --hidden %d makes a network of %lld bytes of weights, and "
                        "the file has %lld; with it at most %lld is accepted",
                        path, it->request->head.hidden, (long long)wanted, (long long)stored,
                        (long long)hidden);
    if (is_large)
        return TDM_FAIL(err, TDM_E_INPUT,
                        "importing %s: its network would have %lld bytes of weights, and the file "
                        "has %lld; %d times as much, and 64 MiB always, is accepted",
                        path, (long long)wanted, (long long)stored, MOST_TIMES_FILE);
    return TDM_OK;
}

static tdm_status import(struct tdmi_importing *it, tdm_error *err)
{
    struct tdmi_import *made = it->import;
    TDMI_TRY(tdmi_import_read_facts(it, err));
    TDMI_TRY(make_graph(it, err));
    TDMI_TRY(check_size(it, err));
    size_t params = (size_t)made->graph->param_values, states = (size_t)made->graph->state_values;
    made->params = tdmi_arena_alloc(&made->arena, params + 1, sizeof *made->params);
    made->states = tdmi_arena_alloc(&made->arena, states + 1, sizeof *made->states);
    TDMI_NEED_MEMORY(made->params && made->states, err);
    TDM_TRY(tdmi_bindings_fill(&it->bindings, it->request->seed, made->params, made->states, err),
            err, "importing %s", tdmi_weights_path(it->weights));
    TDMI_TRY(turn_colours(it, err));
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
    tdmi_arena_init(&imported->arena, 0);
    tdm_status status = import(&it, err);
    tdmi_graph_free(it.facts.graph);
    if (status != TDM_OK)
        tdmi_import_release(imported);
    return status;
}

void tdmi_import_release(struct tdmi_import *import)
{
    tdmi_graph_free(import->graph);
    tdmi_arena_release(&import->arena);
    *import = (struct tdmi_import){0};
}
