/* The op logistic. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/logistic.h"

static struct tdmi_cuda_logistic rows_of(const struct tdmi_op_desc *desc,
                                         const struct tdmi_op_call *call)
{
    return (struct tdmi_cuda_logistic){
        .type = desc->storage,
        .x = call->x[0],
        .y = call->y,
        .dx = call->dx[0],
        .n = call->n,
        .logits = desc->in[0].c,
        .classes = desc->out.c,
        .labels = call->labels,
        .mixed = call->mixed,
        .class_weights = desc->is_training ? call->class_weights : NULL,
        .smoothing = desc->is_training ? desc->attrs.label_smoothing : 0.0,
        .judgements = call->judgements,
        .loss_scale = desc->is_training ? call->loss_scale : NULL,
    };
}

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_logistic rows = rows_of(desc, call);
    tdmi_cuda_note(stream, tdmi_cuda_logistic_forward(tdmi_cuda_queue(stream), &rows),
                   "logistic, forward");
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    if (!desc->wants_dx)
        return;
    const struct tdmi_cuda_logistic rows = rows_of(desc, call);
    tdmi_cuda_note(stream, tdmi_cuda_logistic_backward(tdmi_cuda_queue(stream), &rows),
                   "logistic, backward");
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    (void)desc;
    (void)needs; /* none */
}

const struct tdmi_kernel tdmi_cuda_logistic = {
    .needs = needs, .forward = forward, .backward = backward};
