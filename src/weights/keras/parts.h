/* Building blocks of the functions that translate layers. */
#pragma once

#include "weights/keras/layers.h"

/* ---- attributes; missing: what a file without the key means, -1: it needs one ---- */

tdm_status tdmi_keras_read_count(const struct tdmi_keras_layer *layer, const char *key,
                                 int64_t most, int missing, int *out, tdm_error *err) TDM_MUST_USE;
/* A number, or two that must be equal: windows are square here. */
tdm_status tdmi_keras_read_square(const struct tdmi_keras_layer *layer, const char *key,
                                  int missing, int *out, tdm_error *err) TDM_MUST_USE;
bool tdmi_keras_flag(const struct tdmi_keras_layer *layer, const char *key, bool missing);
double tdmi_keras_number(const struct tdmi_keras_layer *layer, const char *key, double missing);
const char *tdmi_keras_word(const struct tdmi_keras_layer *layer, const char *key,
                            const char *missing);
/* Refuse data_format "channels_first". */
tdm_status tdmi_keras_check_order(const struct tdmi_keras_layer *layer,
                                  tdm_error *err) TDM_MUST_USE;

/* ---- nodes ---- */

/* The layer's name and a suffix, or its number where that is taken. */
struct tdmi_name tdmi_keras_free_name(const struct tdmi_keras_build *build,
                                      const struct tdmi_keras_layer *layer, const char *suffix);
/* Add a node of that name which reads node `from`. */
int tdmi_keras_add_node(struct tdmi_keras_build *build, const struct tdmi_keras_layer *layer,
                        const char *suffix, enum tdmi_op_kind kind, int from,
                        struct tdmi_op_attrs attrs);
/* Output of the first layer that `layer` reads, and its node, zero padding included. */
const struct tdmi_keras_value *tdmi_keras_input_of(const struct tdmi_keras_build *build,
                                                   const struct tdmi_keras_layer *layer);
int tdmi_keras_input_node(struct tdmi_keras_build *build, const struct tdmi_keras_layer *layer);
/* 1×1×1 after a mistake. */
struct tdmi_shape tdmi_keras_shape_of(const struct tdmi_keras_build *build, int node);
int tdmi_keras_index_of(const struct tdmi_keras_build *build, const struct tdmi_keras_layer *layer);
void tdmi_keras_note_source(struct tdmi_keras_build *build, int node,
                            const struct tdmi_keras_layer *layer, enum tdmi_keras_part part);
/* Refuse an input that is flattened. */
tdm_status tdmi_keras_check_image(const struct tdmi_keras_build *build,
                                  const struct tdmi_keras_layer *layer,
                                  tdm_error *err) TDM_MUST_USE;

/* ---- activations ---- */

const char *tdmi_keras_activation_of(const struct tdmi_keras_layer *layer);
/* Behind value, of which it becomes a part. */
tdm_status tdmi_keras_activate(struct tdmi_keras_build *build, const struct tdmi_keras_layer *layer,
                               const char *activation, const char *suffix,
                               struct tdmi_keras_value *value, tdm_error *err) TDM_MUST_USE;

/* ---- layers with windows ---- */

#define X(name)                                                            \
    tdm_status tdmi_keras_add_##name(struct tdmi_keras_build *build,       \
                                     const struct tdmi_keras_layer *layer, \
                                     struct tdmi_keras_value *value, tdm_error *err) TDM_MUST_USE;
X(conv)
X(depthwise)
X(separable)
X(pool)
X(zero_padding)
#undef X
