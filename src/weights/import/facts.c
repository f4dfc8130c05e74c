/*
 * What files of ours say beside their tensors (src/train/model/model_file.c, src/train/export): the
 * network node by node or by name, how images become its input, how it pads. In exports others
 * use these words for things of their own, so what does not read as ours is passed over, and the
 * notes say so.
 */
#include "weights/import/internal.h"

#include <string.h>

static tdm_status no_memory(const struct tdmi_importing *it, tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "reading what %s says of itself: out of memory",
                    tdmi_weights_path(it->weights));
}

static tdm_status take_name(struct tdmi_importing *it, const char *name, tdm_error *err)
{
    it->facts.network = tdmi_arena_copy(&it->import->arena, name);
    return it->facts.network ? TDM_OK : no_memory(it, err);
}

/* The input of a graph says it too. */
static void take_graph(struct tdmi_importing *it, tdmi_graph *graph)
{
    it->facts.graph = graph;
    it->facts.has_preprocess = true;
    it->facts.preprocess = *tdmi_graph_preprocess(graph);
}

/* ---- a model file -------------------------------------------------------------------------- */

static tdm_status read_model(struct tdmi_importing *it, const char *text, tdm_error *err)
{
    tdm_json_document *document = NULL;
    tdmi_graph *graph = NULL;
    const char *path = tdmi_weights_path(it->weights);
    TDM_TRY(tdm_json_read(text, strlen(text), path, &document, err), err,
            "reading what the model says of itself");
    const tdm_json_value *root = tdm_json_root(document);
    const int64_t shard = tdm_json_as_integer(tdm_json_member(root, "shard"), 0);
    tdm_status status = tdmi_graph_from_json(tdm_json_member(root, "nodes"), path, &graph, err);
    if (status == TDM_OK) {
        take_graph(it, graph);
        it->facts.shard = shard > 0 && shard <= INT32_MAX ? (int)shard : 0;
        status =
            take_name(it, tdm_json_as_string(tdm_json_member(root, "network"), "unnamed"), err);
    }
    tdm_json_document_free(document);
    return TDM_WRAP(err, status, "reading what the model says of itself");
}

/* ---- an export ----------------------------------------------------------------------------- */

static tdm_status read_graph(struct tdmi_importing *it, tdm_error *err)
{
    const char *text = tdmi_weights_fact(it->weights, "graph");
    tdm_json_document *document = NULL;
    tdmi_graph *graph = NULL;
    tdm_error why;
    if (!text)
        return TDM_OK;
    tdm_status status =
        tdm_json_read(text, strlen(text), "the network of the weights", &document, &why);
    if (status == TDM_OK)
        status = tdmi_graph_from_json(tdm_json_root(document), "the weights", &graph, &why);
    tdm_json_document_free(document);
    if (status == TDM_E_MEMORY)
        return no_memory(it, err);
    if (status != TDM_OK)
        return tdmi_import_note(it, err,
                                "what the file calls graph is not in our words and passed over");
    take_graph(it, graph);
    return TDM_OK;
}

static tdm_status read_preprocess(struct tdmi_importing *it, tdm_error *err)
{
    const char *text = tdmi_weights_fact(it->weights, "preprocess");
    tdm_json_document *document = NULL;
    tdm_error why;
    if (!text || it->facts.has_preprocess)
        return TDM_OK;
    tdm_status status =
        tdm_json_read(text, strlen(text), "the preprocessing of the weights", &document, &why);
    if (status == TDM_OK)
        status = tdmi_preprocess_from_json(tdm_json_root(document), "the weights",
                                           &it->facts.preprocess, &why);
    tdm_json_document_free(document);
    if (status == TDM_E_MEMORY)
        return no_memory(it, err);
    it->facts.has_preprocess = status == TDM_OK;
    if (status == TDM_OK)
        return TDM_OK;
    return tdmi_import_note(it, err,
                            "what the file calls preprocess is not in our words and passed over");
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

/* Without a graph only a name that we know says anything. */
static tdm_status read_name(struct tdmi_importing *it, tdm_error *err)
{
    const char *name = tdmi_weights_fact(it->weights, "network");
    struct tdmi_network network;
    if (it->facts.graph)
        return take_name(it, name ? name : "unnamed", err);
    return name && tdmi_network_find(name, &network, NULL) == TDM_OK ? take_name(it, name, err)
                                                                     : TDM_OK;
}

tdm_status tdmi_import_read_facts(struct tdmi_importing *it, tdm_error *err)
{
    const char *model = tdmi_weights_fact(it->weights, "tandem");
    if (model)
        return read_model(it, model, err);
    tdm_status status = read_graph(it, err);
    if (status == TDM_OK)
        status = read_name(it, err);
    read_padding(it);
    return status == TDM_OK ? read_preprocess(it, err) : status;
}
