/*
 * A batch of feature rows of all ranks, on its way to rank 0. Each rank fills in its part; rank 0
 * then has all of it, and the others have rank 0's decision.
 */
#pragma once

#include "tandem/error.h"
#include "train/session/ranks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tdmi_session;

struct tdmi_parcel {
    int64_t first; /* index of its first entry in the list of missing rows */
    int n;
    float *rows;
    int32_t *labels;
    bool *stops;               /* which ranks were asked to stop */
    size_t *sizes;             /* three for each rank, in bytes: of rows, labels, stops */
    struct tdmi_agreed agreed; /* rank 0's decision after the batch before it */
};

/* Room for TDMI_FEATURES_BATCH images of each rank. */
tdm_status tdmi_parcel_open(const struct tdmi_session *session, struct tdmi_parcel *parcel,
                            tdm_error *err) TDM_MUST_USE;
void tdmi_parcel_release(struct tdmi_parcel *parcel);

/* Returns at once; the parcel is lent until tdmi_comm_finish. */
tdm_status tdmi_parcel_send(const struct tdmi_session *session, struct tdmi_parcel *parcel,
                            tdm_error *err) TDM_MUST_USE;
