/* The ops softmax and logistic. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/loss/logistic.h"
#include "backend/cuda/kernels/loss/softmax.h"

static struct tdmi_cuda_loss loss_of(const struct tdmi_op_desc *desc,
                                     const struct tdmi_op_call *call)
{
    return (struct tdmi_cuda_loss){
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

static void softmax_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_loss it = loss_of(desc, call);
    tdmi_cuda_note(stream, tdmi_cuda_softmax_forward(tdmi_cuda_queue(stream), &it),
                   "softmax, forward");
}

static void softmax_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_loss it = loss_of(desc, call);
    if (!desc->wants_dx)
        return;
    tdmi_cuda_note(stream, tdmi_cuda_softmax_backward(tdmi_cuda_queue(stream), &it),
                   "softmax, backward");
}

static void logistic_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_loss it = loss_of(desc, call);
    tdmi_cuda_note(stream, tdmi_cuda_logistic_forward(tdmi_cuda_queue(stream), &it),
                   "logistic, forward");
}

static void logistic_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                              const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_loss it = loss_of(desc, call);
    if (!desc->wants_dx)
        return;
    tdmi_cuda_note(stream, tdmi_cuda_logistic_backward(tdmi_cuda_queue(stream), &it),
                   "logistic, backward");
}

const struct tdmi_kernel tdmi_cuda_softmax = {.forward = softmax_forward,
                                              .backward = softmax_backward};
const struct tdmi_kernel tdmi_cuda_logistic = {.forward = logistic_forward,
                                               .backward = logistic_backward};
