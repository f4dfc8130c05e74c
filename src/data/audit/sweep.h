/*
 * A sweep: every item of a source once, on the threads of a pool, with progress events and a stop
 * on request.
 */
#ifndef TANDEM_DATA_AUDIT_SWEEP_H
#define TANDEM_DATA_AUDIT_SWEEP_H

#include "base/thread.h"
#include "data/source/source.h"
#include "tandem/event.h"

/* worker is in [0, threads of pool). A failure ends the sweep. */
typedef tdm_status (*tdmi_sweep_item)(void *self, int64_t index, int worker, tdm_error *err);

struct tdmi_sweep {
    int64_t n_items;
    const char *what; /* "checking pictures": of the progress */
    tdmi_sweep_item item;
    void *self;
    tdm_sink sink; /* called on the caller's thread only */
};

/* TDM_E_STOPPED when asked to end. */
tdm_status tdmi_sweep_run(const struct tdmi_sweep *sweep, tdmi_pool *pool,
                          tdm_error *err) TDM_MUST_USE;

#endif
