/* Dense layers with pictures as lanes in AVX-512. */
#include "backend/cpu/dense_lanes_body.h"

const struct tdmi_dense_lanes_kernels tdmi_dense_lanes_avx512 = TDMI_DENSE_LANES_KERNELS;
