/*
 * Interface of the readers of weights files, and the functions by which they fill the list of
 * tensors. For the readers of this folder only.
 */
#pragma once

#include "weights/weights.h"

/* Input of a reader: a file, mapped whole; or a folder, without bytes. */
struct tdmi_weights_input {
    const char *path;
    bool is_folder;
    const uint8_t *bytes; /* valid until the weights are closed */
    size_t n_bytes;
};

struct tdmi_weights_form {
    const char *name; /* "safetensors" */
    const char *what; /* in the sentence about files of no known form: ".safetensors" */
    /* By content; a damaged file of the form is one too, so that its reader can say what is wrong.
     */
    bool (*is_form)(const struct tdmi_weights_input *input);
    /* Fills the list. Tensors may point into input's bytes. */
    tdm_status (*read)(tdmi_weights *weights, const struct tdmi_weights_input *input,
                       tdm_error *err);
};

/* Lives until close. */
tdmi_arena *tdmi_weights_arena(tdmi_weights *weights);
/* release(held) is called at close, the last kept first; at once when there is no memory to note it
 * (TDM_E_MEMORY). */
tdm_status tdmi_weights_keep(tdmi_weights *weights, void *held, void (*release)(void *held),
                             tdm_error *err) TDM_MUST_USE;
/* Adds a tensor to the end of the list: its name is copied, data is lent until close, n_values and
 * bytes are filled in here. available_bytes is how much there is at data. TDM_E_INPUT when the
 * shape needs more, does not fit in memory, or a name is no UTF-8; that names are unique is checked
 * by open. */
tdm_status tdmi_weights_add(tdmi_weights *weights, const struct tdmi_weights_tensor *tensor,
                            uint64_t available_bytes, tdm_error *err) TDM_MUST_USE;
/* Copied. The last of one key counts. */
tdm_status tdmi_weights_note(tdmi_weights *weights, const char *key, const char *value,
                             size_t length_bytes, tdm_error *err) TDM_MUST_USE;
/* Copy values in the order of the tensor's shape: axis i steps by steps[i] values in `from`, whose
 * bytes of a value are reversed where is_swapped. */
void tdmi_weights_gather(const struct tdmi_weights_tensor *tensor, const uint64_t *steps,
                         bool is_swapped, const uint8_t *from, uint8_t *to);
/* Read all of n_bytes at offset of an open file. TDM_E_INPUT: it is shorter. */
tdm_status tdmi_weights_read_at(int file, const char *path, uint64_t offset, void *to,
                                size_t n_bytes, tdm_error *err) TDM_MUST_USE;
