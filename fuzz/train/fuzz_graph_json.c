/* A network from a model file: any JSON text as its nodes. What is accepted must plan, and come out
 * of writing and reading as it went in. */
#include "fuzz.h"
#include "graph/plan.h"

static char *written(const tdmi_graph *graph)
{
    tdm_json_writer *writer = tdm_json_writer_new(0);
    const char *text;
    char *copy = NULL;
    tdmi_graph_to_json(graph, writer, NULL);
    if (tdm_json_finish(writer, &text, NULL, NULL) == TDM_OK)
        copy = strdup(text);
    tdm_json_writer_free(writer);
    return copy;
}

static tdm_status read_text(const char *text, size_t length_bytes, tdmi_graph **graph)
{
    tdm_json_document *document = NULL;
    tdm_status status = tdm_json_read(text, length_bytes, "fuzzed text", &document, NULL);
    if (status == TDM_OK)
        status = tdmi_graph_from_json(tdm_json_root(document), "fuzzed graph", graph, NULL);
    tdm_json_document_free(document);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    tdmi_graph *graph = NULL, *back = NULL;
    tdmi_plan *plan = NULL;
    if (read_text((const char *)bytes, length_bytes, &graph) != TDM_OK)
        return 0;
    if (tdmi_plan_new(graph, &tdmi_backend_ref, 2, true, &plan, NULL) != TDM_OK)
        abort();
    tdmi_plan_free(plan);
    char *text = written(graph);
    if (!text || read_text(text, strlen(text), &back) != TDM_OK)
        abort();
    char *again = written(back);
    if (!again || strcmp(text, again) != 0)
        abort();
    free(text);
    free(again);
    tdmi_graph_free(graph);
    tdmi_graph_free(back);
    return 0;
}
