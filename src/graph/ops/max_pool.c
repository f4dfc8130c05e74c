/* The largest value of every window. */
#include "graph/op.h"
#include "graph/window.h"

static tdm_status shape(const struct tdmi_op_attrs *attrs, const struct tdmi_shape *in,
                        struct tdmi_shape *out, tdm_error *err)
{
    return tdmi_window_shape(attrs, 1, in[0], out, err);
}

static double flops(const struct tdmi_op_attrs *attrs, struct tdmi_shape in, struct tdmi_shape out)
{
    (void)in;
    return (double)attrs->kernel * attrs->kernel * (double)tdmi_shape_values(out);
}

const struct tdmi_op tdmi_op_max_pool = {
    .attrs = {"kernel", "stride", "pad_top", "pad_bottom", "pad_left", "pad_right"},
    .shape = shape,
    .flops = flops,
};
