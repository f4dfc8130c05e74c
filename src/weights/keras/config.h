/*
 * A Keras model_config as one list of layers: nested models are taken apart, and every layer says
 * which earlier ones it reads. What the layers mean is import/described.c's business.
 */
#pragma once

#include "weights/errors.h"
#include "tandem/json.h"

struct tdmi_keras_layer {
    const char *name;  /* "block1_conv1" */
    const char *class; /* "Conv2D" */
    const tdm_json_value *config;
    int *inputs; /* earlier layers */
    int n_inputs;
    const char *group;  /* the layer of the outermost model it is, or lies in: a group in .h5 */
    const char *number; /* what files that number layers call it: "functional/conv2d_3" */
};

/* Layer 0 is the input; those of nested models are gone. Lives as long as the arena and the JSON
 * document. */
struct tdmi_keras_config {
    const char *name; /* of the model */
    struct tdmi_keras_layer *layers;
    int n_layers;
    size_t capacity;
    int height, width, channels; /* 0: the file leaves it open */
    int output;                  /* the layer whose values are the model's */
};

/* TDM_E_INPUT for what is no model of one input and one output, or uses a layer twice. */
tdm_status tdmi_keras_config_read(const tdm_json_value *model, tdmi_arena *arena,
                                  struct tdmi_keras_config *config, tdm_error *err) TDM_MUST_USE;
