/* The targets of the losses. */
#include "backend/ref/ref.h"

double tdmi_ref_target(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call, int i,
                       int class)
{
    double weight = call->mixed ? (double)call->mixed[i].weight : 1.0;
    double target = call->labels[i] == class ? weight : 0.0;
    if (weight < 1.0 && call->mixed[i].other == class)
        target += 1.0 - weight;
    double smoothing = desc->is_training ? desc->attrs.label_smoothing : 0.0;
    return smoothing > 0.0 ? (1.0 - smoothing) * target + smoothing / desc->out.c : target;
}

double tdmi_ref_class_weight(const struct tdmi_op_desc *desc, const struct tdmi_op_call *call,
                             int class)
{
    return desc->is_training && call->class_weights ? (double)call->class_weights[class] : 1.0;
}
