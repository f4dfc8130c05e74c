/* Pooling in plain C. */
#include "backend/cpu/pooling_body.h"

const struct tdmi_pooling_kernels tdmi_pooling_scalar = TDMI_POOLING_KERNELS;
