/*
 * The ranks of one job on this machine, as child processes. Each gets its rank, the number of
 * ranks, an address and a token by the environment (dist/launch.h). They end with this process,
 * however it ends.
 */
#pragma once

#include "base/scope.h"
#include "base/text/text.h"
#include <stdbool.h>
#include <sys/types.h>

struct tdmi_job_options {
    const char *program;
    const char *const *arguments;
    int n_arguments;
    int ranks;
    bool is_launcher; /* one process, found by PATH, which starts the ranks itself */
    double deadline;
    tdmi_text *output; /* gets rank 0's standard output; NULL: it is this process's */
};

struct tdmi_job_end {
    int exit_status; /* of the rank that failed first; 0: none did */
    int lost_rank;   /* that was killed, or silent until it had to be; -1: none */
    int lost_signal; /* that killed it; 0: none, or one that only another launcher saw */
    bool is_unbegun; /* another launcher started no rank */
};

/* Starts all ranks and waits until all have ended. */
tdm_status tdmi_job_run(const struct tdmi_job_options *options, struct tdmi_job_end *end,
                        tdm_error *err) TDM_MUST_USE;
