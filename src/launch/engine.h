/*
 * The launcher that starts ranks on other machines: its command line for the version that is there.
 * A pure function of what was found and asked for.
 */
#pragma once

#include "base/arena.h"
#include "base/scope.h"
#include <stdbool.h>

enum tdmi_engine_kind { TDMI_ENGINE_OPENMPI, TDMI_ENGINE_MPICH, TDMI_ENGINE_SRUN };

struct tdmi_engine {
    enum tdmi_engine_kind kind;
    const char *program; /* "mpirun.openmpi" */
    int major;           /* version; 0: unknown */
    const char *mpi;     /* srun: the kind of PMI that the build's MPI needs, "pmix" */
    const char *cpus;    /* srun: CPUs of a task as the allocation has them; NULL: it says none */
};

struct tdmi_engine_job {
    int ranks;
    const char *hosts;            /* "a:2,b:2"; NULL: those of an allocation */
    const char *hostfile;         /* a host and its slots a line; NULL: none */
    const char *iface;            /* network interface or address range for messages; NULL: any */
    const char *const *variables; /* names that must travel; NULL ends */
    const char *const *words;     /* program and arguments of a rank; NULL ends */
};

/* The words of the command, ended by NULL, in the arena. TDM_E_USAGE: the launcher cannot do what
 * is asked for. */
tdm_status tdmi_engine_line(const struct tdmi_engine *engine, const struct tdmi_engine_job *job,
                            tdmi_arena *arena, const char *const **line,
                            tdm_error *err) TDM_MUST_USE;
/* Is this process in an allocation of Slurm, and no task of a step of it? */
bool tdmi_engine_is_allocation(void);
/* Looks for one: srun inside an allocation of Slurm without hosts, else the mpirun of the MPI that
 * this build has a part for. TDM_E_ABSENT says what to install. */
tdm_status tdmi_engine_find(const struct tdmi_engine_job *job, struct tdmi_engine *engine,
                            tdm_error *err) TDM_MUST_USE;
/* Value of srun's --mpi for the MPI of this build: "pmix" of Open MPI, "pmi2" of MPICH alone. */
const char *tdmi_engine_pmi(void);
