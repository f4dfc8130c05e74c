/*
 * Probabilities of classes that are each asked yes or no, and in training the binary cross-entropy
 * with the labels. One logit decides between two classes (a positive one speaks for the second);
 * more logits are one class each, against all others.
 */
#include "graph/op.h"

TDMI_OP_SHAPE(shape)
{
    TDM_TRY(tdmi_evaluator_shape("a logistic loss", attrs, in[0], err), err, "probabilities");
    *out = (struct tdmi_shape){1, 1, in[0].c == 1 ? 2 : in[0].c};
    return TDM_OK;
}

const struct tdmi_op tdmi_op_logistic = {
    .attrs = {"label_smoothing"},
    .shape = shape,
    .flops = tdmi_flops_elementwise,
    .backward_reads_y = true,
    .is_output = true,
};
