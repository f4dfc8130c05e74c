/* The mean of every window: of its pixels alone, or with the zeros of the padding. */
#include "graph/op.h"
#include "graph/window.h"

const struct tdmi_op tdmi_op_avg_pool = {
    .attrs = {"kernel", "stride", "pad_top", "pad_bottom", "pad_left", "pad_right",
              "counts_padding"},
    .shape = tdmi_pool_shape,
    .flops = tdmi_pool_flops,
};
