/*
 * The op input. Whether images are changed is decided by the call alone: what is done to each of
 * them lies beside it in the GPU's memory, so that a recorded step is replayed with other changes.
 */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/image/input.h"

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
    struct CUstream_st *queue = tdmi_cuda_queue(stream);
    if (!call->changes) {
        tdmi_cuda_note(stream, tdmi_cuda_input_forward(queue, &it, call->pixels, call->y), "input");
        return;
    }
    tdmi_cuda_note(stream,
                   tdmi_cuda_input_means(queue, &it, call->pixels, call->changes, call->workspace),
                   "input, means of pictures that are changed");
    tdmi_cuda_note(
        stream,
        tdmi_cuda_input_changed(queue, &it, call->pixels, call->changes, call->workspace, call->y),
        "input, changed");
}

static void needs(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    needs->workspace_bytes = (size_t)desc->max_images * sizeof(int32_t); /* means, if changed */
}

const struct tdmi_kernel tdmi_cuda_input = {.needs = needs, .forward = forward};
