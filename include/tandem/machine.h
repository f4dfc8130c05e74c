/*
 * Abilities of this build and this machine: looked up (tdm_machine_describe) and measured
 * (tdm_machine_measure). Plain structs, nothing to release.
 *
 * Numbers that could not be found are 0 and texts "": a container hides much, and that is no error.
 */
#ifndef TANDEM_MACHINE_H
#define TANDEM_MACHINE_H

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- looked up -------------------------------------------------------------------------- */

struct tdm_machine_cpu {
    char model[96];
    char architecture[16];        /* "x86_64" */
    char isa[160];                /* extensions that matter here, separated by blanks */
    int packages, cores, threads; /* of the machine */
    int usable;                   /* CPUs this process may use */
    int numa_nodes;
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* one core's L1d and L2, the L3 it sees */
};

struct tdm_machine_memory {
    int64_t total_bytes, available_bytes;
};

/* Limits of a container or job scheduler; 0 where there is no limit. */
struct tdm_machine_limits {
    double cpus;
    int64_t memory_bytes;
};

struct tdm_machine_gpu {
    char name[96];
    char uuid[96];
    int64_t memory_bytes, memory_free_bytes;
    int compute_major, compute_minor; /* CUDA compute capability */
    int pcie_generation, pcie_lanes;  /* as the link could run at most */
    int nvlinks;                      /* active links to other GPUs */
    double power_limit_watts;
};

enum { TDM_MACHINE_GPUS_MAX = 32 };

struct tdm_machine_gpus {
    int n;                      /* of these, the first TDM_MACHINE_GPUS_MAX are described */
    char driver[80];            /* "550.54.15" */
    int cuda_major, cuda_minor; /* the newest CUDA that the driver serves */
    char problem[240];          /* why there are none, "" when there are some */
    struct tdm_machine_gpu of[TDM_MACHINE_GPUS_MAX];
};

/* A library found at run time. */
struct tdm_machine_library {
    bool is_found;
    char file[64];     /* the name that was opened: "libmpi.so.40" */
    char version[160]; /* first line of what it says about itself */
    char problem[240]; /* why it is not found, "" otherwise */
};

/* An NVIDIA library that computes on GPUs, if found. */
struct tdm_machine_gpu_library {
    char name[24]; /* "cuDNN" */
    bool is_found;
    char version[40];  /* "9.19.0" */
    char file[512];    /* "": part of tandem */
    char problem[240]; /* why it is not found, "" otherwise */
    char without[120]; /* the fallback without it */
};

enum { TDM_MACHINE_GPU_LIBRARIES_MAX = 8 };

/* An optional part of this build; one that is a library of its own is on where it can be opened. */
struct tdm_machine_feature {
    const char *name;  /* "jpeg" */
    const char *gives; /* its use, one line */
    bool is_on;
    const char *version;                /* of the library used; "" when off or unknown */
    const char *remedy;                 /* the command that installs it */
    char problem[TDM_ERROR_TEXT_BYTES]; /* why this part of the build cannot be used, or "" */
};

enum { TDM_MACHINE_FEATURES_MAX = 16 };

/* Threads that compute unless --threads says otherwise. */
struct tdm_machine_threads {
    int n;          /* 0: unknown, because of wrong variables in the environment */
    char text[320]; /* how many and why, "4 (CPU quota 3.5 of 16 CPUs)", or what is wrong */
};

struct tdm_machine {
    size_t struct_bytes; /* see tandem/api.h */
    struct tdm_machine_cpu cpu;
    struct tdm_machine_memory memory;
    struct tdm_machine_limits limits;
    struct tdm_machine_gpus gpus;
    /* None if this build has no GPU backend, or it cannot be opened: see the features. */
    int n_gpu_libraries;
    struct tdm_machine_gpu_library gpu_libraries[TDM_MACHINE_GPU_LIBRARIES_MAX];
    struct tdm_machine_library mpi, nccl;
    const char *build_type, *compiler;
    int n_features;
    struct tdm_machine_feature features[TDM_MACHINE_FEATURES_MAX];
    struct tdm_machine_threads threads;
};

/* Opens the GPU driver's, NVIDIA's, MPI's and NCCL's libraries and the build's own parts if they
 * are there, starts none of them. */
TDM_API void tdm_machine_describe(struct tdm_machine *machine);

/* ---- measured --------------------------------------------------------------------------- */

struct tdm_measure_options {
    size_t struct_bytes; /* see tandem/api.h */
    const char *folder;  /* where a file is written and read back; NULL: the current folder */
    double seconds;      /* for all measurements together; 1 to 60 */
    int64_t disk_bytes;  /* size of that file at most; 4 MiB or more */
};

/* 0 where something was not measured. */
struct tdm_machine_rate {
    double one_thread, all_threads;
};

struct tdm_machine_rates {
    size_t struct_bytes; /* see tandem/api.h */
    double seconds;      /* the measurements took */
    int threads;         /* that "all" means */

    struct tdm_machine_rate copy_bytes_per_s; /* memory, read plus written */
    int64_t copy_buffer_bytes;                /* of one thread */

    struct tdm_machine_rate f32_flop_per_s, bf16_flop_per_s; /* matrix product, all in caches */
    const char *matmul_method;                               /* "oneDNN" or "plain C loop" */
    char bf16_problem[240];                                  /* why bf16 was not measured, or "" */
    const char *faster_precision; /* "f32" or "bf16" by at least a tenth, NULL: cannot tell */

    double disk_read_bytes_per_s;
    int64_t disk_bytes;
    const char *disk_method; /* how the page cache was kept out, or that it was not */
    char disk_problem[240];  /* why it was not measured, or "" */
};

/* Write the defaults of this library into *options, a struct of that size. */
TDM_API void tdm_measure_options_init(struct tdm_measure_options *options, size_t struct_bytes);
static inline struct tdm_measure_options tdm_measure_options_default(void)
{
    struct tdm_measure_options options;
    tdm_measure_options_init(&options, sizeof options);
    return options;
}

/* Blocks for about options->seconds. A folder that is none is TDM_E_INPUT; TDM_E_STOPPED on
 * request; a disk that cannot be written is only noted in the rates. */
TDM_API tdm_status tdm_machine_measure(const struct tdm_measure_options *options,
                                       struct tdm_machine_rates *rates,
                                       tdm_error *err) TDM_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
