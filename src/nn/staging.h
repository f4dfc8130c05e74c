/*
 * What a shard brings, on a device whose memory is not the host's: pictures, their pointers, labels
 * and their like lie in one buffer of the plan, and one upload fills it:
 *
 *     judgements │ pointers  labels  mixed  draws  class weights │ pictures
 *                └──────────────── uploaded, as far as there are pictures ───┘
 *
 * Rows that stand for pixels are no part of it: they go, as they are stored, to the place of what
 * they stand for. Where memory is the host's nothing is staged: kernels follow the shard's own
 * pointers.
 */
#ifndef TANDEM_NN_STAGING_H
#define TANDEM_NN_STAGING_H

#include "nn/lane.h"

typedef struct tdmi_staging tdmi_staging;

/* What a plan reserves for it in its arena; 0 on the host. */
size_t tdmi_staging_bytes(const tdmi_plan *plan);

/* memory: of the device, tdmi_staging_bytes. rows: where rows that stand for pixels go, of the
 * device too; NULL where there are pixels. */
tdm_status tdmi_staging_open(const tdmi_plan *plan, tdmi_device *device, void *memory, void *rows,
                             tdmi_staging **staging, tdm_error *err) TDM_MUST_USE;
void tdmi_staging_close(tdmi_staging *staging);

/* The shard as kernels find it. Of rows that stand for pixels the pointers stay the host's. The
 * stream must have been waited for since the last time. A failure shows at its next wait. */
struct tdmi_shard tdmi_staging_fill(tdmi_staging *staging, tdmi_stream *stream,
                                    const struct tdmi_shard *shard);

#endif
