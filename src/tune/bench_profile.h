/* How long each node of a plan takes. */
#pragma once

#include "base/thread.h"
#include "data/loader/loader.h"
#include "graph/executor.h"
#include "tandem/bench.h"

/* The network to profile; all members are borrowed. */
struct tdmi_profiled {
    const tdmi_plan *plan;
    tdmi_device *device;
    tdmi_pool *pool;
    struct tdmi_values values;
    int n_executors; /* executors that have work in a batch */
    const struct tdmi_batch *batch;
    struct tdmi_judgement *judgements; /* one an image of the batch */
};

/* Bytes of one image that a node moves: every tensor once forward, inputs, outputs and their
 * gradients once backward. */
double tdmi_profile_node_bytes(const tdmi_plan *plan, int index);

/* Fills the nodes of a result whose milliseconds are known; what is left of them is other_seconds.
 */
tdm_status tdmi_profile_nodes(const struct tdmi_profiled *profiled,
                              struct tdm_bench_compute *result, tdm_error *err) TDM_MUST_USE;
