/*
 * Tensors as PyTorch pickles them: calls of its rebuild functions with a storage, an offset, sizes
 * and strides. Where the storages' bytes lie is for the two forms of its files to say.
 */
#pragma once

#include "weights/form.h"
#include "weights/torch/pickle.h"

/* Contents of a persistent id. */
struct tdmi_torch_storage {
    const uint8_t *key; /* no zero ends it */
    size_t key_bytes;
    size_t value_bytes;         /* of one element */
    bool is_untyped;            /* then 1, and the tensor says what it is */
    uint64_t n_bytes;           /* of the whole storage, as announced */
    uint64_t first, view_bytes; /* the part that is meant */
};

struct tdmi_torch_files {
    tdmi_weights *weights;
    /* The storage's bytes, little-endian, at least n_bytes, valid until the weights are closed. */
    tdm_status (*find)(void *self, const struct tdmi_torch_storage *storage, const uint8_t **bytes,
                       tdm_error *err);
    void *self;
    uint64_t copied_bytes, most_copied_bytes; /* of tensors that do not lie without gaps */
    size_t n_facts, fact_bytes;
    size_t visited_values, written_bytes; /* for facts, those too that came to nothing */
};

/* Is it a call that makes a tensor or parameter? */
bool tdmi_torch_is_tensor(const tdmi_pickle_value *value);
/* Adds it to the list. TDM_E_INPUT by its name: of a type we lack, or it does not lie inside its
 * storage. */
tdm_status tdmi_torch_add(struct tdmi_torch_files *files, const tdmi_pickle_value *value,
                          const char *name, tdm_error *err) TDM_MUST_USE;
/* TDM_E_INPUT when it is no id of a storage; what: the tensor or file, for sentences. */
tdm_status tdmi_torch_storage_of(const tdmi_weights *weights, const char *what,
                                 const tdmi_pickle_value *id, enum tdmi_dtype *dtype,
                                 struct tdmi_torch_storage *storage, tdm_error *err) TDM_MUST_USE;
