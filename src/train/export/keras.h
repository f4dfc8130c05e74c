/*
 * A network as layers of Keras. Nearly every node is one layer; padding that Keras has no word for
 * is a layer of its own, a separable convolution is one layer of two nodes, and some ops are said
 * in several.
 *
 * Keras lays images out as we do, (y, x, channel), so no value moves; what a dense layer or a
 * global mean gives is flat (n, values).
 */
#pragma once

#include "train/export/export.h"

/* The classes of layers, with their names in Keras. */
#define TDMI_KERAS_CLASSES(X)                \
    X(INPUT, "InputLayer")                   \
    X(CONV, "Conv2D")                        \
    X(DEPTHWISE_CONV, "DepthwiseConv2D")     \
    X(SEPARABLE_CONV, "SeparableConv2D")     \
    X(NORM, "BatchNormalization")            \
    X(RELU, "ReLU")                          \
    X(ACTIVATION, "Activation")              \
    X(ADD, "Add")                            \
    X(MULTIPLY, "Multiply")                  \
    X(CONCATENATE, "Concatenate")            \
    X(MAX_POOL, "MaxPooling2D")              \
    X(AVERAGE_POOL, "AveragePooling2D")      \
    X(GLOBAL_POOL, "GlobalAveragePooling2D") \
    X(ZERO_PADDING, "ZeroPadding2D")         \
    X(PERMUTE, "Permute")                    \
    X(RESCALING, "Rescaling")                \
    X(FLATTEN, "Flatten")                    \
    X(RESHAPE, "Reshape")                    \
    X(DROPOUT, "Dropout")                    \
    X(DENSE, "Dense")

enum tdmi_keras_class {
#define X(class, name) TDMI_KERAS_##class,
    TDMI_KERAS_CLASSES(X)
#undef X
};

struct tdmi_keras_plan {
    enum tdmi_keras_class class;
    const char *name;
    int inputs[2], n_inputs;          /* earlier layers */
    const struct tdmi_node *nodes[2]; /* whose weights it has; NULL: none */
    struct tdmi_shape in;             /* INPUT: the images; RESHAPE: its channels */
    struct tdmi_op_attrs attrs;       /* of the node, where its class has such */
    bool is_same;                     /* padding, of windows */
    double most;                      /* RELU: its upper end; 0: none */
    double scale, offset;             /* RESCALING */
    const char *function;             /* ACTIVATION */
    bool is_flat;                     /* what it gives */
    int depth, visit;                 /* see tdmi_keras_order */
};

struct tdmi_keras_network {
    struct tdmi_export *export;
    struct tdmi_keras_plan *layers;
    int n_layers, room;
    int *values; /* by node: the layer that gives it */
    bool is_broken;
    tdm_error *err; /* says for which node Keras has no layer */
};

/* TDM_E_INPUT names a node that Keras has no layers for. Lives in the export's arena. */
tdm_status tdmi_keras_plan_layers(struct tdmi_export *export, struct tdmi_keras_network *network,
                                  tdm_error *err) TDM_MUST_USE;
/* The order in which Keras keeps the layers of such a network, and expects their weights: order[i]
 * is the number of the layer at place i. */
void tdmi_keras_order(struct tdmi_keras_network *network, int *order);
/* The model_config: JSON in the arena, NULL when out of memory. */
const char *tdmi_keras_config(const struct tdmi_keras_network *network);
