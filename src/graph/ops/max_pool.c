/* The largest value of every window. */
#include "graph/op.h"
#include "graph/window.h"

const struct tdmi_op tdmi_op_max_pool = {
    .attrs = {"kernel", "stride", "pad_top", "pad_bottom", "pad_left", "pad_right"},
    .shape = tdmi_pool_shape,
    .flops = tdmi_pool_flops,
};
