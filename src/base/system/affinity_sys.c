/* Topology from /sys, where hwloc is not built in. */
#include "base/system/affinity.h"
#include "base/system/cgroup.h"
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>

struct place {
    int cpu, package, core;
    int rank; /* how many threads of its core come before it */
};

static int compare(int a, int b)
{
    return (a > b) - (a < b);
}

static int by_core(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    int order = compare(a->package, b->package);
    order = order ? order : compare(a->core, b->core);
    return order ? order : compare(a->cpu, b->cpu);
}

static int by_rank(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    int order = compare(a->rank, b->rank);
    return order ? order : by_core(left, right);
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

/* Sorted by core and ranked; false when /sys does not know one of the CPUs. */
static bool find_places(const char *root, const int *cpus, int n_cpus, struct place *places)
{
    for (int i = 0; i < n_cpus; i++) {
        places[i] = (struct place){.cpu = cpus[i]};
        if (!topology_number(root, cpus[i], "physical_package_id", &places[i].package) ||
            !topology_number(root, cpus[i], "core_id", &places[i].core))
            return false;
    }
    qsort(places, (size_t)n_cpus, sizeof *places, by_core);
    for (int i = 1; i < n_cpus; i++)
        if (places[i].package == places[i - 1].package && places[i].core == places[i - 1].core)
            places[i].rank = places[i - 1].rank + 1;
    return true;
}

int tdmi_sys_order(const char *root, int *cpus, int n_cpus)
{
    struct place *places = n_cpus > 0 ? tdmi_alloc((size_t)n_cpus, sizeof *places) : NULL;
    if (places && find_places(root, cpus, n_cpus, places)) {
        qsort(places, (size_t)n_cpus, sizeof *places, by_rank);
        for (int i = 0; i < n_cpus; i++)
            cpus[i] = places[i].cpu;
    }
    tdmi_free(places);
    return n_cpus;
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
        topology->cores += places[i].rank == 0;
        topology->packages += i == 0 || places[i].package != places[i - 1].package;
    }
    topology->numa_nodes = read_list(root, "/sys/devices/system/node/online", cpus, TDMI_CPUS_MAX);
    return n_cpus > 0;
}
