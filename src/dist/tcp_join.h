/* How the ranks of a job find each other over TCP. */
#pragma once

#include "dist/launch.h"

struct tdmi_tcp_host {
    char name[64];    /* what the host calls itself */
    char address[64]; /* where its rank listens, in digits */
    int port;
};

/* A connection to every other rank, in sockets by rank; -1 for oneself. On failure all are closed.
 * TDM_E_PEER: not all came within the deadline, or one is of another version or job. */
tdm_status tdmi_tcp_join(const struct tdmi_launch *launch, int *sockets,
                         struct tdmi_tcp_host *hosts, tdm_error *err) TDM_MUST_USE;
