/* The one place that chooses between hwloc and /sys. */
#include "base/system/affinity.h"
#include "tandem_features.h"

static int from_files(struct tdmi_cpu_place *places, int limit)
{
    int cpus[TDMI_CPUS_MAX];
    return tdmi_sys_places("", cpus, tdmi_affinity_mask(cpus, limit), places);
}

#if TDM_HAVE_HWLOC

int tdmi_affinity_places(struct tdmi_cpu_place *places, int limit)
{
    const int n = tdmi_hwloc_places(places, limit);
    return n > 0 ? n : from_files(places, limit);
}

bool tdmi_affinity_topology(struct tdmi_topology *topology)
{
    return tdmi_hwloc_topology(topology);
}

#else

int tdmi_affinity_places(struct tdmi_cpu_place *places, int limit)
{
    return from_files(places, limit);
}

bool tdmi_affinity_topology(struct tdmi_topology *topology)
{
    return tdmi_sys_topology("", topology);
}

#endif
