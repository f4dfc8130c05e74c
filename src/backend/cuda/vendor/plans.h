/*
 * The libraries' algorithms of a convolution or a dense layer, chosen once per plan. A convolution
 * is computed by cuDNN, or by cuBLASLt where it is a product of matrices (kernel and stride 1, no
 * padding) and cuBLASLt is faster; a dense layer by cuBLASLt.
 */
#pragma once

#include "backend/cuda/vendor/libraries.h"

/* By direction. Without an algorithm, a kernel of our own computes it. */
struct tdmi_cuda_plans {
    struct tdmi_cuda_algorithm of[TDMI_CUDNN_DIRECTIONS];
    bool is_whole; /* forward includes bias, residual and activation */
};

/* No algorithms when the desc has no device. */
struct tdmi_cuda_plans tdmi_cuda_plans_choose(const struct tdmi_op_desc *desc);
/* As kernel->prepare, and what it made; freed with tdmi_free. */
tdm_status tdmi_cuda_plans_prepare(const struct tdmi_op_desc *desc, void **prepared,
                                   tdm_error *err);
struct tdmi_cuda_plans tdmi_cuda_plans_of(const struct tdmi_op_desc *desc);

bool tdmi_cuda_algorithm_exists(const struct tdmi_cuda_algorithm *algorithm);
/* Planned memory that it needs (libraries.h). */
size_t tdmi_cuda_algorithm_workspace_room(const struct tdmi_cuda_algorithm *algorithm);
/* As kernel->describe; ours: names of our own kernels, by direction. */
void tdmi_cuda_algorithms_describe(const struct tdmi_op_desc *desc,
                                   const struct tdmi_cuda_algorithm of[TDMI_CUDNN_DIRECTIONS],
                                   const char *const ours[TDMI_CUDNN_DIRECTIONS],
                                   struct tdmi_kernel_algorithms *to);

/* Clear the images n … max_images of x and dy: a library's plan reads all that the arrays hold. */
void tdmi_cuda_clear_tails(tdmi_stream *stream, const struct tdmi_op_desc *desc,
                           const struct tdmi_op_call *call);
