/* Which instruction set pooling runs with, and what it keeps. */
#include "backend/cpu/pointwise/pooling.h"

size_t tdmi_pooling_winner_bytes(const struct tdmi_pooling *pool, int n)
{
    size_t values = (size_t)n * (size_t)pool->out_h * (size_t)pool->out_w * (size_t)pool->channels;
    return (values + 63) / 64 * 64 + 64;
}

const struct tdmi_pooling_kernels *tdmi_pooling_kernels(enum tdmi_isa isa)
{
    static const struct tdmi_pooling_kernels *const kernels[] = TDMI_PER_ISA(tdmi_pooling);
    return kernels[isa];
}
