/* Which instruction set passes over whole tensors run with. */
#include "backend/cpu/pointwise/elementwise.h"

const struct tdmi_elementwise_kernels *tdmi_elementwise_kernels(enum tdmi_isa isa)
{
    static const struct tdmi_elementwise_kernels *const kernels[] = TDMI_PER_ISA(tdmi_elementwise);
    return kernels[isa];
}
