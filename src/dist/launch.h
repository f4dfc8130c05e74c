/*
 * The place of this process among the ranks of its job: from what launchers leave in the
 * environment. The first of these that is there decides:
 *
 *     TANDEM_RANK, TANDEM_WORLD, TANDEM_ADDRESS (host:port), TANDEM_TOKEN     tandem run, JobSet,
 * Spark RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT                              torchrun and its
 * kin
 *
 * A process without them is alone.
 */
#pragma once

#include "base/scope.h"
#include "tandem/error.h"

struct tdmi_thread_hub; /* transport_thread.c: ranks that are threads of one process */

struct tdmi_launch {
    const char *transport; /* "tcp" …; NULL: one process */
    const char *launcher;  /* for messages: "torchrun" */
    int rank, world;       /* 0, 1: alone */
    char host[256];        /* of rank 0 */
    int port;              /* that rank 0 listens on */
    char token[128];       /* "": none */
    double deadline;       /* seconds for ranks to come together, and for a message */
    struct tdmi_thread_hub *hub;
};

/* The value of a variable, or NULL: tdmi_env, or a test's. */
typedef const char *(*tdmi_launch_variable)(const char *name);

/* TDM_E_USAGE: a variable has a value that makes no sense, or one of them is missing. */
tdm_status tdmi_launch_read(tdmi_launch_variable variable, struct tdmi_launch *launch,
                            tdm_error *err) TDM_MUST_USE;
/* The same of this process. */
tdm_status tdmi_launch_here(struct tdmi_launch *launch, tdm_error *err) TDM_MUST_USE;
