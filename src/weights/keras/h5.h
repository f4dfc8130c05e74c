/*
 * Read Keras weights in HDF5 as a list of tensors. For the readers of this folder only.
 */
#pragma once

#include "weights/form.h"

/* bytes are lent until close. name is for sentences: the path, or a file in an archive. */
tdm_status tdmi_keras_h5_read(tdmi_weights *weights, const uint8_t *bytes, size_t n_bytes,
                              const char *name, tdm_error *err) TDM_MUST_USE;
