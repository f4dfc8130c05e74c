/*
 * One source, several instruction sets: CMakeLists.txt compiles every *_kernels.c of this folder
 * once per set, with TDMI_ISA defined as scalar, avx2 or avx512. Each file ends in a const table
 * TDMI_THIS_ISA(tdmi_NAME). Headers *_body.h are parts of such files.
 */
#pragma once

enum tdmi_isa { TDMI_ISA_SCALAR, TDMI_ISA_AVX2, TDMI_ISA_AVX512, TDMI_ISAS };

/* The best one that this CPU and operating system run; all before it run too. */
enum tdmi_isa tdmi_isa_supported(void);
/* The one that kernels are prepared for: the same. */
enum tdmi_isa tdmi_isa_best(void);
/* "avx512" */
const char *tdmi_isa_name(enum tdmi_isa isa);

/* tdmi_gemm_avx2 for tdmi_gemm, in a file that is compiled for AVX2 */
#define TDMI_THIS_ISA(name) TDMI_ISA_JOIN(name, TDMI_ISA)
#define TDMI_ISA_JOIN(name, isa) TDMI_ISA_JOIN_EXPANDED(name, isa)
#define TDMI_ISA_JOIN_EXPANDED(name, isa) name##_##isa

/* Define a function, begun by `head`, that returns the table `name` of an instruction set up to
 * tdmi_isa_best(). */
#define TDMI_TABLE_OF(head, name)                                                       \
    head(enum tdmi_isa isa)                                                             \
    {                                                                                   \
        static const __typeof__(&name##_scalar) tables[] = {TDMI_TABLES_PER_ISA(name)}; \
        return tables[isa];                                                             \
    }
#if defined(__x86_64__)
#define TDMI_TABLES_PER_ISA(name) &name##_scalar, &name##_avx2, &name##_avx512
#else
#define TDMI_TABLES_PER_ISA(name) &name##_scalar
#endif
