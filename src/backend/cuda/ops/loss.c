/* The ops softmax and logistic, each with its loss. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/loss/loss.h"

static struct tdmi_cuda_loss loss_of(const struct tdmi_op_desc *desc,
                                     const struct tdmi_op_call *call)
{
    return (struct tdmi_cuda_loss){
        .type = desc->storage,
        .is_logistic = desc->kind == TDMI_OP_LOGISTIC,
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
    const struct tdmi_cuda_loss it = loss_of(desc, call);
    TDMI_CUDA_LAUNCH(stream, "loss, forward", tdmi_cuda_loss_forward, &it);
}

static void backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                     const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_loss it = loss_of(desc, call);
    if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "loss, backward", tdmi_cuda_loss_backward, &it);
}

const struct tdmi_kernel tdmi_cuda_loss = {.forward = forward, .backward = backward};
