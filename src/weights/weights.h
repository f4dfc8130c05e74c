/*
 * A file of named tensors, whichever program wrote it: opened by its content, held as one list.
 *
 * Forms (forms.def) know bytes and no networks. What the tensors mean is the importer's business.
 */
#pragma once

#include "tensor/dtype.h"
#include "weights/errors.h"
#include "weights/fetch/digest.h"

enum { TDMI_WEIGHTS_RANK = 8 };

/* Values lie without gaps, the last axis fastest, little-endian; data need not be aligned.
 * Everything lives as long as the file is open. */
struct tdmi_weights_tensor {
    const char *name; /* unique, UTF-8, as the file has it: "features.0.0.weight" */
    enum tdmi_dtype dtype;
    int rank;
    int64_t shape[TDMI_WEIGHTS_RANK]; /* 0 past rank */
    int64_t n_values;
    size_t bytes;
    const void *data;
};

typedef struct tdmi_weights tdmi_weights;

/* TDM_E_INPUT says the path, what is wrong and where; of a file of no form we know, which ones we
 * do. A folder is taken for a TensorFlow.js model when it has a model.json. */
tdm_status tdmi_weights_open(const char *path, tdmi_weights **weights, tdm_error *err) TDM_MUST_USE;
/* The same from bytes of a file, which are lent until close; name is what messages call it,
 * and beside it a form of several files looks for the others. */
tdm_status tdmi_weights_open_bytes(const void *bytes, size_t length_bytes, const char *name,
                                   tdmi_weights **weights, tdm_error *err) TDM_MUST_USE;
/* Accepts NULL. */
void tdmi_weights_close(tdmi_weights *weights);
TDMI_POINTER_RELEASE(tdmi_weights, tdmi_weights_close)

const char *tdmi_weights_path(const tdmi_weights *weights);
/* "PATH: what is wrong" as TDM_E_INPUT. */
#define TDMI_WEIGHTS_BAD(err, weights, ...) \
    TDMI_BAD_FILE(err, tdmi_weights_path(weights), __VA_ARGS__)
bool tdmi_weights_is_folder(const tdmi_weights *weights);
/* Size and digests of the file, also where it was opened from bytes; a folder has neither. */
size_t tdmi_weights_file_bytes(const tdmi_weights *weights);
tdm_status tdmi_weights_digest(const tdmi_weights *weights, struct tdmi_digest *digest,
                               tdm_error *err) TDM_MUST_USE;
/* "safetensors", "pytorch", "keras-h5", … : the name of its form. */
const char *tdmi_weights_form_name(const tdmi_weights *weights);

/* In the order in which the file means them: layers first to last where it says so. */
size_t tdmi_weights_count(const tdmi_weights *weights);
const struct tdmi_weights_tensor *tdmi_weights_at(const tdmi_weights *weights, size_t index);
/* NULL when there is none of that name. O(log n). */
const struct tdmi_weights_tensor *tdmi_weights_find(const tdmi_weights *weights, const char *name);

/* Entries beside the tensors, as text: "model_config", "keras_version", "best_prec1",
 * "license". NULL when the file lacks the key. */
const char *tdmi_weights_fact(const tdmi_weights *weights, const char *key);
size_t tdmi_weights_facts(const tdmi_weights *weights);
const char *tdmi_weights_fact_key(const tdmi_weights *weights, size_t index);

/* Floats of any width as F32, in the order of the file; TDM_E_INPUT names a tensor of another type.
 */
tdm_status tdmi_weights_floats(const tdmi_weights *weights,
                               const struct tdmi_weights_tensor *tensor, float *out,
                               tdm_error *err) TDM_MUST_USE;
