/* Passes over whole tensors in plain C, for any processor. */
#include "backend/cpu/elementwise_body.h"

const struct tdmi_elementwise_kernels tdmi_elementwise_scalar = TDMI_ELEMENTWISE_KERNELS;
