/*
 * safetensors as a form of weights. The reader of our own model files believes nothing either, so
 * it is the one that is used.
 */
#include "weights/form.h"
#include "weights/safetensors/safetensors.h"

#include <string.h>

/* Eight bytes of length, then a JSON object. */
static bool is_form(const struct tdmi_weights_input *input)
{
    return input->n_bytes > 8 && input->bytes[8] == '{' && input->bytes[7] == 0 &&
           input->bytes[6] == 0;
}

static void release(void *file)
{
    tdmi_safetensors_close(file);
}

static tdm_status read(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err)
{
    tdmi_safetensors *file = NULL;
    TDMI_TRY(tdmi_safetensors_lend(input->bytes, input->n_bytes, input->path, &file, err));
    TDMI_TRY(tdmi_weights_keep(weights, file, release, err));
    for (size_t i = 0; i < tdmi_safetensors_count(file); i++) {
        const struct tdmi_safetensors_tensor *found = tdmi_safetensors_at(file, i);
        struct tdmi_weights_tensor tensor = {
            .name = found->name, .dtype = found->dtype, .rank = found->rank, .data = found->data};
        memcpy(tensor.shape, found->shape, sizeof tensor.shape);
        TDMI_TRY(tdmi_weights_add(weights, &tensor, found->bytes, err));
    }
    for (size_t i = 0; i < tdmi_safetensors_metadata_count(file); i++) {
        const char *key = tdmi_safetensors_metadata_key(file, i);
        const char *value = tdmi_safetensors_metadata(file, key);
        TDMI_TRY(tdmi_weights_note(weights, key, value, strlen(value), err));
    }
    return TDM_OK;
}

const struct tdmi_weights_form tdmi_weights_form_safetensors = {
    .name = "safetensors",
    .what = "safetensors",
    .is_form = is_form,
    .read = read,
};
