/* Pooling in AVX-512. */
#include "backend/cpu/pooling_body.h"

const struct tdmi_pooling_kernels tdmi_pooling_avx512 = TDMI_POOLING_KERNELS;
