/* Depthwise convolution, written once for every instruction set (isa.h). */
#include "backend/cpu/depthwise/depthwise_backward_body.h"
#include "backend/cpu/depthwise/depthwise_forward_body.h"

const struct tdmi_depthwise_kernels TDMI_THIS_ISA(tdmi_depthwise) = {forward, backward};
