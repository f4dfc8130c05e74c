/* Samples, correct answers and loss of a group, summed on a GPU. */
#pragma once

#include "backend/op.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* As update->tail of backend/backend.h. */
int tdmi_cuda_tail(struct CUstream_st *queue, const struct tdmi_judgement *judgements,
                   const int32_t *labels, const struct tdmi_mixed_label *mixed, int n, float *tail);

#ifdef __cplusplus
}
#endif
