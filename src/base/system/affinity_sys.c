/* Topology from /sys, where hwloc is not built in. */
#include "base/system/affinity.h"
#include "base/system/cgroup.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>

struct place {
    int cpu, package, node, core;
    bool is_first; /* of its core */
};

static int compare(int a, int b)
{
    return (a > b) - (a < b);
}

static int by_core(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    int order = compare(a->package, b->package);
    order = order ? order : compare(a->node, b->node);
    order = order ? order : compare(a->core, b->core);
    return order ? order : compare(a->cpu, b->cpu);
}

static bool topology_number(const char *root, int cpu, const char *name, int *number)
{
    char path[128], text[32], *end = NULL;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
    if (tdmi_system_text(root, path, text, sizeof text) <= 0)
        return false;
    long value = strtol(text, &end, 10);
    *number = (int)value;
    return end != text && value >= -1 && value < (1L << 30); /* some machines give package -1 */
}

/* The kernel's list form "0-3,8,10-11"; at most limit numbers, returns how many. */
static int read_list(const char *root, const char *path, int *numbers, int limit)
{
    char text[4096];
    int n = 0;
    if (tdmi_system_text(root, path, text, sizeof text) <= 0)
        return 0;
    for (char *at = text; *at;) {
        char *end = NULL;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long number = first; number >= 0 && number <= last && n < limit; number++)
            numbers[n++] = (int)number;
        at = *end == ',' ? end + 1 : end;
        if (*end != ',')
            break;
    }
    return n;
}

/* Set the NUMA node of each place; where /sys names none, the package is one. */
static void find_nodes(const char *root, struct place *places, int n_places)
{
    enum { most_nodes = 1024 };
    int nodes[most_nodes], cpus[TDMI_CPUS_MAX];
    const int n_nodes = read_list(root, "/sys/devices/system/node/online", nodes, most_nodes);
    for (int i = 0; i < n_places; i++)
        places[i].node = places[i].package;
    for (int i = 0; i < n_nodes; i++) {
        char path[64];
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", nodes[i]);
        const int n_cpus = read_list(root, path, cpus, TDMI_CPUS_MAX);
        for (int k = 0; k < n_places; k++)
            for (int c = 0; c < n_cpus; c++)
                if (cpus[c] == places[k].cpu)
                    places[k].node = nodes[i];
    }
}

/* Sorted by core; false when /sys does not know one of the CPUs. */
static bool find_places(const char *root, const int *cpus, int n_cpus, struct place *places)
{
    for (int i = 0; i < n_cpus; i++) {
        places[i] = (struct place){.cpu = cpus[i]};
        if (!topology_number(root, cpus[i], "physical_package_id", &places[i].package) ||
            !topology_number(root, cpus[i], "core_id", &places[i].core))
            return false;
    }
    find_nodes(root, places, n_cpus);
    qsort(places, (size_t)n_cpus, sizeof *places, by_core);
    for (int i = 0; i < n_cpus; i++)
        places[i].is_first = i == 0 || places[i].package != places[i - 1].package ||
                             places[i].core != places[i - 1].core;
    return true;
}

int tdmi_sys_places(const char *root, const int *cpus, int n_cpus, struct tdmi_cpu_place *places)
{
    struct place *found = n_cpus > 0 ? tdmi_alloc((size_t)n_cpus, sizeof *found) : NULL;
    const bool is_known = found && find_places(root, cpus, n_cpus, found);
    for (int i = 0, core = -1; i < n_cpus; i++)
        places[i] = is_known ? (struct tdmi_cpu_place){found[i].cpu, core += found[i].is_first,
                                                       found[i].node}
                             : (struct tdmi_cpu_place){cpus[i], i, 0};
    tdmi_free(found);
    return n_cpus;
}

bool tdmi_sys_topology(const char *root, struct tdmi_topology *topology)
{
    *topology = (struct tdmi_topology){0};
    TDMI_AT_END(tdmi_free_at) int *cpus = tdmi_alloc(TDMI_CPUS_MAX, sizeof *cpus);
    TDMI_AT_END(tdmi_free_at) struct place *places = tdmi_alloc(TDMI_CPUS_MAX, sizeof *places);
    if (!cpus || !places)
        return false;
    int n_cpus = read_list(root, "/sys/devices/system/cpu/online", cpus, TDMI_CPUS_MAX);
    if (!find_places(root, cpus, n_cpus, places))
        n_cpus = 0;
    for (int i = 0; i < n_cpus; i++) {
        topology->threads++;
        topology->cores += places[i].is_first;
        topology->packages += i == 0 || places[i].package != places[i - 1].package;
    }
    topology->numa_nodes = read_list(root, "/sys/devices/system/node/online", cpus, TDMI_CPUS_MAX);
    return n_cpus > 0;
}
