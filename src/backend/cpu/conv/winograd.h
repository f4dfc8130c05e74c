/*
 * 3 × 3 convolutions of stride 1 with 16 products for 2 × 2 pixels where the definition has 36,
 * f32, on one thread: tiles of the input become 16 matrices (winograd_tiles.h), which are
 * multiplied with 16 matrices of weights, and results are tiles again. Errors are no larger than
 * those of the definition, whose chains of additions are nine times as long.
 */
#ifndef TANDEM_BACKEND_CPU_WINOGRAD_H
#define TANDEM_BACKEND_CPU_WINOGRAD_H

#include "backend/cpu/conv/conv_gemm.h"

/* Is the shape one that this is for? The rest of this header wants such a shape. */
bool tdmi_winograd_is_for(const struct tdmi_conv_gemm *desc);

/* As in conv_gemm.h. */
size_t tdmi_winograd_workspace_bytes(const struct tdmi_conv_gemm *desc);
size_t tdmi_winograd_packed_bytes(const struct tdmi_conv_gemm *desc);
void tdmi_winograd_pack(const struct tdmi_conv_gemm *desc, enum tdmi_conv_way way,
                        const float *weights, const float *scale, float *packed);
void tdmi_winograd_forward(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_forward *call);
void tdmi_winograd_infer(const struct tdmi_conv_gemm *desc, const struct tdmi_conv_infer *call);
void tdmi_winograd_backward(const struct tdmi_conv_gemm *desc,
                            const struct tdmi_conv_backward *call);

#endif
