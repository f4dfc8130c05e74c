/*
 * Chooses the decoder's kernels for this CPU. Without AVX2 libjpeg-turbo is used: it has other
 * instructions there, and scalar code is no faster than it.
 */
#include "image/jpeg/kernels.h"

#if defined(__x86_64__)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}

#endif

const struct tdmi_jpeg_kernels *tdmi_jpeg_kernels_at(int index)
{
    if (index == 0)
        return &tdmi_jpeg_scalar;
#if defined(__x86_64__)
    if (index == 1 && has_avx2())
        return &tdmi_jpeg_avx2;
#endif
    return NULL;
}

const struct tdmi_jpeg_kernels *tdmi_jpeg_kernels_best(void)
{
    const struct tdmi_jpeg_kernels *best = NULL, *next;
    for (int i = 1; (next = tdmi_jpeg_kernels_at(i)) != NULL; i++)
        best = next;
    return best;
}
