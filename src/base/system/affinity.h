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

/* A CPU, which is a hardware thread of a core, and its place in the machine. */
struct tdmi_cpu_place {
    int cpu;
    int core; /* equal for the hardware threads of one core, which stand side by side */
    int node; /* NUMA node, numbered as the system does */
};
/* The CPUs of the same mask by nearness: those of one core, node and package side by side. */
int tdmi_affinity_places(struct tdmi_cpu_place *places, int limit);

/* Bind the calling thread to CPUs; false when the system refuses. */
bool tdmi_affinity_bind(const int *cpus, int n_cpus);

struct tdmi_topology {
    int packages, cores, threads, numa_nodes;
};
/* Topology as the kernel shows it; false (and zeros) when unknown. */
bool tdmi_affinity_topology(struct tdmi_topology *topology);

/* The answers of affinity_sys.c, always built. root is "" for this machine; tests give a folder
 * with its own sys/. places has room for the n_cpus given; when /sys does not know one of them,
 * each is a core of its own, in the order given. */
int tdmi_sys_places(const char *root, const int *cpus, int n_cpus, struct tdmi_cpu_place *places);
bool tdmi_sys_topology(const char *root, struct tdmi_topology *topology);

/* The answers of affinity_hwloc.c, which is built only where hwloc is there. 0 places: hwloc
 * reports no mask, or no cores. */
int tdmi_hwloc_places(struct tdmi_cpu_place *places, int limit);
bool tdmi_hwloc_topology(struct tdmi_topology *topology);
