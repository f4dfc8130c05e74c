/*
 * Chooses the passes for this CPU. __builtin_cpu_supports is cheap and knows what the operating
 * system saves.
 */
#include "image/resize/kernels.h"
#include <stddef.h>

const struct tdmi_resize_kernels *tdmi_resize_kernels_at(int index)
{
    if (index == 0)
        return &tdmi_resize_scalar;
#if defined(__x86_64__)
    if (index == 1 && __builtin_cpu_supports("avx2"))
        return &tdmi_resize_avx2;
#endif
    return NULL;
}

const struct tdmi_resize_kernels *tdmi_resize_kernels_best(void)
{
    const struct tdmi_resize_kernels *faster = tdmi_resize_kernels_at(1);
    return faster != NULL ? faster : tdmi_resize_kernels_at(0);
}
