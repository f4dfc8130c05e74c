/* Depthwise convolution in plain C, for any processor. */
#include "backend/cpu/depthwise_backward_body.h"
#include "backend/cpu/depthwise_forward_body.h"

const struct tdmi_depthwise_kernels tdmi_depthwise_scalar = {forward, backward};
