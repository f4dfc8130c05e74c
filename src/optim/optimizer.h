/*
 * Optimisers: what state they keep and how one step is asked of the backend, which does the
 * arithmetic. Listed in optimizers.def.
 */
#ifndef TANDEM_OPTIM_OPTIMIZER_H
#define TANDEM_OPTIM_OPTIMIZER_H

#include "backend/backend.h"

enum { TDMI_OPTIMIZER_SLOTS = 2 };

struct tdmi_optimizer {
    const char *name;
    const char *summary;
    int n_slots;
    const char
        *slot_names[TDMI_OPTIMIZER_SLOTS]; /* "momentum": part of tensor names in checkpoints */
    /* call is complete but for the backend's function. */
    void (*step)(const struct tdmi_backend *backend, tdmi_stream *stream,
                 const struct tdmi_update_call *call);
};

/* NULL past the last. */
const struct tdmi_optimizer *tdmi_optimizer_at(int index);
/* TDM_E_USAGE lists the names. */
tdm_status tdmi_optimizer_find(const char *name, const struct tdmi_optimizer **optimizer,
                               tdm_error *err) TDM_MUST_USE;

#endif
