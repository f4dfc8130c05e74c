/* One block is enough for a group's samples: each thread adds every 256th, then a tree adds them.
 */
#include "backend/cuda/kernels/loss/tail.h"
#include "backend/cuda/kernels/reduce.cuh"

enum { tail_threads = 256 };

__global__ void __launch_bounds__(tail_threads)
    sum_judgements(const struct tdmi_judgement *judgements, const int32_t *labels,
                   const struct tdmi_mixed_label *mixed, int n, float *tail)
{
    TDM_SHARED(double, losses, 33);
    TDM_SHARED(int, counts, 33);
    double loss = 0.0;
    int correct = 0;
    for (int64_t i = threadIdx.x; i < n; i += tail_threads) {
        const bool is_other = mixed && mixed[i].weight < 0.5f;
        correct += judgements[i].predicted == (is_other ? mixed[i].other : labels[i]);
        loss += (double)judgements[i].loss;
    }
    loss = over_block<tail_threads>(loss, losses, plus());
    correct = over_block<tail_threads>(correct, counts, plus());
    if (threadIdx.x > 0)
        return;
    tail[TDMI_TAIL_SAMPLES] = (float)n;
    tail[TDMI_TAIL_CORRECT] = (float)correct;
    tail[TDMI_TAIL_LOSS] = (float)loss;
}

extern "C" int tdmi_cuda_tail(struct CUstream_st *queue, const struct tdmi_judgement *judgements,
                              const int32_t *labels, const struct tdmi_mixed_label *mixed, int n,
                              float *tail)
{
    return launch(sum_judgements, dim3(1), dim3(tail_threads), queue, judgements, labels, mixed, n,
                  tail);
}
