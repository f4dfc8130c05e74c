/*
 * Chooses the passes for this CPU. __builtin_cpu_supports is cheap and knows what the operating
 * system saves.
 */
#include "image/resize/kernels.h"
#include <stddef.h>

#if defined(__x86_64__)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("avx512vnni");
}

#endif

const struct tdmi_resize_kernels *tdmi_resize_kernels_at(int index)
{
    if (index == 0)
        return &tdmi_resize_scalar;
#if defined(__x86_64__)
    if (index == 1 && has_avx2())
        return &tdmi_resize_avx2;
    if (index == 2 && has_avx2() && has_avx512())
        return &tdmi_resize_avx512;
#endif
    return NULL;
}

const struct tdmi_resize_kernels *tdmi_resize_kernels_best(void)
{
    const struct tdmi_resize_kernels *best = NULL, *next;
    for (int i = 0; (next = tdmi_resize_kernels_at(i)) != NULL; i++)
        best = next;
    return best;
}
