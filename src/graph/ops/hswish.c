/* x · min(max(x + 3, 0), 6) / 6, the swish of MobileNetV3. */
#include "graph/op.h"

const struct tdmi_op tdmi_op_hswish = {
    .flops = tdmi_flops_elementwise,
    .backward_reads_x = true,
    .act = TDMI_ACT_HSWISH,
};
