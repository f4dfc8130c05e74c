/*
 * Backend cuda on this CPU: its table and its files as they are, on what looks like CUDA's
 * runtime (fake_runtime.h), its kernels run by the shim. Pointers into memory of its GPUs are not
 * the host's to follow.
 */
#pragma once

#include "backend/cuda/fakes/fake_runtime.h"
#include "backend/backend.h"

/* Filled before main begins, and not to be written. */
extern struct tdmi_backend tdmi_backend_shim;

/* GPUs that are opened from now on have these files as their cuDNN and cuBLASLt, which queue their
 * work as kernels do (fake_launch.h), and keep choices below home. All NULL: none, as at first. */
void tdmi_shim_libraries(const char *cudnn, const char *cublaslt, const char *home);

/* GPUs that are opened from now on have this file as their nvJPEG, which queues its work likewise.
 * NULL: none, as at first. */
void tdmi_shim_nvjpeg(const char *file);

/* The same of NCCL. */
void tdmi_shim_nccl(const char *file);

/* The control object of a stand-in library, which stays open; NULL: it cannot be opened. */
void *tdmi_shim_fake(const char *file, const char *name);
