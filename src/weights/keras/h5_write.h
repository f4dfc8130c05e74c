/*
 * Keras's .h5 files, written: a network's weights by layers, alone or with what the network is.
 */
#pragma once

#include "tandem/error.h"
#include <stddef.h>
#include <stdint.h>

struct tdmi_keras_weight {
    const char *name; /* below its layer: "block1_conv1/kernel:0" */
    int rank;
    const int64_t *shape;
    const float *data;
};

struct tdmi_keras_h5_layer {
    const char *name;
    const struct tdmi_keras_weight *weights; /* in Keras's order: kernel, bias; gamma, beta, … */
    size_t n_weights;
};

struct tdmi_keras_note { /* a text beside the model, which Keras passes over */
    const char *key, *text;
};

struct tdmi_keras_file {
    const struct tdmi_keras_h5_layer *layers; /* in the order of the network */
    size_t n_layers;
    const char *keras_version; /* whose ways the names and the configuration follow: "2.4.0" */
    const char *model_config;  /* JSON; NULL: weights alone, which load_weights takes */
    const char *backend;       /* NULL: "tensorflow" */
    const struct tdmi_keras_note *notes;
    size_t n_notes;
};

/* Atomically; the same file makes the same bytes. */
tdm_status tdmi_keras_h5_write(const struct tdmi_keras_file *file, const char *path,
                               tdm_error *err) TDM_MUST_USE;
