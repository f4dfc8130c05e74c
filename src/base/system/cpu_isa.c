/*
 * CPUID, read with the operating system in mind: wide registers count only when XCR0 says that the
 * kernel saves them at a switch. Bit numbers are those of the Intel and AMD manuals.
 */
#include "base/system/cpu_isa.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

enum { leaf_1, leaf_7, leaf_7_1, n_leaves };
enum { eax, ebx, ecx, edx, n_registers };

/* Register states in XCR0. */
enum { state_none = 0, state_avx = 0x6, state_avx512 = 0xe6, state_amx = 0x60000 };

static const struct {
    const char *name;
    int leaf, reg, bit;
    uint64_t states;
} extensions[] = {
    {"sse4.2", leaf_1, ecx, 20, state_none},
    {"avx", leaf_1, ecx, 28, state_avx},
    {"f16c", leaf_1, ecx, 29, state_avx},
    {"fma", leaf_1, ecx, 12, state_avx},
    {"avx2", leaf_7, ebx, 5, state_avx},
    {"avx_vnni", leaf_7_1, eax, 4, state_avx},
    {"avx512f", leaf_7, ebx, 16, state_avx512},
    {"avx512bw", leaf_7, ebx, 30, state_avx512},
    {"avx512dq", leaf_7, ebx, 17, state_avx512},
    {"avx512vl", leaf_7, ebx, 31, state_avx512},
    {"avx512_vnni", leaf_7, ecx, 11, state_avx512},
    {"avx512_bf16", leaf_7_1, eax, 5, state_avx512},
    {"avx512_fp16", leaf_7, edx, 23, state_avx512},
    {"amx_tile", leaf_7, edx, 24, state_amx},
    {"amx_int8", leaf_7, edx, 25, state_amx},
    {"amx_bf16", leaf_7, edx, 22, state_amx},
};

static uint64_t saved_states(unsigned leaf_1_ecx)
{
    unsigned low, high;
    if (!(leaf_1_ecx >> 27 & 1)) /* OSXSAVE: may xgetbv be used? */
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(const char *isa, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = isa; (at = strstr(at, name)); at += length)
        if ((at == isa || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

void tdmi_cpu_isa(struct tdmi_cpu *cpu)
{
    unsigned words[n_leaves][n_registers] = {{0}};
    size_t length = 0;
    if (!__get_cpuid(1, &words[leaf_1][eax], &words[leaf_1][ebx], &words[leaf_1][ecx],
                     &words[leaf_1][edx]))
        return;
    if (__get_cpuid_count(7, 0, &words[leaf_7][eax], &words[leaf_7][ebx], &words[leaf_7][ecx],
                          &words[leaf_7][edx]) &&
        words[leaf_7][eax] >= 1) /* the highest sub-leaf */
        __get_cpuid_count(7, 1, &words[leaf_7_1][eax], &words[leaf_7_1][ebx], &words[leaf_7_1][ecx],
                          &words[leaf_7_1][edx]);
    uint64_t saved = saved_states(words[leaf_1][ecx]);
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        bool is_there = words[extensions[i].leaf][extensions[i].reg] >> extensions[i].bit & 1;
        if (!is_there || (saved & extensions[i].states) != extensions[i].states)
            continue;
        int added = snprintf(cpu->isa + length, sizeof cpu->isa - length, "%s%s", length ? " " : "",
                             extensions[i].name);
        if (added < 0 || length + (size_t)added >= sizeof cpu->isa)
            break;
        length += (size_t)added;
    }
    cpu->has_avx2_fma = has(cpu->isa, "avx2") && has(cpu->isa, "fma");
    cpu->has_avx512 = has(cpu->isa, "avx512f") && has(cpu->isa, "avx512bw") &&
                      has(cpu->isa, "avx512dq") && has(cpu->isa, "avx512vl");
    cpu->has_avx512_vnni = cpu->has_avx512 && has(cpu->isa, "avx512_vnni");
    cpu->has_avx512_bf16 = cpu->has_avx512 && has(cpu->isa, "avx512_bf16");
    cpu->has_amx_bf16 = has(cpu->isa, "amx_tile") && has(cpu->isa, "amx_bf16");
}

#else

void tdmi_cpu_isa(struct tdmi_cpu *cpu)
{
    cpu->isa[0] = '\0';
}

#endif
