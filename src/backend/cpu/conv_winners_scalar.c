/* Gradients of winners in plain C. */
#include "backend/cpu/conv_winners_body.h"

const struct tdmi_conv_winners_kernels tdmi_conv_winners_scalar = TDMI_CONV_WINNERS_KERNELS;
