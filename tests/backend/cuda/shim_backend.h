/*
 * Backend cuda on this processor: its kernels by op, run by the shim, on ordinary memory.
 */
#ifndef TANDEM_TESTS_BACKEND_CUDA_SHIM_BACKEND_H
#define TANDEM_TESTS_BACKEND_CUDA_SHIM_BACKEND_H

#include "backend/backend.h"

extern const struct tdmi_backend tdmi_backend_shim;

#endif
