/*
 * Names of our networks' tensors in PyTorch (torchvision) and Keras (keras.applications): one table
 * of rules for the readers and the writers of their files.
 *
 * A tensor of ours is called NODE.TENSOR ("Conv1.weight"). Both programs name the layer, which is
 * a rule of the network, and the variable in it, which is a rule of the op. A layer without a rule
 * is called as we call it. Names alone: shapes and order of values are of layouts.h.
 */
#pragma once

#include "graph/graph.h"

/* A name with its end; longer ones are no names of ours. */
enum { TDMI_NAME_BYTES = 256 };

/* Has torchvision this network ("mobilenetv2-0.35")? */
bool tdmi_is_of_torchvision(const char *network);

/* "block_3_expand" of mobilenetv2 is "features.4.conv.0.0" in torchvision. A name without a rule
 * stays as it is. False when out would be longer than TDMI_NAME_BYTES. */
bool tdmi_torch_layer(const char *network, const char *node, char *out) TDM_MUST_USE;
/* The whole name: "features.4.conv.0.0.weight". tensor is one of node's. */
bool tdmi_torch_name(const char *network, const struct tdmi_node *node,
                     const struct tdmi_tensor *tensor, char *out) TDM_MUST_USE;

/* "block2_sepconv1.depthwise" of xception is in the layer "block2_sepconv1", "block2_shortcut" is
 * the layer "conv2d": Keras numbers layers without a name, in the order of the network and from the
 * first of the process, so a file may have others ("conv2d_7"); see tdmi_keras_is_numbered. */
bool tdmi_keras_layer(const char *network, const char *node, char *out) TDM_MUST_USE;
bool tdmi_keras_is_numbered(const char *network, const char *node);
/* "kernel", "depthwise_kernel", "gamma", "moving_mean", …; lives forever. */
const char *tdmi_keras_variable(const struct tdmi_node *node, const struct tdmi_tensor *tensor);
