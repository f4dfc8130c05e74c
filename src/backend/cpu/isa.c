/* Which instruction set the kernels of backend cpu run with. */
#include "backend/cpu/isa.h"
#include "base/cpu_isa.h"

enum tdmi_isa tdmi_isa_best(void)
{
#if defined(__x86_64__)
    struct tdmi_cpu cpu = {.isa = ""};
    tdmi_cpu_isa(&cpu);
    if (cpu.has_avx512 && cpu.has_avx2_fma)
        return TDMI_ISA_AVX512;
    if (cpu.has_avx2_fma)
        return TDMI_ISA_AVX2;
#endif
    return TDMI_ISA_SCALAR;
}

const char *tdmi_isa_name(enum tdmi_isa isa)
{
    static const char *const names[TDMI_ISAS] = {"scalar", "avx2", "avx512"};
    return isa < TDMI_ISAS ? names[isa] : "?";
}
