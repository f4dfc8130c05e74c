/*
 * A depthwise convolution and the product in seven halves behind it (strassen.h) as one pass,
 * without training: the pixels of a job are made right before it, into the same memory for every
 * job, so that what lies between the two never reaches memory. Made of the kernels that run each of
 * them alone, so bits are the same as without. Links are those of conv_chain.h.
 */
#pragma once

#include "backend/cpu/conv/conv_chain.h"

/* A rule of the shapes alone. */
bool tdmi_separable_is_for(const struct tdmi_op_desc *depthwise,
                           const struct tdmi_op_desc *product);
size_t tdmi_separable_workspace_bytes(const struct tdmi_op_desc *depthwise,
                                      const struct tdmi_op_desc *product);
/* The last call has the member. */
void tdmi_separable_forward(const struct tdmi_op_desc *const links[2],
                            const struct tdmi_op_call calls[2]);
