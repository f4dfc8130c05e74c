/* Passes over whole tensors in AVX-512. */
#include "backend/cpu/elementwise_body.h"

const struct tdmi_elementwise_kernels tdmi_elementwise_avx512 = TDMI_ELEMENTWISE_KERNELS;
