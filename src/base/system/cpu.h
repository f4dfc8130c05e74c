/*
 * This machine: ISA extensions, cores, caches, memory, limits of the container.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tdmi_cpu {
    char model[96];        /* "AMD EPYC …" */
    char architecture[16]; /* "x86_64" */
    /* The extensions that matter here, oldest first: "sse4.2 avx2 fma …". */
    char isa[160];
    bool has_avx2_fma, has_avx512, has_avx512_vnni, has_avx512_bf16, has_amx_bf16;
    int packages, cores, threads;          /* of the machine as the kernel shows it */
    int usable;                            /* what this process may use: mask and cgroup quota */
    double cgroup_cpus;                    /* quota in CPUs; 0 when there is none */
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* one core's L1d and L2, the L3 it sees; 0 unknown */
    int64_t memory_bytes, memory_available_bytes, swap_bytes;
    int64_t cgroup_memory_bytes; /* 0 when there is no limit */
    int64_t all_memory_bytes;    /* with swap, as far as a container allows both */
    int numa_nodes;
};

/* Never fails: what cannot be found stays 0 or "". Uses hwloc where built in, /proc and /sys else.
 */
void tdmi_cpu_describe(struct tdmi_cpu *cpu);

/* The part of it that is read from files, below root ("" is this machine): tests give a folder with
 * its own proc/ and sys/. */
void tdmi_cpu_describe_files(const char *root, struct tdmi_cpu *cpu);
