/*
 * TensorFlow.js: a model.json, which says the network ("modelTopology") and what lies where
 * ("weightsManifest"), and files of values beside it. The path is that of the model.json or of its
 * folder.
 */
#include "base/file/file.h"
#include "base/text/json.h"
#include "weights/tfjs/tfjs_weights.h"

#include <string.h>
#include "base/banned.h"

static const char model_name[] = "model.json";
#define MOST_JSON_BYTES ((size_t)16 << 20)

static bool has_model(const char *folder)
{
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {.block_bytes = 1024};
    const char *path = tdmi_path_join(&arena, folder, model_name);
    return path != NULL && tdmi_file_kind_of(path) == TDMI_FILE_REGULAR;
}

static bool is_form(const struct tdmi_weights_input *input)
{
    static const char key[] = "\"weightsManifest\"";
    size_t at = 0;
    if (input->is_folder)
        return has_model(input->path);
    while (at < input->n_bytes && strchr(" \t\r\n", input->bytes[at]) != NULL &&
           input->bytes[at] != '\0')
        at++;
    return at < input->n_bytes && input->bytes[at] == '{' &&
           memmem(input->bytes, input->n_bytes, key, sizeof key - 1) != NULL;
}

/* ---- the network ------------------------------------------------------------------------- */

static tdm_status note_text(tdmi_weights *weights, const char *key, const tdm_json_value *value,
                            tdm_error *err)
{
    const char *text = tdm_json_as_string(value, NULL);
    return text == NULL ? TDM_OK : tdmi_weights_note(weights, key, text, strlen(text), err);
}

/* Keras's topology holds the config among other things, or is the config itself; a graph-model's is
 * neither, and is left. */
static tdm_status note_topology(tdmi_weights *weights, const tdm_json_value *topology,
                                tdm_error *err)
{
    const tdm_json_value *config = tdm_json_member(topology, "model_config");
    const char *json = NULL;
    size_t length = 0;
    TDMI_TRY(note_text(weights, "keras_version", tdm_json_member(topology, "keras_version"), err));
    if (tdm_json_as_string(config, NULL) != NULL)
        return note_text(weights, "model_config", config, err);
    if (config == NULL && tdm_json_member(topology, "class_name") != NULL)
        config = topology;
    if (config == NULL)
        return TDM_OK;
    TDMI_AT_END(tdm_json_writer_free_at) tdm_json_writer *writer = tdm_json_writer_new(0);
    tdmi_json_copy(writer, NULL, config);
    TDMI_TRY(tdm_json_finish(writer, &json, &length, err));
    return tdmi_weights_note(weights, "model_config", json, length, err);
}

/* ---- the file ---------------------------------------------------------------------------- */

static tdm_status read_model(tdmi_weights *weights, const char *folder, const tdm_json_value *root,
                             tdm_error *err)
{
    static const char *const facts[] = {"format", "generatedBy", "convertedBy"};
    const tdm_json_value *groups = tdm_json_member(root, "weightsManifest");
    if (tdm_json_kind_of(groups) != TDM_JSON_ARRAY)
        return TDMI_WEIGHTS_BAD(err, weights, "it has no list \"weightsManifest\"");
    TDMI_TRY(tdmi_tfjs_add_groups(weights, folder, groups, err));
    TDMI_TRY(note_topology(weights, tdm_json_member(root, "modelTopology"), err));
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        TDMI_TRY(note_text(weights, facts[i], tdm_json_member(root, facts[i]), err));
    if (tdmi_weights_count(weights) == 0)
        return TDMI_WEIGHTS_BAD(err, weights, "there are no weights in it");
    return TDM_OK;
}

/* The folder of a path, "" for none. */
static char *folder_of(tdmi_weights *weights, const char *path)
{
    char *folder = tdmi_arena_copy(tdmi_weights_arena(weights), path);
    if (folder != NULL) {
        char *name = folder + (tdmi_path_name(folder) - folder);
        *(name > folder + 1 ? name - 1 : name) = '\0';
    }
    return folder;
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    TDMI_AT_END(tdmi_free_at) void *loaded = NULL;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    const void *text = input->bytes;
    size_t length = input->n_bytes;
    const char *path = input->is_folder
                           ? tdmi_path_join(tdmi_weights_arena(weights), input->path, model_name)
                           : input->path;
    const char *folder = path == NULL ? NULL : folder_of(weights, path);
    TDMI_NEED_MEMORY(folder, err);
    if (input->is_folder) {
        TDMI_TRY(tdmi_file_read(path, MOST_JSON_BYTES, &loaded, &length, err));
        text = loaded;
    }
    if (length > MOST_JSON_BYTES)
        return TDMI_WEIGHTS_BAD(err, weights, "it has %zu bytes; a model.json of %zu is read",
                                length, MOST_JSON_BYTES);
    TDMI_TRY(tdm_json_read(text, length, path, &document, err));
    return read_model(weights, folder, tdm_json_root(document), err);
}

const struct tdmi_weights_form tdmi_weights_form_tfjs = {
    .name = "tfjs",
    .what = "TensorFlow.js (model.json)",
    .is_form = is_form,
    .read = read,
};
