/* The one place that chooses between hwloc and /sys. */
#include "base/system/affinity.h"
#include "tandem_features.h"

#if TDM_HAVE_HWLOC

int tdmi_affinity_order(int *cpus, int limit)
{
    return tdmi_hwloc_order(cpus, limit);
}

bool tdmi_affinity_topology(struct tdmi_topology *topology)
{
    return tdmi_hwloc_topology(topology);
}

#else

int tdmi_affinity_order(int *cpus, int limit)
{
    return tdmi_sys_order("", cpus, tdmi_affinity_mask(cpus, limit));
}

bool tdmi_affinity_topology(struct tdmi_topology *topology)
{
    return tdmi_sys_topology("", topology);
}

#endif
