/* List the contents of a weights file of any form, and copy it as safetensors. */
#include "weights/fetch/digest.h"
#include "weights/import/import.h"
#include "weights/safetensors/safetensors.h"
#include "weights/weights.h"
#include "base/sized.h"
#include "base/text/text.h"
#include "tandem/weights.h"

#include <math.h>
#include <string.h>

struct tdm_weights_file {
    tdmi_weights *weights;
    struct tdm_weights_facts facts;
    struct tdm_weights_tensor tensor; /* the last one returned */
    struct tdmi_import import;        /* of tdm_weights_read */
    char problem[TDM_ERROR_TEXT_BYTES];
};

TDMI_POINTER_RELEASE(tdm_weights_file, tdm_weights_close)

tdm_status tdm_weights_open(const char *path, tdm_weights_file **opened, tdm_error *err)
{
    struct tdmi_digest digest;
    TDMI_AT_END(tdm_weights_close_at) tdm_weights_file *file = NULL;
    TDMI_TRY(TDMI_NEW(file, 1, err));
    TDMI_TRY(tdmi_weights_open(path, &file->weights, err));
    struct tdm_weights_facts *facts = &file->facts;
    facts->form = tdmi_weights_form_name(file->weights);
    facts->tensors = (int64_t)tdmi_weights_count(file->weights);
    for (int64_t i = 0; i < facts->tensors; i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(file->weights, (size_t)i);
        facts->values += tensor->n_values;
        facts->bytes += (int64_t)tensor->bytes;
    }
    if (!tdmi_weights_is_folder(file->weights)) { /* a folder has no single file to hash */
        TDMI_TRY(tdmi_digest_file(path, &digest, err));
        memcpy(facts->sha256, digest.sha256, sizeof facts->sha256);
    }
    *opened = tdmi_take(&file);
    return TDM_OK;
}

void tdm_weights_close(tdm_weights_file *file)
{
    if (file == NULL)
        return;
    tdmi_import_release(&file->import);
    tdmi_weights_close(file->weights);
    tdmi_free(file);
}

const struct tdm_weights_facts *tdm_weights_facts(const tdm_weights_file *file)
{
    return &file->facts;
}

/* low, high, mean over the finite values. */
static void summarize(struct tdm_weights_tensor *summary, const float *values, int64_t n)
{
    double sum = 0;
    int64_t n_finite = 0;
    for (int64_t i = 0; i < n; i++) {
        double value = (double)values[i];
        if (!isfinite(value))
            continue;
        summary->low = n_finite == 0 || value < summary->low ? value : summary->low;
        summary->high = n_finite == 0 || value > summary->high ? value : summary->high;
        sum += value;
        n_finite++;
    }
    summary->mean = n_finite > 0 ? sum / (double)n_finite : 0;
    summary->not_finite = n - n_finite;
}

const struct tdm_weights_tensor *tdm_weights_tensor_at(tdm_weights_file *file, int64_t index)
{
    if (index < 0 || index >= file->facts.tensors)
        return NULL;
    const struct tdmi_weights_tensor *tensor = tdmi_weights_at(file->weights, (size_t)index);
    file->tensor = (struct tdm_weights_tensor){.name = tensor->name,
                                               .type = tdmi_dtype_name(tensor->dtype),
                                               .rank = tensor->rank,
                                               .values = tensor->n_values};
    memcpy(file->tensor.shape, tensor->shape, sizeof file->tensor.shape);
    tdm_error err; /* no floats, or no memory for them: reported as 0 */
    TDMI_AT_END(tdmi_free_at) float *values = NULL;
    if (TDMI_NEW(values, tensor->n_values + 1, &err) == TDM_OK &&
        tdmi_weights_floats(file->weights, tensor, values, &err) == TDM_OK)
        summarize(&file->tensor, values, tensor->n_values);
    return &file->tensor;
}

bool tdm_weights_note_at(const tdm_weights_file *file, int64_t index, const char **key,
                         const char **value)
{
    if (index < 0 || (size_t)index >= tdmi_weights_facts(file->weights))
        return false;
    *key = tdmi_weights_fact_key(file->weights, (size_t)index);
    *value = tdmi_weights_fact(file->weights, *key);
    return true;
}

/* ---- as a network ------------------------------------------------------------------------- */

/* A file that ends before its last layer is read with a head that is then left out of account. */
static tdm_status import(tdm_weights_file *file, const char *model, bool *has_head, tdm_error *err)
{
    struct tdmi_import_request request = {.network = model};
    tdm_error own = {0};
    tdmi_import_release(&file->import);
    *has_head = true;
    if (tdmi_import(file->weights, &request, &file->import, err) == TDM_OK)
        return TDM_OK;
    request.head.classes = 2;
    request.ignores_head = true;
    *has_head = false;
    const tdm_status status = tdmi_import(file->weights, &request, &file->import, &own);
    if (status == TDM_OK)
        tdm_error_clear(err);
    return status;
}

tdm_status tdm_weights_read(tdm_weights_file *file, const char *model,
                            struct tdm_weights_reading *reading, tdm_error *err)
{
    TDMI_RESULT(tdm_weights_reading, reading, err);
    tdm_error own = {0};
    bool has_head;
    const tdm_status status = import(file, model, &has_head, &own);
    *reading = (struct tdm_weights_reading){.network = NULL};
    if (status == TDM_E_MEMORY)
        return TDM_FAIL(err, status, "reading %s: out of memory", tdmi_weights_path(file->weights));
    if (status != TDM_OK) {
        tdm_error_line(&own, file->problem, sizeof file->problem);
        reading->problem = file->problem;
        return TDM_OK;
    }
    const struct tdmi_import *made = &file->import;
    const struct tdmi_preprocess *preprocess = tdmi_graph_preprocess(made->graph);
    reading->network = made->network;
    reading->width = preprocess->width;
    reading->height = preprocess->height;
    reading->channels = preprocess->channels;
    reading->fit = tdmi_fit_word(preprocess->fit);
    reading->scale = tdmi_scale_word(preprocess->scale);
    reading->crop_fraction = preprocess->crop_fraction;
    reading->classes = has_head ? made->n_classes : 0;
    reading->has_class_names = has_head && !made->is_unnamed;
    return TDM_OK;
}

const char *tdm_weights_remark_at(const tdm_weights_file *file, int index)
{
    return index >= 0 && index < file->import.n_notes ? file->import.notes[index] : NULL;
}

/* ---- as safetensors ----------------------------------------------------------------------- */

/* Keys of our own files would not be true of the new one. */
static bool is_copied(const char *key)
{
    return strncmp(key, "tandem", 6) != 0 && strcmp(key, "format") != 0 &&
           strncmp(key, "source.", 7) != 0;
}

tdm_status tdm_weights_convert(const char *from, const char *to, struct tdm_weights_facts *facts,
                               tdm_error *err)
{
    if (!tdmi_ends_with(to, ".safetensors") || strlen(to) == strlen(".safetensors"))
        return TDM_FAIL(err, TDM_E_USAGE,
                        "converting %s to %s: tensors are written under their own names to a file "
                        "that ends in .safetensors; tandem export writes other forms of a network",
                        from, to);
    TDMI_AT_END(tdm_weights_close_at) tdm_weights_file *file = NULL;
    TDM_TRY(tdm_weights_open(from, &file, err), err, "converting %s", from);
    TDMI_AT_END(tdmi_safetensors_writer_free_at)
    tdmi_safetensors_writer *writer = tdmi_safetensors_writer_new();
    for (size_t i = 0; i < tdmi_weights_count(file->weights); i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(file->weights, i);
        tdmi_safetensors_add(writer, tensor->name, tensor->dtype, tensor->rank, tensor->shape,
                             tensor->data);
    }
    tdmi_safetensors_note(writer, "source.form", file->facts.form);
    if (*file->facts.sha256)
        tdmi_safetensors_note(writer, "source.sha256", file->facts.sha256);
    for (size_t i = 0; i < tdmi_weights_facts(file->weights); i++) {
        const char *key = tdmi_weights_fact_key(file->weights, i);
        if (is_copied(key))
            tdmi_safetensors_note(writer, key, tdmi_weights_fact(file->weights, key));
    }
    *facts = file->facts;
    return TDM_WRAP(err, tdmi_safetensors_finish(writer, to, err), "converting %s", from);
}
