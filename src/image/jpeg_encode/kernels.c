/*
 * Which way of writing JPEG files this processor runs.
 */
#include "image/jpeg_encode/kernels.h"

#if defined(__x86_64__)

/* Every processor with BMI2 has LZCNT, of which compilers of today cannot ask. */
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("avx512vnni");
}

#endif

const struct tdmi_jpeg_write_kernels *tdmi_jpeg_write_kernels_at(int index)
{
    if (index == 0)
        return &tdmi_jpeg_write_scalar;
#if defined(__x86_64__)
    if (index == 1 && has_avx2())
        return &tdmi_jpeg_write_avx2;
    if (index == 2 && has_avx512())
        return &tdmi_jpeg_write_avx512;
#endif
    return NULL;
}

const struct tdmi_jpeg_write_kernels *tdmi_jpeg_write_kernels_best(void)
{
    const struct tdmi_jpeg_write_kernels *best = NULL, *next;
    for (int i = 0; (next = tdmi_jpeg_write_kernels_at(i)) != NULL; i++)
        best = next;
    return best;
}
