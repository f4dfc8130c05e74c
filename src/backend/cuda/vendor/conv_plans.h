/*
 * The libraries' algorithms of a convolution, chosen once per plan: cuDNN for each direction, or
 * cuBLASLt where it is a product of matrices (kernel and stride 1, no padding) and faster.
 */
#ifndef TANDEM_BACKEND_CUDA_CONV_PLANS_H
#define TANDEM_BACKEND_CUDA_CONV_PLANS_H

#include "backend/cuda/vendor/libraries.h"

/* A direction without either is computed by conv.cu. */
struct tdmi_cuda_conv_plans {
    struct tdmi_cuda_algorithm forward, of_input, of_weights;
    bool is_whole; /* forward includes bias, residual and activation */
};

/* Returns no algorithms when the desc has no device. */
struct tdmi_cuda_conv_plans tdmi_cuda_conv_plans_of(const struct tdmi_op_desc *desc);

bool tdmi_cuda_algorithm_exists(const struct tdmi_cuda_algorithm *algorithm);
/* Planned memory that it needs (libraries.h). */
size_t tdmi_cuda_algorithm_workspace_room(const struct tdmi_cuda_algorithm *algorithm);

#endif
