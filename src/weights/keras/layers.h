/*
 * Layers of Keras as nodes of ours. A layer becomes none (Flatten: a dense layer reads images as
 * they lie), one or several (a separable convolution is two); what it has no op for is refused by
 * its name and class.
 */
#pragma once

#include "models/network.h"
#include "weights/keras/config.h"

/* Output of the network after its last layer; not an activation inside it. */
enum tdmi_keras_end { TDMI_KERAS_LOGITS, TDMI_KERAS_SOFTMAX, TDMI_KERAS_SIGMOID };

/* A value within a pattern of layers that is one op of ours; node is x then. */
enum tdmi_keras_pattern {
    TDMI_KERAS_NO_PATTERN,
    TDMI_KERAS_SIXTH,    /* x / 6 + 1/2: of a hard swish */
    TDMI_KERAS_GATE,     /* that held between 0 and 1, by which x is multiplied */
    TDMI_KERAS_NEGATIVE, /* -x: of one logit for two classes */
    TDMI_KERAS_PAIR      /* -x and x, of which a sigmoid makes probabilities */
};

/* The output of a layer. */
struct tdmi_keras_value {
    int node;
    int pads[4];        /* zeros of a ZeroPadding2D that the reader may take over: above,
                           below, left, right */
    int padded;         /* the node that has them, where some reader could not; 0: none yet */
    bool is_flat;       /* a row of numbers, though the node's may be an image */
    bool is_transposed; /* columns and channels exchanged: between two Permute layers */
    bool is_positive;   /* nothing below 0, so that zeros around change no maximum */
    enum tdmi_keras_pattern pattern;
    enum tdmi_keras_end end;
};

/* The tensors of a Keras layer that belong to a node. */
enum tdmi_keras_part { TDMI_KERAS_WHOLE, TDMI_KERAS_FIRST_HALF, TDMI_KERAS_SECOND_HALF };

struct tdmi_keras_source { /* of a node with weights */
    int node, layer;
    enum tdmi_keras_part part;
};

struct tdmi_keras_build {
    const struct tdmi_keras_config *config;
    tdmi_graph *graph;
    struct tdmi_keras_value *values;   /* by layer */
    struct tdmi_keras_source *sources; /* room for two a layer */
    int n_sources;
    int n_dropouts;
    const char *left_out; /* the class of a layer that only training would feel; NULL: none */
};

/* Adds the nodes of one layer whose inputs are there. Mistakes of the graph are kept by it. */
tdm_status tdmi_keras_add_layer(struct tdmi_keras_build *build, int layer,
                                tdm_error *err) TDM_MUST_USE;
/* Scale of a Rescaling layer that reads the input. */
tdm_status tdmi_keras_rescaling(const struct tdmi_keras_layer *layer, enum tdmi_scale *scale,
                                tdm_error *err) TDM_MUST_USE;
/* Is it -x and x of a layer that gives x? Then *x is that layer. */
bool tdmi_keras_is_pair(const struct tdmi_keras_config *config, int layer, int *x);
/* Does it pass values on, changed one by one or put together: no weights? */
bool tdmi_keras_is_passive(const struct tdmi_keras_layer *layer);
/* The node of a value, zeros around it included. */
int tdmi_keras_node(struct tdmi_keras_build *build, int layer);
