/*
 * Names of classes in a table. Data sets of Hugging Face describe their columns as JSON in the
 * file's metadata:
 *     {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
 * In tables of ours, and some others, a column beside the labels has the names.
 */
#include "data/parquet/member.h"

#include "base/text/json.h"
#include <string.h>

tdm_status tdmi_parquet_labels_name(struct tdmi_labels *labels, int id, const char *name,
                                    size_t name_bytes, tdm_error *err)
{
    struct tdmi_label *label = &labels->list[id];
    if (label->name == NULL) {
        label->name = tdmi_arena_printf(&labels->arena, "%.*s", (int)name_bytes, name);
        TDMI_CHECK_MEMORY(label->name, err);
        return TDM_OK;
    }
    if (strncmp(label->name, name, name_bytes) != 0 || label->name[name_bytes] != '\0')
        return TDM_FAIL(err, TDM_E_INPUT,
                        "label %s is class '%s' in one row and '%.*s' in another: the table "
                        "contradicts itself",
                        label->word, label->name, (int)name_bytes, name);
    return TDM_OK;
}

/* ---- class names in the metadata --------------------------------------------------------- */

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

static tdm_status read_names(struct tdmi_labels *labels, const tdm_json_value *names,
                             tdm_error *err)
{
    size_t n = tdm_json_count(names);
    labels->names = tdmi_arena_alloc(&labels->arena, n, sizeof *labels->names);
    TDMI_CHECK_MEMORY(labels->names, err);
    for (size_t i = 0; i < n; i++) {
        const char *name = tdm_json_as_string(tdm_json_at(names, i), NULL);
        if (name == NULL)
            return TDM_OK; /* no list of names: as if there were none */
        labels->names[i] = tdmi_arena_copy(&labels->arena, name);
        TDMI_CHECK_MEMORY(labels->names[i], err);
    }
    labels->n_names = (int)n;
    return TDM_OK;
}

tdm_status tdmi_parquet_labels_describe(struct tdmi_labels *labels, const char *json,
                                        const char *label_column, const char **class_label,
                                        tdm_error *err)
{
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const char *name = NULL;
    *class_label = NULL;
    labels->n_names = 0;
    tdm_status status = tdm_json_read(json, strlen(json), "huggingface", &document, NULL);
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory for the class names of a table");
    /* Damaged ones are meant for other programs; the table is readable without. */
    const tdm_json_value *root = status == TDM_OK ? tdm_json_root(document) : NULL;
    const tdm_json_value *feature =
        find(tdm_json_member(tdm_json_member(root, "info"), "features"), label_column, &name);
    if (!is_class_label(feature))
        return TDM_OK;
    *class_label = tdmi_arena_copy(&labels->arena, name);
    TDMI_CHECK_MEMORY(*class_label, err);
    return read_names(labels, tdm_json_member(feature, "names"), err);
}
