/*
 * Instruction sets of the kernels of backend cpu. The compiler's runtime asks the CPU once, before
 * main, so tdmi_isa_supported may be called anywhere; it knows what the operating system saves.
 */
#include "backend/cpu/isa.h"

enum tdmi_isa tdmi_isa_supported(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return TDMI_ISA_SCALAR;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return TDMI_ISA_AVX512;
    return TDMI_ISA_AVX2;
#else
    return TDMI_ISA_SCALAR;
#endif
}

const char *tdmi_isa_name(enum tdmi_isa isa)
{
    static const char *const names[TDMI_ISAS] = {"scalar", "avx2", "avx512"};
    return isa < TDMI_ISAS ? names[isa] : "?";
}
