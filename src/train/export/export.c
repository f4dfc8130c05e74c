/*
 * Choosing a file's form, and the model parts that all forms write.
 */
#include "train/export/export.h"
#include "base/text/choice.h"
#include "base/file/file.h"
#include "base/sized.h"
#include "models/network.h"
#include "train/model/model_internal.h"

#include <stdio.h>

static const struct {
    const char *name, *ending;
    bool takes_preprocess;
    tdm_status (*write)(struct tdmi_export *export, tdm_error *err);
} forms[] = {
#define X(name, ending, takes_preprocess) {#name, ending, takes_preprocess, tdmi_export_##name},
#include "train/export/exports.def"
#undef X
};

enum { n_forms = sizeof forms / sizeof forms[0] };

const char *tdm_export_form(int index)
{
    return index >= 0 && index < n_forms ? forms[index].name : NULL;
}

static tdm_status choose(const struct tdm_export_options *options, int *chosen, tdm_error *err)
{
    static const char *const names[] = {
#define X(name, ...) #name,
#include "train/export/exports.def"
#undef X
    };
    static const char endings[] =
#define X(name, ending, ...) ", " ending
#include "train/export/exports.def"
#undef X
        ;
    if (options->form)
        return tdmi_choice_find("form", options->form, names, n_forms, chosen, err);
    for (int i = 0; i < n_forms; i++) {
        if (tdmi_has_ending(options->path, (const char *const[]){forms[i].ending, NULL})) {
            *chosen = i;
            return TDM_OK;
        }
    }
    return TDM_FAIL(err, TDM_E_USAGE,
                    "choosing the form of '%s': its ending belongs to none; there is %s, or name "
                    "the form (--form)",
                    options->path, endings + 2);
}

tdm_status tdm_model_export(const tdm_model *model, const struct tdm_export_options *options,
                            struct tdm_export_result *result, tdm_error *err)
{
    TDMI_OPTIONS(tdm_export_options, options, {0}, err);
    TDMI_RESULT(tdm_export_result, result, err);
    int chosen = 0;
    result->form = "";
    if (!options->path || !*options->path)
        return TDM_FAIL(err, TDM_E_USAGE, "exporting the model: no path of a file is given");
    TDM_TRY(choose(options, &chosen, err), err, "exporting the model");
    result->form = forms[chosen].name;
    if (options->preprocess && !forms[chosen].takes_preprocess)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "exporting the model as %s: preprocessing can be part of onnx files only",
                        result->form);
    struct tdmi_export export = {.model = &model->file,
                                 .graph = model->file.graph,
                                 .path = options->path,
                                 .has_preprocess = options->preprocess,
                                 .result = result};
    const tdm_status status = forms[chosen].write(&export, err);
    tdmi_arena_release(&export.arena);
    result->bytes = status == TDM_OK ? tdmi_file_bytes(options->path) : 0;
    return TDM_WRAP(err, status, "exporting the model as %s", result->form);
}

/* ---- for the forms ------------------------------------------------------------------------ */

const float *tdmi_export_values(const struct tdmi_export *export, const struct tdmi_tensor *tensor,
                                bool is_state)
{
    return (is_state ? export->model->states : export->model->params) + tensor->offset;
}

const float *tdmi_export_torch_values(struct tdmi_export *export, const struct tdmi_node *node,
                                      const struct tdmi_tensor *tensor, bool is_state)
{
    const float *ours = tdmi_export_values(export, tensor, is_state);
    if (tensor->spec.n_dims < 2)
        return ours;
    float *theirs = tdmi_arena_alloc(&export->arena, (size_t)tensor->n, sizeof *theirs);
    if (theirs)
        tdmi_values_to_torch(node, tensor, ours, theirs);
    return theirs;
}

const char *tdmi_export_finished(struct tdmi_export *export, tdm_json_writer *writer)
{
    const char *text, *copy = NULL;
    if (tdm_json_finish(writer, &text, NULL, NULL) == TDM_OK)
        copy = tdmi_arena_copy(&export->arena, text);
    tdm_json_writer_free(writer);
    return copy;
}

static const char *classes_of(struct tdmi_export *export)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdm_json_array_begin(writer, NULL);
    for (int i = 0; i < export->model->n_classes; i++)
        tdm_json_string(writer, NULL, export->model->classes[i]);
    tdm_json_array_end(writer);
    return tdmi_export_finished(export, writer);
}

static const char *preprocess_of(struct tdmi_export *export)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdmi_preprocess_to_json(tdmi_graph_preprocess(export->graph), writer, NULL);
    return tdmi_export_finished(export, writer);
}

bool tdmi_export_pads_alike(const struct tdmi_op_attrs *a, const struct tdmi_op_attrs *b)
{
    return a->pad_top == b->pad_top && a->pad_bottom == b->pad_bottom &&
           a->pad_left == b->pad_left && a->pad_right == b->pad_right;
}

/* Compare up to the head of the built graph: a model that was read from a file does not record
 * where its own head begins. */
static bool pads_alike(const tdmi_graph *ours, const tdmi_graph *built)
{
    for (int i = 0; i < built->head; i++)
        if (i >= ours->n_nodes || ours->nodes[i].kind != built->nodes[i].kind ||
            !tdmi_export_pads_alike(&ours->nodes[i].attrs, &built->nodes[i].attrs))
            return false;
    return true;
}

/* The word for the network's padding; "" where all paddings give the same network, or the network
 * is not one of ours. Builds the network with each padding and compares. */
static const char *padding_of(const struct tdmi_export *export)
{
    enum { paddings = TDMI_PADDING_NONE + 1 };
    struct tdmi_network network;
    const char *word = "";
    int n_fitting = 0;
    if (tdmi_network_find(export->model->network, &network, NULL) != TDM_OK)
        return word;
    struct tdmi_build what = tdmi_network_defaults(&network, export->model->n_classes);
    what.preprocess = *tdmi_graph_preprocess(export->graph);
    for (int i = paddings - 1; i >= 0; i--) {
        TDMI_AT_END(tdmi_graph_free_at) tdmi_graph *graph = NULL;
        what.padding = (enum tdmi_padding)i;
        const tdm_status status = tdmi_network_make(&network, &what, &graph, NULL);
        if (status == TDM_E_MEMORY)
            return NULL;
        if (status == TDM_OK && pads_alike(export->graph, graph)) {
            word = tdmi_padding_word(what.padding);
            n_fitting++;
        }
    }
    return n_fitting == paddings ? "" : word;
}

static const char *lineage_of(struct tdmi_export *export)
{
    if (!export->model->lineage.file)
        return "";
    tdm_json_writer *writer = tdm_json_writer_new(0);
    tdmi_lineage_to_json(&export->model->lineage, writer, NULL);
    return tdmi_export_finished(export, writer);
}

tdm_status tdmi_export_notes(struct tdmi_export *export,
                             struct tdmi_export_note notes[TDMI_EXPORT_NOTES], tdm_error *err)
{
    const struct tdmi_export_note all[TDMI_EXPORT_NOTES] = {
        {"network", export->model->network},   {"classes", classes_of(export)},
        {"preprocess", preprocess_of(export)}, {"padding", padding_of(export)},
        {"lineage", lineage_of(export)},
    };
    for (int i = 0; i < TDMI_EXPORT_NOTES; i++) {
        TDMI_CHECK_MEMORY(all[i].text, err);
        notes[i] = all[i];
    }
    return TDM_OK;
}
