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

int tdmi_hwloc_places(struct tdmi_cpu_place *places, int limit)
{
    hwloc_topology_t topology;
    int n = 0;
    if (!load(&topology))
        return 0;
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    const bool is_known =
        allowed && hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD) == 0;
    const int n_cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    for (int i = 0; is_known && i < n_cores; i++) { /* logical order is order of nearness */
        hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)i);
        const int node = core->nodeset ? hwloc_bitmap_first(core->nodeset) : 0;
        for (int cpu = -1; (cpu = hwloc_bitmap_next(core->cpuset, cpu)) >= 0 && n < limit;)
            if (hwloc_bitmap_isset(allowed, (unsigned)cpu))
                places[n++] = (struct tdmi_cpu_place){cpu, i, node};
    }
    hwloc_bitmap_free(allowed);
    hwloc_topology_destroy(topology);
    return n;
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
