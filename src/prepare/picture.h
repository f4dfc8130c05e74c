/*
 * One image of a row: read, checked against the plan, resized, encoded, and, for one in 16,
 * compared with the encoder's input.
 */
#ifndef TANDEM_PREPARE_PICTURE_H
#define TANDEM_PREPARE_PICTURE_H

#include "data/audit/finding.h"
#include "prepare/plan.h"

/* Change of the pixels by a lossy encoder, summed over the sample. Integers, so that the sum does
 * not depend on the order of addition. */
struct tdmi_prepare_change {
    int64_t n_pictures, n_values, sum;
    int max;
};
void tdmi_prepare_change_add(struct tdmi_prepare_change *total,
                             const struct tdmi_prepare_change *more);

struct tdmi_prepare_picture { /* start from a zeroed object; used again for the next one */
    tdmi_text bytes;          /* what is stored */
    int width, height;
    struct tdmi_prepare_change change;
    enum tdm_verdict
        verdict; /* OK, or the damage for which it is dropped, which its header did not show */
    char reason[TDMI_REASON_BYTES];
};
void tdmi_prepare_picture_release(struct tdmi_prepare_picture *picture);

struct tdmi_prepare_scratch { /* one a thread; start from a zeroed object */
    struct tdmi_finding_scratch finding;
    struct tdmi_preprocess_scratch preprocess;
    tdmi_image fitted, again;
};
void tdmi_prepare_scratch_release(struct tdmi_prepare_scratch *scratch);

/* Any thread. TDM_E_INPUT: the file has changed since the first pass. */
tdm_status
tdmi_prepare_picture_make(const tdmi_source *source, const struct tdmi_prepare_form *form,
                          const struct tdmi_prepare_row *row, struct tdmi_prepare_scratch *scratch,
                          struct tdmi_prepare_picture *picture, tdm_error *err) TDM_MUST_USE;

#endif
