/*
 * Inputs of a group on a device with memory of its own: images, their pointers, labels and the like
 * lie in one buffer of the plan:
 *
 *     judgements │ pointers  labels  mixed  draws  class weights  changes │ images A │ images B
 *                └──────── the head: fixed addresses, read by kernels ────┘
 *
 * The head is uploaded on the stream that computes, before the group. Images are uploaded then too,
 * or prefetched: copied on a separate stream from the caller's memory (a slot of the loader's ring,
 * pinned), into A while the group in B is computed and the other way about. A recorded step
 * therefore holds only addresses of the head, and finds the images through the pointers in it.
 *
 *     stream       head 1 │ wait A │ group 1 ............ │ head 2 │ wait B │ group 2 ............
 *     of copies    A: 1 ──────┘      B: 2 ─────────────────────────────┘      A: 3 ──────
 *
 * Rows that stand for pixels are no part of it: they go, as they are stored, to the place of what
 * they stand for; ahead of their group they are made ready on the host. Of rows that are kept on
 * the device (graph/feature_table.h) the head has the numbers. Where memory is the host's
 * nothing is staged: kernels follow the group's own pointers.
 */
#pragma once

#include "graph/executor.h"

typedef struct tdmi_staging tdmi_staging;

/* Bytes that a plan reserves for it in its arena; 0 on the host. */
size_t tdmi_staging_bytes(const tdmi_plan *plan);

/* memory: of the device, tdmi_staging_bytes. rows: where rows that stand for pixels go, of the
 * device too; NULL where there are pixels. */
tdm_status tdmi_staging_open(const tdmi_plan *plan, tdmi_device *device, void *memory, void *rows,
                             tdmi_staging **staging, tdm_error *err) TDM_MUST_USE;
void tdmi_staging_close(tdmi_staging *staging);
TDMI_POINTER_RELEASE(tdmi_staging, tdmi_staging_close)

/* The parts of the executor's functions of these names (executor.h). */
tdm_status tdmi_staging_prefetch(tdmi_staging *staging, const uint8_t *pictures, int n,
                                 tdm_error *err) TDM_MUST_USE;
tdm_status tdmi_staging_await_prefetch(tdmi_staging *staging, tdm_error *err) TDM_MUST_USE;

/* The group as kernels find it. Of rows that stand for pixels the pointers stay the host's. The
 * stream must have been waited for since the last time. A failure shows at its next wait. */
struct tdmi_group tdmi_staging_fill(tdmi_staging *staging, tdmi_stream *stream,
                                    const struct tdmi_group *group);
