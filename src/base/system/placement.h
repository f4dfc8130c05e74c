/*
 * The CPUs of a process: how many threads compute, where each may run, and the share of memory. A
 * pure function of the machine's CPUs (tdmi_placement_make), and its answer here
 * (tdmi_placement_here).
 *
 * Processes of one job on one machine get disjoint parts of the CPUs: TANDEM_LOCAL_SIZE says how
 * many there are, TANDEM_LOCAL_RANK which one this is, or variables of other launchers do (env.c).
 * Without them the CPUs belong to nobody:
 * other programs may run here as well, so threads are left to the scheduler.
 */
#pragma once

#include "base/scope.h"
#include "base/system/affinity.h"
#include "tandem/error.h"
#include <stddef.h>
#include <stdint.h>

/* This process among those of its job on this machine. Size 0: nobody set it. */
struct tdmi_local {
    int rank, size;
};

struct tdmi_placement_facts {
    const struct tdmi_cpu_place *cpus; /* that may be used, by nearness; at least 1 */
    int n_cpus;
    double quota; /* CPUs that the cgroup allows; 0: no limit */
    struct tdmi_local local;
    int threads; /* --threads; 0: one per core */
};

struct tdmi_placement {
    int threads;        /* that compute */
    int loader_threads; /* at most, that read images; hardware threads beside those that compute */
    int *cpus;     /* of this process: first one of every core, nearest first; then the others */
    int n_cpus;    /* 0: threads are free to move */
    bool is_bound; /* worker i runs on cpus[i] only; else on any of them */
    struct tdmi_local local;
    char why[120]; /* "one per core of node 0 (process 1 of 2 on this machine)" */
};

/* One thread per core; hardware threads of a core after that, and only where more threads are
 * requested. Parts of processes are runs of neighbouring cores, as equal as can be. A quota is
 * rounded up, and divided between processes. More processes than CPUs have one thread each. */
tdm_status tdmi_placement_make(const struct tdmi_placement_facts *facts,
                               struct tdmi_placement *placement, tdm_error *err) TDM_MUST_USE;
void tdmi_placement_release(struct tdmi_placement *placement);

/* The placement of this process: its affinity mask, cgroup and environment. TDM_E_USAGE: a wrong
 * TANDEM_LOCAL_RANK or TANDEM_LOCAL_SIZE. */
tdm_status tdmi_placement_here(int threads, struct tdmi_placement *placement,
                               tdm_error *err) TDM_MUST_USE;

/* Keep the calling thread, and those that it starts, on the CPUs of this process. */
void tdmi_placement_enter(const struct tdmi_placement *placement);

/* This process's share of memory, or of a cache, that all processes of the job use. */
int64_t tdmi_placement_share(const struct tdmi_placement *placement, int64_t bytes);

/* "4 (CPU quota 3.5 of 16 CPUs)" */
void tdmi_placement_describe(const struct tdmi_placement *placement, char *text, size_t text_bytes);
