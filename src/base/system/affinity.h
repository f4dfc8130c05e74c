/*
 * Where threads may run and where they should. hwloc knows the machine best; where it is not built
 * in, the affinity mask and /sys answer.
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
/* Topology as the kernel shows it; false (and zeros) when unknown. */
bool tdmi_affinity_topology(struct tdmi_topology *topology);

/* The answers of affinity_sys.c, always built. root is "" for this machine; tests give a folder
 * with its own sys/. order sorts the n_cpus given, and leaves them as they are when /sys is silent.
 */
int tdmi_sys_order(const char *root, int *cpus, int n_cpus);
bool tdmi_sys_topology(const char *root, struct tdmi_topology *topology);

/* The answers of affinity_hwloc.c, which is built only where hwloc is there. */
int tdmi_hwloc_order(int *cpus, int limit);
bool tdmi_hwloc_topology(struct tdmi_topology *topology);
