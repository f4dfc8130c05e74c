/* Gradients of winners in AVX-512. */
#include "backend/cpu/conv_winners_body.h"

const struct tdmi_conv_winners_kernels tdmi_conv_winners_avx512 = TDMI_CONV_WINNERS_KERNELS;
