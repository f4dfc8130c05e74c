/*
 * Descriptions of columns by Hugging Face's data sets, as JSON in the file's metadata:
 *     {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
 */
#include "data/parquet/member.h"

#include "tandem/json.h"
#include <string.h>

static tdm_status out_of_memory(tdm_error *err)
{
    return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the class names of a table");
}

static bool is_class_label(const tdm_json_value *feature)
{
    return strcmp(tdm_json_as_string(tdm_json_member(feature, "_type"), ""), "ClassLabel") == 0;
}

/* The feature named, or the only one of classes where nothing is named. */
static const tdm_json_value *find(const tdm_json_value *features, const char *label_column,
                                  const char **name)
{
    const tdm_json_value *found = NULL;
    int n_found = 0;
    *name = label_column;
    if (label_column != NULL)
        return tdm_json_member(features, label_column);
    for (size_t i = 0; i < tdm_json_count(features); i++)
        if (is_class_label(tdm_json_at(features, i))) {
            found = tdm_json_at(features, i);
            *name = tdm_json_key_at(features, i);
            n_found++;
        }
    return n_found == 1 ? found : NULL;
}

static tdm_status take_names(const tdm_json_value *names, struct tdmi_parquet_opening *opening,
                             tdm_error *err)
{
    size_t n = tdm_json_count(names);
    opening->class_names = tdmi_arena_alloc(&opening->labels.arena, n + 1, sizeof(char *));
    if (opening->class_names == NULL)
        return out_of_memory(err);
    for (size_t i = 0; i < n; i++) {
        const char *name = tdm_json_as_string(tdm_json_at(names, i), NULL);
        if (name == NULL)
            return TDM_OK; /* no list of names: as if there were none */
        opening->class_names[i] = tdmi_arena_copy(&opening->labels.arena, name);
        if (opening->class_names[i] == NULL)
            return out_of_memory(err);
    }
    opening->n_class_names = (int)n;
    return TDM_OK;
}

tdm_status tdmi_parquet_read_features(const char *json, const char *label_column,
                                      struct tdmi_parquet_opening *opening,
                                      const char **class_label, tdm_error *err)
{
    tdm_json_document *document = NULL;
    tdm_error problem = {0};
    *class_label = NULL;
    opening->n_class_names = 0;
    tdm_status status = tdm_json_read(json, strlen(json), "huggingface", &document, &problem);
    if (status == TDM_E_MEMORY)
        return out_of_memory(err);
    if (status != TDM_OK) /* said for other programs; the table is readable without */
        return TDM_OK;
    const char *name = NULL;
    const tdm_json_value *features =
        tdm_json_member(tdm_json_member(tdm_json_root(document), "info"), "features");
    const tdm_json_value *feature = find(features, label_column, &name);
    if (is_class_label(feature)) {
        *class_label = tdmi_arena_copy(&opening->labels.arena, name);
        status = *class_label == NULL ? out_of_memory(err)
                                      : take_names(tdm_json_member(feature, "names"), opening, err);
    }
    tdm_json_document_free(document);
    return status;
}
