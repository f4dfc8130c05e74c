/* Convolutions of one group by our own products (conv_gemm.h), as a kernel. */
#ifndef TANDEM_BACKEND_CPU_CONV_GEMM_WAY_H
#define TANDEM_BACKEND_CPU_CONV_GEMM_WAY_H

#include "backend/backend.h"

extern const struct tdmi_kernel tdmi_conv_by_gemm;

#endif
