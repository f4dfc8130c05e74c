/*
 * Facts that files of ours hold beside their tensors (src/train/model/model_file.c,
 * src/train/export): the network node by node or by name, how images become its input, its padding.
 * Exports of other programs use these keys for things of their own: what does not read as ours is
 * skipped, and the notes say so.
 */
#include "base/text/json.h"
#include "weights/import/internal.h"

#include <string.h>

/* The input of a graph describes the preprocessing too. */
static void take_graph(struct tdmi_importing *it, tdmi_graph *graph)
{
    it->facts.graph = graph;
    it->facts.has_preprocess = true;
    it->facts.preprocess = *tdmi_graph_preprocess(graph);
}

tdm_status tdmi_import_take_classes(struct tdmi_importing *it, const tdm_json_value *names,
                                    tdm_error *err)
{
    struct tdmi_import_facts *facts = &it->facts;
    const size_t n = tdm_json_count(names);
    if (tdm_json_kind_of(names) != TDM_JSON_ARRAY || n == 0 || n > INT32_MAX)
        return TDM_OK;
    for (size_t i = 0; i < n; i++)
        if (tdm_json_kind_of(tdm_json_at(names, i)) != TDM_JSON_STRING)
            return TDM_OK;
    TDMI_ARENA_NEW(&it->import->arena, facts->classes, n, err);
    for (size_t i = 0; i < n; i++)
        TDMI_ARENA_COPY(&it->import->arena, facts->classes[i],
                        tdm_json_as_string(tdm_json_at(names, i), ""), err);
    facts->n_classes = (int)n;
    return TDM_OK;
}

/* ---- a model file -------------------------------------------------------------------------- */

static tdm_status read_model(struct tdmi_importing *it, const char *text, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    tdmi_graph *graph = NULL;
    const char *path = tdmi_weights_path(it->weights);
    TDMI_TRY(tdm_json_read(text, strlen(text), path, &document, err));
    const tdm_json_value *root = tdm_json_root(document);
    const int64_t shard = tdm_json_as_integer(tdm_json_member(root, "shard"), 0);
    TDMI_TRY(tdmi_graph_from_json(tdm_json_member(root, "nodes"), path, &graph, err));
    take_graph(it, graph);
    it->facts.shard = shard > 0 && shard <= INT32_MAX ? (int)shard : 0;
    TDMI_ARENA_COPY(&it->import->arena, it->facts.network,
                    tdm_json_as_string(tdm_json_member(root, "network"), "unnamed"), err);
    return tdmi_import_take_classes(it, tdm_json_member(root, "classes"), err);
}

/* ---- an export ----------------------------------------------------------------------------- */

/* A fact as JSON; *document is NULL when there is none or it cannot be read. */
static tdm_status read_json(const struct tdmi_importing *it, const char *key,
                            tdm_json_document **document, tdm_error *err)
{
    const char *text = tdmi_weights_fact(it->weights, key);
    const tdm_status status =
        text ? tdm_json_read(text, strlen(text), "the weights", document, err) : TDM_OK;
    return status == TDM_E_MEMORY ? status : TDM_OK;
}

static tdm_status skip_fact(struct tdmi_importing *it, const char *key, tdm_error *err)
{
    tdm_error_clear(err);
    return tdmi_weights_fact(it->weights, key) == NULL
               ? TDM_OK
               : tdmi_import_note(
                     it, err, "the file's %s is not in a form that is known here, and is skipped",
                     key);
}

static tdm_status read_graph(struct tdmi_importing *it, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    tdmi_graph *graph = NULL;
    TDMI_TRY(read_json(it, "graph", &document, err));
    const tdm_status status =
        document ? tdmi_graph_from_json(tdm_json_root(document), "the weights", &graph, err)
                 : TDM_E_INPUT;
    if (status == TDM_OK)
        take_graph(it, graph);
    return status == TDM_OK || status == TDM_E_MEMORY ? status : skip_fact(it, "graph", err);
}

static tdm_status read_preprocess(struct tdmi_importing *it, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    if (it->facts.has_preprocess)
        return TDM_OK;
    TDMI_TRY(read_json(it, "preprocess", &document, err));
    const tdm_status status =
        document ? tdmi_preprocess_from_json(tdm_json_root(document), "the weights",
                                             &it->facts.preprocess, err)
                 : TDM_E_INPUT;
    it->facts.has_preprocess = status == TDM_OK;
    return status == TDM_OK || status == TDM_E_MEMORY ? status : skip_fact(it, "preprocess", err);
}

static tdm_status read_classes(struct tdmi_importing *it, tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    TDMI_TRY(read_json(it, "classes", &document, err));
    tdm_error_clear(err);
    return tdmi_import_take_classes(it, document ? tdm_json_root(document) : NULL, err);
}

static void read_padding(struct tdmi_importing *it)
{
    const char *word = tdmi_weights_fact(it->weights, "padding");
    for (int i = 0; word && i <= (int)TDMI_PADDING_NONE; i++)
        if (strcmp(word, tdmi_padding_word((enum tdmi_padding)i)) == 0) {
            it->facts.has_padding = true;
            it->facts.padding = (enum tdmi_padding)i;
        }
}

/* Without a graph, only a name that is known here says anything. */
static tdm_status read_name(struct tdmi_importing *it, tdm_error *err)
{
    const char *name = tdmi_weights_fact(it->weights, "network");
    struct tdmi_network network;
    if (it->facts.graph && !name)
        name = "unnamed";
    if (it->facts.graph || (name && tdmi_network_find(name, &network, NULL) == TDM_OK))
        TDMI_ARENA_COPY(&it->import->arena, it->facts.network, name, err);
    return TDM_OK;
}

tdm_status tdmi_import_read_facts(struct tdmi_importing *it, tdm_error *err)
{
    const char *model = tdmi_weights_fact(it->weights, "tandem");
    if (model)
        return TDM_WRAP(err, read_model(it, model, err), "reading the network of the model");
    TDMI_TRY(read_graph(it, err));
    TDMI_TRY(read_name(it, err));
    TDMI_TRY(read_classes(it, err));
    read_padding(it);
    TDMI_TRY(read_preprocess(it, err));
    return tdmi_import_read_beside(it, err);
}
