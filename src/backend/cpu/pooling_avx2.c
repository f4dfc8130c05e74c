/* Pooling in AVX2. */
#include "backend/cpu/pooling_body.h"

const struct tdmi_pooling_kernels tdmi_pooling_avx2 = TDMI_POOLING_KERNELS;
