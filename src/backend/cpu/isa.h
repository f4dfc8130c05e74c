/*
 * One body, several instruction sets: NAME_body.h is included by NAME_scalar.c, NAME_avx2.c and
 * NAME_avx512.c (CMakeLists.txt compiles each for its set), and every one of them ends in a const
 * table NAME_<set>.
 */
#ifndef TANDEM_BACKEND_CPU_ISA_H
#define TANDEM_BACKEND_CPU_ISA_H

enum tdmi_isa { TDMI_ISA_SCALAR, TDMI_ISA_AVX2, TDMI_ISA_AVX512, TDMI_ISAS };

/* The best one that this processor and operating system run; all before it run too. */
enum tdmi_isa tdmi_isa_best(void);
/* "avx512" */
const char *tdmi_isa_name(enum tdmi_isa isa);

/* Addresses of the tables of one name, to be indexed by enum tdmi_isa up to tdmi_isa_best(). */
#if defined(__x86_64__)
#define TDMI_PER_ISA(name)                           \
    {                                                \
        &name##_scalar, &name##_avx2, &name##_avx512 \
    }
#else
#define TDMI_PER_ISA(name) \
    {                      \
        &name##_scalar     \
    }
#endif

#endif
