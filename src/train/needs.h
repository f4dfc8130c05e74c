/*
 * Memory that training holds from its first step on. It follows from plans, so it is reported and
 * compared with the limit before any of it is reserved: the kernel grants memory page by page as it
 * is written to, and kills a process that exceeds the limit in the middle of a step.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In bytes. */
struct tdmi_needs {
    int64_t weights;     /* and the optimiser's state, averages, the host's copies */
    int64_t activations; /* outputs of layers, of all groups that are computed at once */
    int64_t gradients;
    int64_t evaluating; /* validation, and computing features of frozen layers */
    int64_t pictures;   /* batches read ahead; caches take the rest */
    int64_t others;     /* held by the process before */
};

int64_t tdmi_needs_total(const struct tdmi_needs *needs);
/* "536 MiB of memory (activations 403, gradients 57, weights 42, …)" */
void tdmi_needs_describe(const struct tdmi_needs *needs, char *text, size_t text_bytes);

/* The most memory and swap together that a process can hold here. */
struct tdmi_memory_limit {
    int64_t bytes;    /* 0: not known */
    const char *what; /* "this container allows" */
};
/* root is "" for this machine; tests give a folder with its own proc/ and sys/. With more than one
 * process, the share of each. */
struct tdmi_memory_limit tdmi_memory_limit(const char *root, int n_processes);
/* Resident now; 0: not known. */
int64_t tdmi_memory_resident(void);
/* The resident bytes that belong to no file, which the kernel cannot drop. */
int64_t tdmi_memory_own(void);

struct tdmi_needs_choice {
    int batch, shard, threads;
};
struct tdmi_needs_measure {
    tdm_status (*run)(void *self, struct tdmi_needs_choice choice, struct tdmi_needs *needs,
                      tdm_error *err);
    void *self;
    bool keeps_bits; /* only threads may change */
};
/* The nearest choice within the limit: fewer threads, which do not change results; else a
 * smaller batch; else smaller groups. found->threads is 0 when there is none. */
tdm_status tdmi_needs_find(const struct tdmi_needs_measure *measure,
                           struct tdmi_needs_choice requested, int64_t limit_bytes,
                           struct tdmi_needs_choice *found, struct tdmi_needs *needs,
                           tdm_error *err) TDM_MUST_USE;
