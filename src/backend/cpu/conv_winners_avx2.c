/* Gradients of winners in AVX2. */
#include "backend/cpu/conv_winners_body.h"

const struct tdmi_conv_winners_kernels tdmi_conv_winners_avx2 = TDMI_CONV_WINNERS_KERNELS;
