/* NCCL, by which the GPUs of several ranks exchange gradients. */
#pragma once

#include "backend/cuda/vendor/library.h"

extern const struct tdmi_cuda_library tdmi_nccl_library;
