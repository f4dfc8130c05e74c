/* Thin convolutions in AVX-512. */
#include "backend/cpu/conv_thin_body.h"

const struct tdmi_conv_thin_kernels tdmi_conv_thin_avx512 = TDMI_CONV_THIN_KERNELS;
