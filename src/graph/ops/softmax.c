/* Probabilities of the classes, and in training the cross-entropy with the labels. */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    TDM_TRY(tdmi_evaluator_shape("softmax", attrs, in[0], err), err, "probabilities");
    *out = in[0];
    return TDM_OK;
}

const struct tdmi_op tdmi_op_softmax = {
    .attrs = {"label_smoothing"},
    .shape = shape,
    .flops = tdmi_flops_elementwise,
    .backward_reads_y = true,
    .is_output = true,
};
