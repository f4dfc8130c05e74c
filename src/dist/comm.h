/*
 * A communicator: the ranks of one job, behind one table. It moves named ranges of floats and knows
 * nothing of networks. `self` is the job of one process; others are listed in transports.def.
 */
#pragma once

#include "tandem/error.h"
#include <stdint.h>

typedef struct tdmi_comm tdmi_comm;

struct tdmi_comm_table {
    tdm_status (*open)(tdmi_comm **comm, tdm_error *err);
    void (*close)(tdmi_comm *comm);
    int (*world)(const tdmi_comm *comm);
    /* Begin to add values [0, n) of every rank's array in the tree's order, each rank holding the
     * sum of its own groups. May return before it is done; values must not be touched until then.
     */
    tdm_status (*reduce)(tdmi_comm *comm, float *values, int64_t n, tdm_error *err);
    /* Until everything begun is done on this rank; TDM_E_PEER names the rank that is missing. */
    tdm_status (*finish)(tdmi_comm *comm, tdm_error *err);
};

/* TDM_E_USAGE lists the names. */
tdm_status tdmi_comm_find(const char *name, const struct tdmi_comm_table **table,
                          tdm_error *err) TDM_MUST_USE;
