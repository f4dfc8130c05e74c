/*
 * A step of every tensor in one launch, on a GPU; and before it, where gradients are clipped or
 * f16, where tensors adapt their step, what has to be measured: in two stages, whose order the
 * lengths of the tensors alone decide. Formulas: backend/ref/update.c, train/step/update.c,
 * src/optim.
 */
#pragma once

#include "backend/cuda/kernels/launcher.h"
#include "backend/update.h"

TDMI_C_BEGIN

enum { TDMI_CUDA_UPDATE_VALUES = 4096 /* of a block, at most */ };

/* The values that one block of threads updates. */
struct tdmi_cuda_update_block {
    int64_t offset;
    int32_t n, tensor;
    float part, momentum;
    int32_t has_decay, is_state;
};

/* Its blocks; they follow each other. */
struct tdmi_cuda_update_tensor {
    int32_t first, end;
    float part;
    int32_t has_decay;
};

/* The step of a tensor that its own norm adapted. */
struct tdmi_cuda_update_adapted {
    float scale, rate, decay;
};

/* Result of checking the gradient of all tensors. */
struct tdmi_cuda_update_verdict {
    float scale; /* of gradients' sums */
    int32_t is_left_out;
};

struct tdmi_cuda_update {
    struct tdmi_update_arrays arrays;
    const struct tdmi_cuda_update_block *blocks; /* those of parameters first */
    const struct tdmi_cuda_update_tensor *tensors;
    int n_blocks, n_param_blocks, n_tensors;
    double *squares;                          /* two a block of parameters */
    struct tdmi_cuda_update_adapted *adapted; /* one a tensor */
    struct tdmi_cuda_update_verdict *verdict;

    /* of the step */
    const float *sums;
    const struct tdmi_step_facts *facts;
};

int tdmi_cuda_update_run(struct CUstream_st *queue, const struct tdmi_cuda_update *call,
                         struct tdmi_update_method way);

TDMI_C_END
