/*
 * The rank of this process and the number of ranks, from variables that launchers set. The first of
 * these that is there decides:
 *
 *     TANDEM_RANK, TANDEM_WORLD, TANDEM_ADDRESS, TANDEM_TOKEN  tandem run, JobSet, Spark
 *     OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE               Open MPI's mpirun
 *     PMI_RANK, PMI_SIZE                                       MPICH's mpiexec, srun --mpi=pmi2
 *     PMIX_RANK with SLURM_PROCID, SLURM_STEP_NUM_TASKS        srun --mpi=pmix
 *     RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT               torchrun and its kin
 *
 * Variables of torchrun itself (TORCHELASTIC_RUN_ID) come before those of MPI, because srun may
 * start it. A process without any of them is alone.
 */
#pragma once

#include "base/scope.h"
#include "tandem/error.h"

struct tdmi_thread_hub; /* transport_thread.c: ranks that are threads of one process */

struct tdmi_launch {
    const char *transport; /* "tcp" …; NULL: one process */
    const char *launcher;  /* for messages: "torchrun" */
    const char *mpis[2];   /* that this launcher may be of, likely first: "openmpi", "mpich" */
    int rank, world;       /* 0, 1: alone */
    char host[256];        /* of rank 0 */
    int port;              /* that rank 0 listens on: the first that is free of… */
    int n_ports;           /* …so many; 0: one */
    int listener;          /* socket that rank 0 inherited and listens on; 0: none */
    char token[128];       /* "": none */
    double deadline;       /* seconds for ranks to come together, and for a message */
    double patience;       /* seconds without a step after which a rank hangs; 0: 60 deadlines */
    bool ends_process;     /* a rank that hangs ends this process: nobody else would */
    struct tdmi_thread_hub *hub;
};

/* The value of a variable, or NULL: tdmi_env, or a test's. */
typedef const char *(*tdmi_launch_variable)(const char *name);

/* TDM_E_USAGE: a variable has a value that makes no sense, or one of them is missing. TDM_E_ABSENT:
 * srun started several tasks without MPI. launch->rank is set as far as it is known. */
tdm_status tdmi_launch_read(tdmi_launch_variable variable, struct tdmi_launch *launch,
                            tdm_error *err) TDM_MUST_USE;
/* The same by the environment of this process. */
tdm_status tdmi_launch_here(struct tdmi_launch *launch, tdm_error *err) TDM_MUST_USE;
