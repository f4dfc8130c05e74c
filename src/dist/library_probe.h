/*
 * Which MPI and NCCL the machine has, asked from the libraries themselves. Neither is initialised:
 * both allow the question before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct tdmi_library {
    bool is_found;
    char file[64];     /* the name that was opened */
    char version[160]; /* first line of what it says */
    char problem[240]; /* "" when found */
};

void tdmi_library_probe_mpi(struct tdmi_library *library);
void tdmi_library_probe_nccl(struct tdmi_library *library);
