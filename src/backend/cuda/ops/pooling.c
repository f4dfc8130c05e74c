/* The ops max_pool, avg_pool and global_pool. Saved by max_pool: the winners, one byte a value. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/pooling.h"

static void needs_winners(const struct tdmi_op_desc *desc, struct tdmi_kernel_needs *needs)
{
    if (desc->is_training)
        needs->saved_bytes = (size_t)desc->max_images * (size_t)tdmi_shape_values(desc->out);
}

static void max_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                        const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    tdmi_cuda_note(stream,
                   tdmi_cuda_pool_max(tdmi_cuda_queue(stream), &shape, call->x[0], call->y,
                                      desc->is_training ? call->saved : NULL),
                   "max_pool, forward");
}

static void max_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    if (!desc->wants_dx)
        return;
    tdmi_cuda_note(stream,
                   tdmi_cuda_pool_max_gradient(tdmi_cuda_queue(stream), &shape, call->dy,
                                               call->saved, call->dx[0]),
                   "max_pool, backward");
}

static void average_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    tdmi_cuda_note(stream,
                   tdmi_cuda_pool_average(tdmi_cuda_queue(stream), &shape, call->x[0], call->y),
                   "avg_pool, forward");
}

static void average_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    if (!desc->wants_dx)
        return;
    tdmi_cuda_note(
        stream,
        tdmi_cuda_pool_average_gradient(tdmi_cuda_queue(stream), &shape, call->dy, call->dx[0]),
        "avg_pool, backward");
}

static void global_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call)
{
    tdmi_cuda_note(stream,
                   tdmi_cuda_pool_all(tdmi_cuda_queue(stream), desc->storage, call->n,
                                      tdmi_shape_pixels(desc->in[0]), desc->out.c, call->x[0],
                                      call->y),
                   "global_pool, forward");
}

static void global_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    if (!desc->wants_dx)
        return;
    tdmi_cuda_note(stream,
                   tdmi_cuda_pool_all_gradient(tdmi_cuda_queue(stream), desc->storage, call->n,
                                               tdmi_shape_pixels(desc->in[0]), desc->out.c,
                                               call->dy, call->dx[0]),
                   "global_pool, backward");
}

const struct tdmi_kernel tdmi_cuda_max_pool = {
    .needs = needs_winners, .forward = max_forward, .backward = max_backward};
const struct tdmi_kernel tdmi_cuda_avg_pool = {.forward = average_forward,
                                               .backward = average_backward};
const struct tdmi_kernel tdmi_cuda_global_pool = {.forward = global_forward,
                                                  .backward = global_backward};
