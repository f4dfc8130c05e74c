/*
 * What a training holds in memory from its first step on. All of it follows from plans, so it is
 * known, told and compared with what there is before any of it is reserved: memory is given page by
 * page as it is written to, and who asks for too much is killed in the middle of a step, without a
 * sentence.
 */
#pragma once

#include "tandem/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In bytes. */
struct tdmi_needs {
    int64_t weights;     /* and the optimiser's state, averages, the host's copies */
    int64_t activations; /* of the shards that run at once */
    int64_t gradients;
    int64_t evaluating; /* and making rows of a frozen part */
    int64_t pictures;   /* batches that are read ahead; caches take what is left */
    int64_t others;     /* what the process held before */
};

int64_t tdmi_needs_total(const struct tdmi_needs *needs);
/* "536 MiB of memory (activations 403, gradients 57, weights 42, …)" */
void tdmi_needs_describe(const struct tdmi_needs *needs, char *text, size_t text_bytes);

/* More than this, memory and swap together, no process here can hold. */
struct tdmi_memory_limit {
    int64_t bytes;    /* 0: not known */
    const char *what; /* "this container allows" */
};
/* root is "" for this machine; tests give a folder with its own proc/ and sys/. */
struct tdmi_memory_limit tdmi_memory_limit(const char *root);
/* Resident now; 0: not known. */
int64_t tdmi_memory_resident(void);
/* Of it, what is no file's and so cannot give way. */
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
/* The nearest choice that stays inside the limit: fewer threads, which change no bit; else a
 * smaller batch; else smaller shards. found->threads is 0 when there is none. */
tdm_status tdmi_needs_find(const struct tdmi_needs_measure *measure, struct tdmi_needs_choice asked,
                           int64_t limit_bytes, struct tdmi_needs_choice *found,
                           struct tdmi_needs *needs, tdm_error *err) TDM_MUST_USE;
