/* The tail, as an entry of the update table. */
#include "backend/cuda/cuda.h"
#include "backend/cuda/kernels/loss/tail.h"

void tdmi_cuda_tail_of(tdmi_stream *stream, const struct tdmi_judgement *judgements,
                       const int32_t *labels, const struct tdmi_mixed_label *mixed, int n,
                       float *tail)
{
    tdmi_cuda_note(stream,
                   tdmi_cuda_tail(tdmi_cuda_queue(stream), judgements, labels, mixed, n, tail),
                   "what a shard says of itself");
}
