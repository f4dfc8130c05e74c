/*
 * Convolutions in a row as one pass, without training: [1 × 1 expansion or 3 × 3 of a picture,]
 * depthwise, 1 × 1 projection. A strip of rows at a time runs through all of them, so that the wide
 * tensors between them are strips in the second cache and never reach memory. Made of the kernels
 * that run each of them alone (conv_gemm.h, depthwise.h), so bits are the same as without.
 */
#pragma once

#include "backend/backend.h"
#include "backend/cpu/conv/conv_call.h"
#include "backend/cpu/conv/conv_gemm.h"
#include "backend/cpu/depthwise/depthwise.h"

/* Does chaining n = 2 or 3 links of our own products and depthwise kernels save a pass over memory?
 * A rule of the shapes alone. */
bool tdmi_conv_chain_is_for(const struct tdmi_op_desc *const *links, int n);
size_t tdmi_conv_chain_workspace_bytes(const struct tdmi_op_desc *const *links, int n);
/* desc->prepared of each link was made by its own kernel. The last call has the member. */
void tdmi_conv_chain_forward(const struct tdmi_op_desc *const *links,
                             const struct tdmi_op_call *calls, int n);

/* The kernel's own description and call of a desc that it has prepared: conv_gemm.c, */
struct tdmi_conv_gemm tdmi_conv_gemm_of(const struct tdmi_op_desc *desc);
struct tdmi_conv_infer tdmi_conv_gemm_call_of(const struct tdmi_op_desc *desc,
                                              const struct tdmi_op_call *call);
/* and depthwise.c. */
struct tdmi_depthwise tdmi_depthwise_of(const struct tdmi_op_desc *desc);
struct tdmi_depthwise_forward tdmi_depthwise_call_of(const struct tdmi_op_desc *desc,
                                                     const struct tdmi_op_call *call);
