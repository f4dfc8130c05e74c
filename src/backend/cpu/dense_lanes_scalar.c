/* Dense layers with pictures as lanes in plain C. */
#include "backend/cpu/dense_lanes_body.h"

const struct tdmi_dense_lanes_kernels tdmi_dense_lanes_scalar = TDMI_DENSE_LANES_KERNELS;
