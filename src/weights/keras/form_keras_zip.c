/*
 * Keras 3's .keras files: a zip of config.json (the network), metadata.json (who wrote it) and
 * model.weights.h5 (the arrays, in place where the zip does not compress them, as Keras's does).
 */
#include "weights/keras/h5.h"
#include "weights/zip_members.h"
#include "base/text/json.h"

#include <string.h>

static const char metadata_name[] = "metadata.json", config_name[] = "config.json",
                  arrays_name[] = "model.weights.h5";

/* The first of the three is what a damaged file begins with. */
static bool is_mark(const char *name)
{
    return strcmp(name, arrays_name) == 0 || strcmp(name, metadata_name) == 0;
}

static bool is_form(const struct tdmi_weights_input *input)
{
    return tdmi_zip_members_have(input, is_mark);
}

static tdm_status bytes_of(struct tdmi_zip_members *members, const char *name,
                           const uint8_t **bytes, size_t *n_bytes, tdm_error *err)
{
    int64_t index = tdmi_archive_find(members->archive, name);
    if (index < 0)
        return TDMI_WEIGHTS_BAD(err, members->weights,
                                "it is a zip without '%s': no model of Keras", name);
    *n_bytes = (size_t)tdmi_archive_entry(members->archive, index)->size_bytes;
    return tdmi_zip_members_bytes(members, index, bytes, err);
}

static tdm_status note_config(struct tdmi_zip_members *members, tdm_error *err)
{
    const uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    TDMI_TRY(bytes_of(members, config_name, &bytes, &n_bytes, err));
    return tdmi_weights_note(members->weights, "model_config", (const char *)bytes, n_bytes, err);
}

static tdm_status note_version(struct tdmi_zip_members *members, tdm_error *err)
{
    const uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    TDMI_AT_END(tdm_json_document_free_at) tdm_json_document *document = NULL;
    TDMI_TRY(bytes_of(members, metadata_name, &bytes, &n_bytes, err));
    TDM_TRY(tdm_json_read((const char *)bytes, n_bytes, metadata_name, &document, err), err,
            "reading %s", tdmi_weights_path(members->weights));
    const char *version =
        tdm_json_as_string(tdm_json_member(tdm_json_root(document), "keras_version"), NULL);
    return version == NULL ? TDM_OK
                           : tdmi_weights_note(members->weights, "keras_version", version,
                                               strlen(version), err);
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    struct tdmi_zip_members members = {0};
    const uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    TDMI_TRY(tdmi_zip_members_open(weights, input, &members, err));
    TDMI_TRY(note_config(&members, err));
    TDMI_TRY(note_version(&members, err));
    TDMI_TRY(bytes_of(&members, arrays_name, &bytes, &n_bytes, err));
    return tdmi_keras_h5_read(weights, bytes, n_bytes, input->path, err);
}

const struct tdmi_weights_form tdmi_weights_form_keras_zip = {
    .name = "keras",
    .what = ".keras",
    .is_form = is_form,
    .read = read,
};
