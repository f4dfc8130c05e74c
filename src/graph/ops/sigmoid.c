/* 1 / (1 + exp(-x)). */
#include "graph/op.h"

const struct tdmi_op tdmi_op_sigmoid = {
    .flops = tdmi_flops_elementwise,
    .backward_reads_y = true,
    .act = TDMI_ACT_SIGMOID,
};
