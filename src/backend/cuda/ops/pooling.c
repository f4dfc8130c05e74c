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
    TDMI_CUDA_LAUNCH(stream, "max_pool, forward", tdmi_cuda_pool_max, &shape, call->x[0], call->y,
                     desc->is_training ? call->saved : NULL);
}

static void max_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                         const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "max_pool, backward", tdmi_cuda_pool_max_gradient, &shape,
                         call->dy, call->saved, call->dx[0]);
}

static void average_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    TDMI_CUDA_LAUNCH(stream, "avg_pool, forward", tdmi_cuda_pool_average, &shape, call->x[0],
                     call->y);
}

static void average_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                             const struct tdmi_op_call *call)
{
    const struct tdmi_cuda_window shape = tdmi_cuda_window_of(desc, call->n);
    if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "avg_pool, backward", tdmi_cuda_pool_average_gradient, &shape,
                         call->dy, call->dx[0]);
}

static void global_forward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call)
{
    TDMI_CUDA_LAUNCH(stream, "global_pool, forward", tdmi_cuda_pool_all, desc->storage, call->n,
                     tdmi_shape_pixels(desc->in[0]), desc->out.c, call->x[0], call->y);
}

static void global_backward(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                            const struct tdmi_op_call *call)
{
    if (desc->wants_dx)
        TDMI_CUDA_LAUNCH(stream, "global_pool, backward", tdmi_cuda_pool_all_gradient,
                         desc->storage, call->n, tdmi_shape_pixels(desc->in[0]), desc->out.c,
                         call->dy, call->dx[0]);
}

const struct tdmi_kernel tdmi_cuda_max_pool = {
    .needs = needs_winners, .forward = max_forward, .backward = max_backward};
const struct tdmi_kernel tdmi_cuda_avg_pool = {.forward = average_forward,
                                               .backward = average_backward};
const struct tdmi_kernel tdmi_cuda_global_pool = {.forward = global_forward,
                                                  .backward = global_backward};
