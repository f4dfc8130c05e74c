/* Bytes as a file of weights: refused with a sentence, or a list in which every byte of every
 * tensor can be read. */
#pragma once

#include "fuzz.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "weights/weights.h"

static inline void fuzz_tensor(const tdmi_weights *weights,
                               const struct tdmi_weights_tensor *tensor)
{
    volatile uint64_t sum = tensor->bytes > 0 ? tdmi_xxh64_of(tensor->data, tensor->bytes, 0) : 0;
    (void)sum;
    if (tensor->rank < 0 || tensor->rank > TDMI_WEIGHTS_RANK ||
        tdmi_weights_find(weights, tensor->name) != tensor)
        abort();
    float *values = tdmi_alloc((size_t)tensor->n_values, sizeof *values);
    tdm_error err = {0};
    if (values == NULL ||
        (tdmi_weights_floats(weights, tensor, values, &err) != TDM_OK && err.n_frames == 0))
        abort();
    tdmi_free(values);
}

static inline void fuzz_list(tdmi_weights *weights)
{
    for (size_t i = 0; i < tdmi_weights_count(weights); i++)
        fuzz_tensor(weights, tdmi_weights_at(weights, i));
    for (size_t i = 0; i < tdmi_weights_facts(weights); i++)
        if (tdmi_weights_fact(weights, tdmi_weights_fact_key(weights, i)) == NULL)
            abort();
}

static inline void fuzz_weights(const uint8_t *bytes, size_t length_bytes)
{
    tdmi_weights *weights = NULL;
    tdm_error err = {0};
    if (tdmi_weights_open_bytes(bytes, length_bytes, "fuzz", &weights, &err) == TDM_OK)
        fuzz_list(weights);
    else if (err.n_frames == 0)
        abort();
    tdmi_weights_close(weights);
}
