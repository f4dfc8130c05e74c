/*
 * Weights in a zip (PyTorch, NumPy, Keras 3): its members' bytes, in place where they are stored as
 * they are, else unpacked; how much is unpacked is bounded by the size of the file, whatever its
 * directory promises.
 */
#pragma once

#include "io/archive/archive.h"
#include "weights/form.h"

struct tdmi_zip_members { /* start from a zeroed object */
    tdmi_weights *weights;
    tdmi_archive *archive; /* closed with the weights */
    uint64_t unpacked_bytes, most_bytes;
};

/* Is it a zip, one of whose members has a name that is_mark takes? Of a damaged one the first
 * member's name counts, which stands at the beginning. */
bool tdmi_zip_members_have(const struct tdmi_weights_input *input,
                           bool (*is_mark)(const char *name));

/* TDM_E_INPUT: damaged, or members that overlap, which is how bombs are made. */
tdm_status tdmi_zip_members_open(tdmi_weights *weights, const struct tdmi_weights_input *input,
                                 struct tdmi_zip_members *members, tdm_error *err) TDM_MUST_USE;
/* The member's bytes (its entry says how many), valid until the weights are closed; the checksum is
 * compared. */
tdm_status tdmi_zip_members_bytes(struct tdmi_zip_members *members, int64_t index,
                                  const uint8_t **bytes, tdm_error *err) TDM_MUST_USE;
