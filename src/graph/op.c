/* The table of ops, from the list. */
#include "graph/op.h"

static const struct tdmi_op *const ops[TDMI_OP_KINDS] = {
#define X(name, NAME, inputs) &tdmi_op_##name,
#include "backend/ops.def"
#undef X
};

static const int inputs_of[TDMI_OP_KINDS] = {
#define X(name, NAME, inputs) inputs,
#include "backend/ops.def"
#undef X
};

const struct tdmi_op *tdmi_op_of(enum tdmi_op_kind kind)
{
    return ops[kind];
}

tdm_status tdmi_op_shape(enum tdmi_op_kind kind, const struct tdmi_op_attrs *attrs,
                         const struct tdmi_shape *in, struct tdmi_shape *out, tdm_error *err)
{
    if (ops[kind]->shape)
        return ops[kind]->shape(attrs, in, out, err);
    *out = in[0];
    return TDM_OK;
}

int tdmi_op_inputs(enum tdmi_op_kind kind)
{
    return inputs_of[kind];
}

double tdmi_flops_elementwise(const struct tdmi_op_attrs *attrs, struct tdmi_shape in,
                              struct tdmi_shape out)
{
    (void)attrs;
    (void)in;
    return 2.0 * (double)tdmi_shape_values(out);
}

tdm_status tdmi_evaluator_shape(const char *what, const struct tdmi_op_attrs *attrs,
                                struct tdmi_shape in, tdm_error *err)
{
    if (tdmi_shape_pixels(in) != 1)
        return TDM_FAIL(err, TDM_E_INPUT, "%s over a picture of %d×%d; it must be 1×1", what, in.w,
                        in.h);
    if (!(attrs->label_smoothing >= 0.0 && attrs->label_smoothing < 1.0))
        return TDM_FAIL(err, TDM_E_INPUT,
                        "%s with label smoothing %g; 0 to less than 1 is accepted", what,
                        attrs->label_smoothing);
    return TDM_OK;
}
