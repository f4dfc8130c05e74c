/* Thin convolutions in AVX2. */
#include "backend/cpu/conv_thin_body.h"

const struct tdmi_conv_thin_kernels tdmi_conv_thin_avx2 = TDMI_CONV_THIN_KERNELS;
