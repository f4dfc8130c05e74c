/* The machine as hwloc sees it; the only file that includes hwloc. */
#include "base/system/affinity.h"

#include <hwloc.h>

static bool load(hwloc_topology_t *topology)
{
    if (hwloc_topology_init(topology) != 0)
        return false;
    if (hwloc_topology_load(*topology) == 0)
        return true;
    hwloc_topology_destroy(*topology);
    return false;
}

int tdmi_hwloc_order(int *cpus, int limit)
{
    hwloc_topology_t topology;
    int n_cpus = 0;
    if (!load(&topology))
        return tdmi_affinity_mask(cpus, limit);
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    const bool is_known =
        allowed && hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD) == 0;
    int n_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    int n_threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    /* Logical order is order of nearness. Round r takes the r-th allowed thread of every core. */
    for (int round = 0; is_known && round < n_threads && n_cpus < limit; round++) {
        int before = n_cpus;
        for (int i = 0; i < n_cores && n_cpus < limit; i++) {
            hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)i);
            int seen = 0, cpu = -1;
            while ((cpu = hwloc_bitmap_next(core->cpuset, cpu)) >= 0)
                if (hwloc_bitmap_isset(allowed, (unsigned)cpu) && seen++ == round) {
                    cpus[n_cpus++] = cpu;
                    break;
                }
        }
        if (n_cpus == before)
            break;
    }
    if (n_cpus == 0) /* hwloc reports no mask, or no cores */
        n_cpus = tdmi_affinity_mask(cpus, limit);
    hwloc_bitmap_free(allowed);
    hwloc_topology_destroy(topology);
    return n_cpus;
}

static int count(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(topology, type);
    return n > 0 ? n : 0;
}

bool tdmi_hwloc_topology(struct tdmi_topology *found)
{
    hwloc_topology_t topology;
    *found = (struct tdmi_topology){0};
    if (!load(&topology))
        return false;
    found->packages = count(topology, HWLOC_OBJ_PACKAGE);
    found->cores = count(topology, HWLOC_OBJ_CORE);
    found->threads = count(topology, HWLOC_OBJ_PU);
    found->numa_nodes = count(topology, HWLOC_OBJ_NUMANODE);
    hwloc_topology_destroy(topology);
    return true;
}
