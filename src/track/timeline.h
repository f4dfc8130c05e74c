/*
 * The traces of all ranks as one file of trace events (JSON), which Perfetto and chrome://tracing
 * open: a process for each rank, on rank 0's clock.
 */
#pragma once

#include "base/trace.h"

struct tdmi_timeline_rank {
    const void *bytes; /* tdmi_trace_pack */
    size_t n_bytes;
    int64_t ahead_ns; /* its clock minus that of rank 0 */
};

struct tdmi_timeline {
    const struct tdmi_timeline_rank *ranks;
    int n_ranks;
    const char *const *layers; /* names, by the number of a layer */
    int n_layers;
};

/* Contents of the file. Where a lane was full, only steps that all lanes hold whole: the last ones.
 */
struct tdmi_timeline_facts {
    int64_t first_step, last_step; /* 0: no step */
    int64_t n_events, n_dropped;   /* of all ranks; dropped: older than first_step */
};

/* The file is there whole or not at all. TDM_E_BUG: the bytes are no trace. */
tdm_status tdmi_timeline_write(const struct tdmi_timeline *timeline, const char *path,
                               struct tdmi_timeline_facts *facts, tdm_error *err) TDM_MUST_USE;
