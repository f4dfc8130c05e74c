/*
 * Weights in the form that a plan's kernels want them: reordered, transposed, a batch norm folded
 * in. Made once for new values, read by all executors of the plan.
 */
#pragma once

#include "base/thread.h"
#include "graph/executor.h"

typedef struct tdmi_packed tdmi_packed;

/* Memory alone. */
tdm_status tdmi_packed_open(const tdmi_plan *plan, tdmi_device *device, tdmi_packed **packed,
                            tdm_error *err) TDM_MUST_USE;
void tdmi_packed_close(tdmi_packed *packed);
TDMI_POINTER_RELEASE(tdmi_packed, tdmi_packed_close)
/* For tdmi_executor_use; NULL when the plan needs none. */
const void *tdmi_packed_memory(const tdmi_packed *packed);

/* From these values, node by node on the pool's threads, of this node and those behind it. Needed
 * whenever parameters (without training: or states) have changed; of nodes that are frozen, once.
 * Nothing is done when the plan asks for none. */
tdm_status tdmi_packed_fill(tdmi_packed *packed, struct tdmi_values values, int first_node,
                            tdmi_pool *pool, tdm_error *err) TDM_MUST_USE;
/* The same on a stream of a device whose memory is not the host's, without waiting. */
void tdmi_packed_queue(const tdmi_packed *packed, tdmi_stream *stream, struct tdmi_values values,
                       int first_node);
