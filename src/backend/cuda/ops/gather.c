/* The gather, as an entry of the memory table. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/image/gather.h"

void tdmi_cuda_gather_rows(tdmi_stream *stream, const void *table, size_t row_bytes,
                           const int64_t *numbers, int n, void *to)
{
    tdmi_cuda_note(stream,
                   tdmi_cuda_gather(tdmi_cuda_queue(stream), table, row_bytes, numbers, n, to),
                   "gathering rows");
}
