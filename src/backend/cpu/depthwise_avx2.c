/* Depthwise convolution in AVX2 and FMA. */
#include "backend/cpu/depthwise_backward_body.h"
#include "backend/cpu/depthwise_forward_body.h"

const struct tdmi_depthwise_kernels tdmi_depthwise_avx2 = {forward, backward};
