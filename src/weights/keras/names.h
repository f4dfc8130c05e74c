/*
 * The tensors of a Keras file by layer and variable, whichever version wrote it:
 *
 *     model_weights/block1_conv1/block1_conv1/kernel:0     Keras 2 .h5, and Keras 3's of that form
 *     model_weights/conv1/conv1_1/kernel:0                 loaded and saved in one session
 *     model_weights/base/conv1_1/kernel:0                  the same of a model within the model
 *     block1_conv1/kernel                                  TensorFlow.js, .npz
 *     layers/functional/layers/conv2d_3/vars/0             Keras 3: .keras, .weights.h5
 *
 * The last form numbers layers of a class in their order, and variables in theirs.
 */
#pragma once

#include "weights/bind.h"

/* Role of a variable in its layer. */
enum tdmi_keras_variable {
    TDMI_KERAS_KERNEL,
    TDMI_KERAS_DEPTHWISE, /* kernel of a depthwise layer, or of a separable one's first half */
    TDMI_KERAS_POINTWISE,
    TDMI_KERAS_BIAS,
    TDMI_KERAS_GAMMA,
    TDMI_KERAS_BETA,
    TDMI_KERAS_MEAN,
    TDMI_KERAS_VARIANCE
};

struct tdmi_keras_entry {
    const char *layer;    /* the layer's own name: "conv2d_3" */
    const char *path;     /* with what it lies in: "functional/conv2d_3" */
    const char *variable; /* "kernel", "0" */
    const struct tdmi_weights_tensor *tensor;
};

struct tdmi_keras_names {
    struct tdmi_keras_entry *entries; /* by layer, then variable, then order of the file */
    size_t n_entries;
    bool is_numbered; /* the last of the three forms */
};

/* In the arena of the bindings. Takes what is no weight: an optimizer's, seeds, metrics. */
tdm_status tdmi_keras_names_init(struct tdmi_keras_names *names, struct tdmi_bindings *bindings,
                                 tdm_error *err) TDM_MUST_USE;

struct tdmi_keras_place {
    const char *layer; /* its name, or of numbered files what it is called there */
    const char *path;  /* decides where several layers are called so; NULL: nothing does */
    int number;        /* index of the variable: in its layer in numbered files, else in the path */
    bool is_by_order;  /* variables of the path have other names: only their order counts */
};
/* Are the layer's variables in the path, called by its name? How many are in the path at all? */
bool tdmi_keras_has_layer(const struct tdmi_keras_names *names, const char *path,
                          const char *layer);
int tdmi_keras_count_in(const struct tdmi_keras_names *names, const char *path);
/* By name, else by order in the layer's group. NULL when there is none, or more than one and
 * nothing decides. */
const struct tdmi_weights_tensor *tdmi_keras_find(const struct tdmi_keras_names *names,
                                                  const struct tdmi_keras_place *place,
                                                  enum tdmi_keras_variable variable);
/* "kernel": the usual name. */
const char *tdmi_keras_variable_name(enum tdmi_keras_variable variable);
