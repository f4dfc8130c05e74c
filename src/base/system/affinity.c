/* Affinity through the kernel's own calls. */
#include "base/system/affinity.h"

#include <sched.h>
#include <string.h>

/* One cpu_set_t ends at CPU 1023; the calls take longer masks. */
struct mask {
    cpu_set_t sets[TDMI_CPUS_MAX / CPU_SETSIZE];
};

int tdmi_affinity_mask(int *cpus, int limit)
{
    struct mask mask;
    int n_cpus = 0;
    memset(&mask, 0, sizeof mask);
    if (sched_getaffinity(0, sizeof mask, mask.sets) != 0)
        return 0;
    for (int cpu = 0; cpu < TDMI_CPUS_MAX && n_cpus < limit; cpu++)
        if (CPU_ISSET((size_t)cpu % CPU_SETSIZE, &mask.sets[cpu / CPU_SETSIZE]))
            cpus[n_cpus++] = cpu;
    return n_cpus;
}

bool tdmi_affinity_bind(const int *cpus, int n_cpus)
{
    struct mask mask;
    memset(&mask, 0, sizeof mask);
    for (int i = 0; i < n_cpus; i++)
        CPU_SET((size_t)cpus[i] % CPU_SETSIZE, &mask.sets[cpus[i] / CPU_SETSIZE]);
    return sched_setaffinity(0, sizeof mask, mask.sets) == 0;
}
