/* Passes over whole tensors in AVX2 and FMA. */
#include "backend/cpu/elementwise_body.h"

const struct tdmi_elementwise_kernels tdmi_elementwise_avx2 = TDMI_ELEMENTWISE_KERNELS;
