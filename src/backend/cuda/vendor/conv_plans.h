/*
 * What a convolution asks the libraries for, once a plan: cuDNN for each direction; and where it is
 * a product of matrices, kernel and stride 1 without padding, cuBLASLt beside it. The one that was
 * found to be faster computes.
 */
#ifndef TANDEM_BACKEND_CUDA_CONV_PLANS_H
#define TANDEM_BACKEND_CUDA_CONV_PLANS_H

#include "backend/cuda/vendor/libraries.h"

/* A direction without either: by conv.cu. */
struct tdmi_cuda_conv_plans {
    struct tdmi_cuda_algorithm forward, of_input, of_weights;
    bool is_whole; /* forward: what is behind the product, too */
};

/* Nothing where the desc knows no device. */
struct tdmi_cuda_conv_plans tdmi_cuda_conv_plans_of(const struct tdmi_op_desc *desc);

bool tdmi_cuda_algorithm_exists(const struct tdmi_cuda_algorithm *algorithm);
/* Of memory that is planned (libraries.h). */
size_t tdmi_cuda_algorithm_workspace_room(const struct tdmi_cuda_algorithm *algorithm);

#endif
