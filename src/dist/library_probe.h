/*
 * Which MPI and NCCL the machine has, asked from the libraries themselves. Neither is initialised:
 * both allow the question before.
 */
#pragma once

#include "tandem/machine.h"

void tdmi_library_probe_mpi(struct tdm_machine_library *library);
void tdmi_library_probe_nccl(struct tdm_machine_library *library);
