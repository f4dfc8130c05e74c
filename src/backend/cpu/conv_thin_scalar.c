/* Thin convolutions in plain C. */
#include "backend/cpu/conv_thin_body.h"

const struct tdmi_conv_thin_kernels tdmi_conv_thin_scalar = TDMI_CONV_THIN_KERNELS;
