/* min(max(x, 0), 6). */
#include "graph/op.h"

const struct tdmi_op tdmi_op_relu6 = {
    .flops = tdmi_flops_elementwise,
    .backward_reads_y = true,
    .act = TDMI_ACT_RELU6,
};
