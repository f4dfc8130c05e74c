/*
 * Backend cuda on this processor: its kernels by op, run by the shim, on memory that counts as a
 * card's: pointers into it are not the host's to follow.
 */
#ifndef TANDEM_TESTS_BACKEND_CUDA_SHIM_BACKEND_H
#define TANDEM_TESTS_BACKEND_CUDA_SHIM_BACKEND_H

#include "backend/backend.h"

extern const struct tdmi_backend tdmi_backend_shim;

/* From now on memory is kept from all but kernels and copies (backend/guarded.h); that costs two
 * calls of the system a launch, so tests ask for it. */
void tdmi_shim_guard(bool wanted);

/* From now on nobody gets so many bytes in one piece; 0: as many as there are. */
void tdmi_shim_limit(size_t bytes);

/* Cards that are opened from now on have these files as their cuDNN and cuBLASLt, which queue their
 * work as kernels do (fake_launch.h), and keep choices below home. All NULL: none, as at first. */
void tdmi_shim_libraries(const char *cudnn, const char *cublaslt, const char *home);

/* Cards that are opened from now on have this file as their nvJPEG, which queues its work likewise.
 * NULL: none, as at first. */
void tdmi_shim_nvjpeg(const char *file);

#endif
