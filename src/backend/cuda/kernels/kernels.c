/* The kernels of the backend, by op. A new op_*.c is a line here. */
#include "backend/cuda/cuda.h"

const struct tdmi_kernel *const tdmi_cuda_kernels[TDMI_OP_KINDS] = {
    [TDMI_OP_RELU] = &tdmi_cuda_relu,
    [TDMI_OP_RELU6] = &tdmi_cuda_relu6,
    [TDMI_OP_ADD] = &tdmi_cuda_add,
    [TDMI_OP_BATCH_NORM] = &tdmi_cuda_batch_norm,
    [TDMI_OP_SOFTMAX] = &tdmi_cuda_softmax,
    [TDMI_OP_CONV] = &tdmi_cuda_conv,
    [TDMI_OP_DENSE] = &tdmi_cuda_dense,
    [TDMI_OP_INPUT] = &tdmi_cuda_input,
    [TDMI_OP_MAX_POOL] = &tdmi_cuda_max_pool,
    [TDMI_OP_AVG_POOL] = &tdmi_cuda_avg_pool,
    [TDMI_OP_GLOBAL_POOL] = &tdmi_cuda_global_pool,
    [TDMI_OP_HSWISH] = &tdmi_cuda_hswish,
    [TDMI_OP_SIGMOID] = &tdmi_cuda_sigmoid,
    [TDMI_OP_CONCAT] = &tdmi_cuda_concat,
    [TDMI_OP_PAD] = &tdmi_cuda_pad,
    [TDMI_OP_LRN] = &tdmi_cuda_lrn,
    [TDMI_OP_DROPOUT] = &tdmi_cuda_dropout,
    [TDMI_OP_LOGISTIC] = &tdmi_cuda_logistic,
};
