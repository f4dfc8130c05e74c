/* Depthwise convolution in AVX-512. */
#include "backend/cpu/depthwise_backward_body.h"
#include "backend/cpu/depthwise_forward_body.h"

const struct tdmi_depthwise_kernels tdmi_depthwise_avx512 = {forward, backward};
