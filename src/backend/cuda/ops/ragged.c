/* Batches with fewer images than their arrays hold. */
#include "backend/cuda/cuda.h"

void tdmi_cuda_clear_tail(tdmi_stream *stream, const struct tdmi_op_desc *desc, int n,
                          struct tdmi_shape shape, const void *array)
{
    const size_t image = (size_t)tdmi_shape_values(shape) * tdmi_dtype_bytes(desc->storage);
    if (n < desc->max_images)
        tdmi_cuda_clear(stream, (char *)(uintptr_t)array + (size_t)n * image,
                        (size_t)(desc->max_images - n) * image);
}
