/*
 * How PyTorch lays out a tensor of ours, and values on their way there and back.
 *
 *     conv    ours (y, x, in / groups, out)     theirs (out, in / groups, y, x)
 *     dense   ours ((y, x, channel), out)       theirs (out, (channel, y, x))
 *
 * All others have one axis. Keras has our order of values everywhere; only its shape of a depthwise
 * kernel differs, (y, x, in, out / in) for our (y, x, 1, out).
 */
#pragma once

#include "graph/graph.h"

struct tdmi_layout {
    int rank;
    int64_t shape[4]; /* 0 past rank */
};

struct tdmi_layout tdmi_layout_of_ours(const struct tdmi_tensor *tensor);
struct tdmi_layout tdmi_layout_of_torch(const struct tdmi_node *node,
                                        const struct tdmi_tensor *tensor);
/* Layout in Keras of a depthwise convolution's tensor; ours for any other node. */
struct tdmi_layout tdmi_layout_of_keras(const struct tdmi_node *node,
                                        const struct tdmi_tensor *tensor);

/* tensor is one of node's; both arrays have all its values and do not overlap. */
void tdmi_values_to_torch(const struct tdmi_node *node, const struct tdmi_tensor *tensor,
                          const float *ours, float *theirs);
void tdmi_values_from_torch(const struct tdmi_node *node, const struct tdmi_tensor *tensor,
                            const float *theirs, float *ours);
