/* The op input. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/input.h"

static void forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                    const struct tdmi_op_call *call)
{
    struct tdmi_cuda_input it = {.type = desc->storage,
                                 .n = call->n,
                                 .h = desc->out.h,
                                 .w = desc->out.w,
                                 .channels = desc->out.c};
    for (int c = 0; c < 3; c++)
        it.normal[c] = tdmi_preprocess_normal(&desc->attrs.preprocess, c);
    tdmi_cuda_note(stream,
                   tdmi_cuda_input_forward(tdmi_cuda_queue(stream), &it, call->pixels, call->y),
                   "input");
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    (void)desc;
    (void)needs; /* none */
}

const struct tdmi_kernel tdmi_cuda_input = {.needs = needs, .forward = forward};
