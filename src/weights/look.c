/* A weights file of any form for those who only want to look at it, and its copy as safetensors. */
#include "weights/fetch/digest.h"
#include "weights/safetensors/safetensors.h"
#include "weights/weights.h"
#include "base/memory.h"
#include "tandem/weights.h"

#include <math.h>
#include <string.h>

struct tdm_weights_file {
    tdmi_weights *weights;
    struct tdm_weights_facts facts;
    struct tdm_weights_tensor tensor; /* the one that was asked for last */
};

static tdm_status open_into(const char *path, tdm_weights_file *file, tdm_error *err)
{
    struct tdmi_digest digest;
    tdm_status status = tdmi_weights_open(path, &file->weights, err);
    if (status != TDM_OK)
        return status;
    struct tdm_weights_facts *facts = &file->facts;
    facts->form = tdmi_weights_form_name(file->weights);
    facts->tensors = (int64_t)tdmi_weights_count(file->weights);
    for (int64_t i = 0; i < facts->tensors; i++) {
        const struct tdmi_weights_tensor *tensor = tdmi_weights_at(file->weights, (size_t)i);
        facts->values += tensor->n_values;
        facts->bytes += (int64_t)tensor->bytes;
    }
    if (tdmi_weights_is_folder(file->weights))
        return TDM_OK; /* several files: none to take the hash of */
    status = tdmi_digest_file(path, &digest, err);
    memcpy(facts->sha256, digest.sha256, sizeof facts->sha256);
    return status;
}

tdm_status tdm_weights_open(const char *path, tdm_weights_file **opened, tdm_error *err)
{
    tdm_weights_file *file = tdmi_alloc(1, sizeof *file);
    if (file == NULL)
        return TDM_FAIL(err, TDM_E_MEMORY, "no memory to open %s", path);
    tdm_status status = open_into(path, file, err);
    if (status == TDM_OK)
        *opened = file;
    else
        tdm_weights_close(file);
    return status;
}

void tdm_weights_close(tdm_weights_file *file)
{
    if (file == NULL)
        return;
    tdmi_weights_close(file->weights);
    tdmi_free(file);
}

const struct tdm_weights_facts *tdm_weights_facts(const tdm_weights_file *file)
{
    return &file->facts;
}

/* low, high, mean over the finite values. */
static void look_through(struct tdm_weights_tensor *told, const float *values, int64_t n)
{
    double sum = 0;
    int64_t n_finite = 0;
    for (int64_t i = 0; i < n; i++) {
        double value = (double)values[i];
        if (!isfinite(value))
            continue;
        told->low = n_finite == 0 || value < told->low ? value : told->low;
        told->high = n_finite == 0 || value > told->high ? value : told->high;
        sum += value;
        n_finite++;
    }
    told->mean = n_finite > 0 ? sum / (double)n_finite : 0;
    told->not_finite = n - n_finite;
}

const struct tdm_weights_tensor *tdm_weights_tensor_at(tdm_weights_file *file, int64_t index)
{
    if (index < 0 || index >= file->facts.tensors)
        return NULL;
    const struct tdmi_weights_tensor *tensor = tdmi_weights_at(file->weights, (size_t)index);
    struct tdm_weights_tensor *told = &file->tensor;
    *told = (struct tdm_weights_tensor){.name = tensor->name,
                                        .type = tdmi_dtype_name(tensor->dtype),
                                        .rank = tensor->rank,
                                        .values = tensor->n_values};
    memcpy(told->shape, tensor->shape, sizeof told->shape);
    tdm_error err; /* no floats, or no memory for them: told as 0 */
    float *values = tdmi_alloc((size_t)tensor->n_values + 1, sizeof *values);
    if (values != NULL && tdmi_weights_floats(file->weights, tensor, values, &err) == TDM_OK)
        look_through(told, values, tensor->n_values);
    tdmi_free(values);
    return told;
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

/* ---- as safetensors ----------------------------------------------------------------------- */

/* Of our own file they would not be true of the new one. */
static bool is_copied(const char *key)
{
    return strncmp(key, "tandem", 6) != 0 && strcmp(key, "format") != 0;
}

tdm_status tdm_weights_convert(const char *from, const char *to, struct tdm_weights_facts *facts,
                               tdm_error *err)
{
    size_t n = strlen(to);
    static const char ending[] = ".safetensors";
    if (n < sizeof ending || strcmp(to + n - (sizeof ending - 1), ending) != 0)
        return TDM_FAIL(err, TDM_E_USAGE,
                        "converting %s to %s: tensors are written under their own names to "
                        "a file that ends in .safetensors; tandem export writes other forms of a "
                        "network",
                        from, to);
    tdm_weights_file *file = NULL;
    TDM_TRY(tdm_weights_open(from, &file, err), err, "converting %s", from);
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
        if (is_copied(key) && strncmp(key, "source.", 7) != 0)
            tdmi_safetensors_note(writer, key, tdmi_weights_fact(file->weights, key));
    }
    tdm_status status = tdmi_safetensors_finish(writer, to, err);
    *facts = file->facts;
    tdmi_safetensors_writer_free(writer);
    tdm_weights_close(file);
    return TDM_WRAP(err, status, "converting %s", from);
}
