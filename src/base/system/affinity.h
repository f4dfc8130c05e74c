/*
 * CPUs that threads may run on and should run on, from the affinity mask and /sys.
 */
#pragma once

#include <stdbool.h>

enum { TDMI_CPUS_MAX = 8192 };

/* CPU numbers in the affinity mask of the calling thread, ascending, at most limit; returns how
 * many, 0 when the system does not say. */
int tdmi_affinity_mask(int *cpus, int limit);

/* The same CPUs in the order in which to give them to workers: one of every core, neighbours
 * first, then the second hardware threads of the cores, and so on. */
int tdmi_affinity_order(int *cpus, int limit);

/* Bind the calling thread to CPUs; false when the system refuses. */
bool tdmi_affinity_bind(const int *cpus, int n_cpus);

struct tdmi_topology {
    int packages, cores, threads, numa_nodes;
};
/* Topology from /sys; false (and zeros) when unknown. root is "" for this machine; tests give a
 * folder with its own sys/. */
bool tdmi_sys_topology(const char *root, struct tdmi_topology *topology);
/* Sort n_cpus CPUs as tdmi_affinity_order does; they stay as they are when /sys is silent. */
int tdmi_sys_order(const char *root, int *cpus, int n_cpus);
